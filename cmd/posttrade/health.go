package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/sidecars/feeds"
)

// runHealth is `posttrade health`: what a container's health check, or a script, asks.
//
// It needs no token. Where /readyz asks for one (admin.open-health=false), it asks /healthz
// instead, which does not know of votes: with --vote that is an error.
func runHealth(args []string, stdout, stderr io.Writer) int {
	f := newFlags("health [--live|--vote] [flags]",
		"Asks the server that runs on data.dir whether it admits orders: /readyz of the admin\n"+
			"listener.\n"+
			"Exit 0 when it does; 1 when it does not, with the parts that are not ready, and when\n"+
			"no server answers, or another one that has its port.")
	live := f.Bool("live", false, "ask only whether the process answers (/healthz), or is starting")
	vote := f.Bool("vote", false, "a member must have its vote too: then another one may be stopped")
	timeout := f.Duration("timeout", 5*time.Second, "how long to wait for the answer")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	path := "/readyz"
	switch {
	case *live && *vote:
		return settings.Exit(stderr, settings.Usagef("health: --live or --vote"))
	case *live:
		path = "/healthz"
	case *vote:
		path = readyWithVote
	}
	err = askHealth(ctx, c, path, stdout)
	if err != nil && *live && installation.Starting(c, time.Now()) {
		_, err = fmt.Fprintln(stdout, "starting")
	}
	return settings.Exit(stderr, err)
}

// readyWithVote is also not ready while a member has no vote.
const readyWithVote = "/readyz?vote=true"

// health is the answer of /readyz, and of /healthz. Only what the command prints is read of it.
type health struct {
	// Ready is false as long as one part is not.
	Ready bool
	// Parts are what must be ready; Detail says why one is not.
	Parts []struct {
		Name, Detail string
		Ready        bool
	}
}

// askHealth prints the answer of a server that is ready. Otherwise the error names the parts that
// are not, in one line.
func askHealth(ctx context.Context, c *settings.Config, path string, stdout io.Writer) error {
	at, err := listenerOf(c, "admin")
	if err != nil {
		return err
	}
	status, text, err := askOwnAdmin(ctx, c, at, path)
	if err == nil && status == http.StatusUnauthorized { // admin.open-health=false
		if path == readyWithVote {
			return errors.New("whether the member has its vote is not told without a token: " +
				"admin.open-health=false")
		}
		status, text, err = askOwnAdmin(ctx, c, at, "/healthz")
	}
	if err != nil {
		return err
	}
	if status == http.StatusOK {
		_, err = fmt.Fprintf(stdout, "%s\n", text)
		return err
	}
	var answer health
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("admin listener at %s: status %d", at, status)
	}
	var because []string
	for _, p := range answer.Parts {
		if !p.Ready {
			because = append(because, p.Name+": "+p.Detail)
		}
	}
	return fmt.Errorf("not ready: %s", strings.Join(because, "; "))
}

// askOwnAdmin asks the admin listener of the server on data.dir. The answer of another process,
// which has the port by now, is an error.
func askOwnAdmin(ctx context.Context, c *settings.Config, at, path string) (status int, text []byte,
	err error) {
	status, process, text, err := askAdmin(ctx, feeds.Reachable(at), path)
	if err == nil {
		err = installation.SameProcess(c, at, process)
	}
	return status, text, err
}

// askAdmin asks the admin listener over HTTP, or over TLS when it wants that. The request carries
// no secret and the answer decides nothing beyond this machine, so the certificate is not checked.
//
// A connection is used once: the process ends behind it.
func askAdmin(ctx context.Context, at, path string) (status int, process string, text []byte,
	err error) {
	asking := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, scheme := range []string{"http://", "https://"} {
		var request *http.Request
		if request, err = http.NewRequestWithContext(ctx, http.MethodGet, scheme+at+path,
			nil); err != nil {
			return 0, "", nil, err
		}
		var answer *http.Response
		if answer, err = asking.Do(request); err != nil {
			return 0, "", nil, err
		}
		text, err = io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		answer.Body.Close()
		process = answer.Header.Get(installation.ProcessHeader)
		if status = answer.StatusCode; err != nil || status != http.StatusBadRequest {
			break // 400: the listener speaks TLS
		}
	}
	return status, process, []byte(strings.TrimSpace(string(text))), err
}
