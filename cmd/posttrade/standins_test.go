package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// The documents' blocks need curl and sqlite3. Where one is missing, the test program stands in for
// it under its name, as far as the documents use it; anything else is an error.

// standIns are the programs, by the name of what they stand in for.
var standIns = map[string]func(args []string, stdout io.Writer) (exit int, err error){
	"curl": standInForCurl, "sqlite3": standInForSQLite,
}

const standInPrefix = "stand-in-for-"

// standIn is the main function of the stand-in for a tool.
func standIn(name string) func() {
	return func() {
		exit, err := standIns[name](os.Args[1:], os.Stdout)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s%s: %v\n", standInPrefix, name, err)
		}
		os.Exit(exit)
	}
}

// toolsInPath returns a PATH in which the stand-ins come first under the names of tools.
func toolsInPath(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		script := "#!/bin/sh\nexec " + standInPrefix + name + ` "$@"` + "\n"
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// standInForCurl makes one request. It knows -s, -f, -H, -d and -X. Exit codes are those of curl.
func standInForCurl(args []string, stdout io.Writer) (exit int, err error) {
	method, target, body, fail := "", "", "", false
	headers := http.Header{}
	for len(args) > 0 {
		flag := args[0]
		args = args[1:]
		switch {
		case flag == "-s":
			continue
		case flag == "-f", flag == "-sf":
			fail = true
			continue
		case !strings.HasPrefix(flag, "-") && target == "":
			target = flag
			continue
		case len(args) == 0 || flag != "-H" && flag != "-d" && flag != "-X":
			return 2, fmt.Errorf("%s is not known", flag)
		}
		value := args[0]
		args = args[1:]
		switch flag {
		case "-H":
			name, text, _ := strings.Cut(value, ":")
			headers.Set(name, strings.TrimSpace(text))
		case "-d":
			body = value
		case "-X":
			method = value
		}
	}
	if body != "" && method == "" {
		method = http.MethodPost
	}
	if body != "" && headers.Get("Content-Type") == "" {
		headers.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request, err := http.NewRequest(method, "http://"+strings.TrimPrefix(target, "http://"),
		strings.NewReader(body))
	if err != nil {
		return 3, err
	}
	request.Header = headers
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 7, err
	}
	defer answer.Body.Close()
	if fail && answer.StatusCode >= 400 {
		return 22, errors.New(answer.Status)
	}
	if _, err := io.Copy(stdout, answer.Body); err != nil {
		return 18, err
	}
	return 0, nil
}

// standInForSQLite runs one UPDATE, which prints nothing, on a server's database. Its arguments are
// -cmd, .timeout with milliseconds, the file and the statement.
func standInForSQLite(args []string, _ io.Writer) (exit int, err error) {
	if len(args) != 4 || args[0] != "-cmd" || filepath.Base(args[2]) != "posttrade.db" ||
		!strings.HasPrefix(args[3], "UPDATE ") {
		return 1, fmt.Errorf("%q are not known", args)
	}
	millis, err := strconv.Atoi(strings.TrimPrefix(args[1], ".timeout "))
	if err != nil {
		return 1, err
	}
	if _, err := os.Stat(args[2]); err != nil {
		return 1, err
	}
	db, err := store.Open(store.Options{Dir: filepath.Dir(args[2]),
		BusyTimeout: time.Duration(millis) * time.Millisecond})
	if err != nil {
		return 1, err
	}
	err = db.Write(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(args[3])
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return 1, err
	}
	return 0, nil
}

// TestStandInsKnowNoMoreThanTheDocuments: what they do not do is an error, not another outcome.
func TestStandInsKnowNoMoreThanTheDocuments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "posttrade.db")
	for _, line := range [][]string{
		{"curl", "-o", "file", "localhost:1"}, {"curl", "--json", "{}", "localhost:1"},
		{"curl", "-s", "localhost:1", "localhost:2"}, {"curl", "-H"}, {"curl", "-N", "localhost:1"},
		{"curl", "-s", "127.0.0.1:1"}, // refuses connections
		{"sqlite3", file, "UPDATE trades SET quantity = 1"},
		{"sqlite3", "-cmd", ".timeout 1", file, "SELECT 1"},
		{"sqlite3", "-cmd", ".mode csv", file, "UPDATE trades SET quantity = 1"},
		{"sqlite3", "-cmd", ".timeout 1", file, "UPDATE trades SET quantity = 1"}, // no such file
	} {
		if exit, err := standIns[line[0]](line[1:], io.Discard); exit == 0 || err == nil {
			t.Errorf("%q: exit %d, %v", line, exit, err)
		}
	}
}
