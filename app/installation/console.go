package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"posttrade/app/flight"
	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/httpapi/console"
	"posttrade/journal/evidence/page"
	"posttrade/journal/quorum"
	"posttrade/matcher/gate"
)

// openConsole opens the web console over the edges that are open, unless console.listen is empty. A
// default address that another process holds is not worth a stop: the start warns and goes on.
//
// It is the last listener that opens, because it sends its requests in process to the edges that
// are open by then. It uses the certificate of the services. An address that the operator has set
// and that is taken refuses the start.
func openConsole(c *settings.Config, l *listeners, verifier *gate.Verifier,
	registry *httpapi.Registry, log *slog.Logger) error {
	if c.String("console.listen") == "" {
		return nil
	}
	listener, err := net.Listen("tcp", c.String("console.listen"))
	if errors.Is(err, syscall.EADDRINUSE) && c.Source("console.listen") == "default" {
		log.Warn("no console: its address is taken; set console.listen", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("console.listen: %w", err)
	}
	web, err := newConsole(c, l, verifier, registry, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	for _, e := range l.open {
		web.Attach(e.name, e.edge)
	}
	l.serve("console", web, listener, l.tls)
	return nil
}

// newConsole makes the console's server. In profile dev it can mint a token: an administrator's,
// for a visitor without one. In production a visitor brings a token.
func newConsole(c *settings.Config, l *listeners, verifier *gate.Verifier,
	registry *httpapi.Registry, log *slog.Logger) (*console.Console, error) {
	o := console.Options{
		Verifier: verifier, Names: consoleNames(c, l),
		Secure: l.tls != nil || c.Bool("http.behind-proxy"),
		About: map[string]string{"version": settings.Version(), "profile": c.String("profile"),
			"durability": c.Durability(), "timezone": c.String("settlement.timezone"),
			"calendar": c.String("settlement.calendar"),
			"tPlus":    fmt.Sprint(c.Int("settlement.t-plus-days"))},
		Metrics: registry, Folders: consoleFolders(c), Logger: log,
		Prover: page.Wasm(), ProverScript: page.Worker(),
	}
	if c.Clustered() {
		memberTLS, err := MemberTLS(c)
		if err != nil {
			return nil, err
		}
		o.Cluster = askMembers(c.Members(), quorum.Remote{TLS: memberTLS})
	}
	if c.String("profile") == "dev" {
		o.Mint = func(now time.Time) string {
			return verifier.Mint(gate.Claims{Subject: "console", Admin: true}, console.MintedLife, now)
		}
	}
	return console.New(o)
}

// consoleNames returns the names under which browsers reach the console: those that the operator
// adds, that of its address, and those of the certificate that is in use when it is called.
//
// A request under another name is refused by the console, so that no other web page can reach it
// under a name of its own. Names are in lower case. A certificate that cannot be parsed adds none.
func consoleNames(c *settings.Config, l *listeners) (names func() []string) {
	var set []string
	for name := range strings.SplitSeq(strings.ToLower(c.String("console.hosts")), ",") {
		if name != "" {
			set = append(set, name)
		}
	}
	if host, _, err := net.SplitHostPort(c.String("console.listen")); err == nil && host != "" {
		set = append(set, strings.ToLower(host))
	}
	return func() []string {
		all := slices.Clone(set)
		if l.renewed == nil {
			return all
		}
		if leaf := leafOf(l.renewed.current.Load()); leaf != nil {
			for _, name := range leaf.DNSNames {
				all = append(all, strings.ToLower(name))
			}
		}
		return all
	}
}

// consoleFolders are the folders whose files the console shows to an administrator.
//
// The keys are the names in the console's addresses; the folders may not exist.
func consoleFolders(c *settings.Config) map[string]string {
	folders := map[string]string{"extracts": c.ExtractSink(), "flight": flight.FlightDir(c)}
	if c.String("profile") == "dev" {
		folders["perf"] = filepath.Join("perf", "results") // of the source tree that dev runs in
	}
	return folders
}

// memberStatus is what the console shows of a member, in the order of cluster.members. Error says
// that it does not answer; the rest is zero then.
type memberStatus struct {
	quorum.Status
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
}

// memberPatience bounds the question to a member.
//
// A member that is down must not keep the page of the others waiting.
const memberPatience = 2 * time.Second

// askMembers asks all members at once how they are.
//
// The questions go to the members' own port, with the certificate of this member, not through
// HTTP. The cost is one connection a member and a page.
func askMembers(members []quorum.Member, remote quorum.Remote) console.ClusterStatus {
	return func(ctx context.Context) any {
		ctx, cancel := context.WithTimeout(ctx, memberPatience)
		defer cancel()
		answers := make([]memberStatus, len(members))
		var asking sync.WaitGroup
		for i, m := range members {
			asking.Go(func() {
				s, err := remote.Status(ctx, m.Raft)
				answers[i] = memberStatus{Status: s, ID: m.ID}
				if err != nil {
					answers[i].Error = "does not answer"
				}
			})
		}
		asking.Wait()
		return answers
	}
}

// consoleURL is the console's address for a browser, empty without a console.
//
// It is printed at the start, with the port that the system has chosen if the setting says 0.
func (l *listeners) consoleURL() string {
	for _, e := range l.open {
		if e.name == "console" {
			scheme := "http"
			if l.tls != nil {
				scheme = "https"
			}
			return scheme + "://" + e.listener.Addr().String() + "/"
		}
	}
	return ""
}
