package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"posttrade/sidecars/store"
)

// serverVariable names a server to use instead of a private one.
const serverVariable = "POSTTRADE_TEST_POSTGRES"

// errNoPostgres says that there is neither a server nor the programs to start one.
var errNoPostgres = errors.New("neither " + serverVariable +
	" nor the programs postgres and initdb are there")

// theServer is the only package state in this module. A server takes a second to start, so all
// tests of a binary share one, and without a TestMain there is no other place for it.
var theServer = sync.OnceValues(startServer)

// server is a server in which databases can be made.
//
// A server that the environment names has neither keeper nor lifeline.
type server struct {
	admin    *url.URL // of a database that always exists
	keeper   *exec.Cmd
	lifeline *os.File // the keeper ends the server when this closes, which the end of the process does
}

// startServer finds a server or starts a private one.
//
// errNoPostgres is the only error that means "test SQLite alone"; with any other one the tests
// fail.
func startServer() (*server, error) {
	if text := os.Getenv(serverVariable); text != "" {
		admin, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("storetest: %s is not a URL", serverVariable)
		}
		return &server{admin: admin}, nil
	}
	programs, err := findPrograms(debianPrograms)
	if err != nil {
		return nil, err
	}
	return startPrivate(programs, nil)
}

// debianPrograms is the folder in which Debian has a folder for each major version.
const debianPrograms = "/usr/lib/postgresql"

// findPrograms returns the folder that holds initdb and postgres: the one in PATH, or the newest of
// Debian's.
func findPrograms(debian string) (string, error) {
	folders, _ := filepath.Glob(debian + "/*/bin")
	slices.SortFunc(folders, func(a, b string) int { return major(b) - major(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = slices.Insert(folders, 0, filepath.Dir(path))
	}
	for _, folder := range folders {
		_, err1 := exec.LookPath(filepath.Join(folder, "initdb"))
		_, err2 := exec.LookPath(filepath.Join(folder, "postgres"))
		if err1 == nil && err2 == nil {
			return folder, nil
		}
	}
	return "", errNoPostgres
}

// major is the version in .../postgresql/<version>/bin.
func major(folder string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
	return n
}

// keeperScript starts the server and ends it when its standard input closes. The test process holds
// the other end and never writes. The kernel closes that end when the process ends, by a return, a
// panic, a timeout or SIGKILL. The keeper ignores the signals of the terminal.
//
// It writes "ready" or the reason why not to standard output. $1 the programs, $2 the folder.
const keeperScript = `
trap '' INT TERM HUP QUIT
if ! "$1/initdb" -D "$2/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$2/log" 2>&1; then
  cat "$2/log"; echo failed; rm -rf "$2"; exit 1
fi
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c full_page_writes=off \
  -c max_connections=60 -c shared_buffers=64MB -c autovacuum=off >>"$2/log" 2>&1 </dev/null &
server=$!
echo started
read -r _
kill -QUIT $server
wait $server
rm -rf "$2"
`

// startPrivate starts the keeper and waits until the server takes connections. The keeper and the
// server hold the file witness open for as long as they live; nil = none.
//
// It takes seconds, for initdb above all. The server listens on a socket in its folder and on no
// port, and it syncs nothing: it is for tests of what this code does, not of what a disk does.
func startPrivate(programs string, witness *os.File) (*server, error) {
	dir, err := os.MkdirTemp("", "posttrade-pg-")
	const longest = 80 // the system allows 107 bytes for a socket's path
	if err == nil && len(dir) > longest {
		long := dir
		dir, err = os.MkdirTemp("/tmp", "posttrade-pg-")
		err = errors.Join(err, os.Remove(long))
	}
	if err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	keeper := exec.Command("/bin/sh", "-c", keeperScript, "keeper", programs, dir)
	keeper.Dir = dir
	if witness != nil {
		keeper.ExtraFiles = []*os.File{witness}
	}
	if err := apart(keeper, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("storetest: another user for the server: %w", err),
			os.RemoveAll(dir))
	}
	s := &server{keeper: keeper,
		admin: &url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres",
			RawQuery: url.Values{"host": {dir}}.Encode()}}
	if err := s.launch(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, s.await(dir)
}

// launch starts the keeper with a pipe to it and one from it, and without a goroutine: the tests
// that use this rig may check for goroutines that were left behind.
//
// It returns when initdb has succeeded and the server was started, which is before the server takes
// connections.
func (s *server) launch() error {
	in, lifeline, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("storetest: %w", err)
	}
	answers, out, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("storetest: %w", err), in.Close(), lifeline.Close())
	}
	s.keeper.Stdin, s.keeper.Stdout, s.lifeline = in, out, lifeline
	err = errors.Join(s.keeper.Start(), in.Close(), out.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("storetest: start the keeper: %w", err),
			answers.Close(), lifeline.Close())
	}
	var said strings.Builder
	for line := make([]byte, 1024); !strings.HasSuffix(said.String(), "started\n"); {
		n, err := answers.Read(line)
		said.Write(line[:n])
		if err != nil {
			return errors.Join(fmt.Errorf("storetest: initdb: %s", said.String()),
				answers.Close(), lifeline.Close())
		}
	}
	return answers.Close()
}

// await waits until the server takes connections.
func (s *server) await(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := store.Administer(ctx, s.admin.String(), "select 1")
		if err == nil {
			return nil
		}
		pause := time.NewTimer(20 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			return fmt.Errorf("storetest: the server does not start: %w\n%s", err, log)
		}
	}
}

// unprivileged returns the user of Debian's package, or the user nobody.
func unprivileged() (uint32, uint32, error) {
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, err
	}
	uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
	return uint32(uid), uint32(gid), errors.Join(err1, err2)
}
