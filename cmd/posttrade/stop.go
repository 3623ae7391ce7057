package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"posttrade/app/settings"
	"posttrade/journal"
)

// stopLook is how often stop looks whether the server has ended: the process is not a child, so
// nothing tells stop when it ends.
const stopLook = 20 * time.Millisecond

// runStop is `posttrade stop`: it ends the server that runs on data.dir.
//
// The server is found by its locks (serverOn); no file with a process id is read, which could name
// another process after a crash.
func runStop(args []string, stdout, stderr io.Writer) int {
	f := newFlags("stop [flags]",
		"Ends the server that runs on data.dir as SIGTERM does, and waits until it has ended.\n"+
			"Exit 0 when it has, and when no server runs; 1 when it has not ended after --timeout, and\n"+
			"when data.dir does not exist or this user may not look into it.")
	timeout := f.Duration("timeout", time.Minute, "how long to wait for the end")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	return settings.Exit(stderr, stopServer(c, *timeout, stdout))
}

// stopServer sends the signal and waits. Only Linux says which process holds a lock. That no server
// runs is success: what was asked for holds.
func stopServer(c *settings.Config, timeout time.Duration, stdout io.Writer) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("stop: %s does not say which process has a journal open; end the server by "+
			"Ctrl-C", runtime.GOOS)
	}
	// A wrong path must not look like a server that has ended.
	if _, err := os.Stat(c.String("data.dir")); err != nil {
		return fmt.Errorf("data.dir %s: it is not known whether a server runs: %w",
			c.String("data.dir"), settings.Cause(err))
	}
	pid, err := serverOn(c)
	if err != nil {
		return fmt.Errorf("data.dir %s: it is not known whether a server runs: %w",
			c.String("data.dir"), err)
	}
	if pid == 0 {
		_, err := fmt.Fprintf(stdout, "no server runs on %s\n", c.String("data.dir"))
		return err
	}
	if err := end(pid); err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	if err := awaitEnd(c, pid, timeout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "stopped process %d\n", pid)
	return err
}

// serverOn is the process that serves data.dir, 0 for none. It has the lock of data.dir from its
// start to its end. A server of an older build has the journal's lock alone, while it has that
// open.
func serverOn(c *settings.Config) (pid int, err error) {
	if pid, err = journal.Holder(c.String("data.dir")); pid == 0 && err == nil {
		pid, err = journal.Holder(c.InDataDir("journal"))
	}
	return pid, err
}

// awaitEnd waits until a process no longer serves data.dir.
//
// Another process that serves it by then, such as a new server, counts as the end of the first.
func awaitEnd(c *settings.Config, pid int, timeout time.Duration) error {
	late := time.After(timeout)
	look := time.NewTicker(stopLook)
	defer look.Stop()
	for {
		if now, err := serverOn(c); now != pid {
			return err
		}
		select {
		case <-look.C:
		case <-late:
			return fmt.Errorf("process %d has not ended after %s", pid, timeout)
		}
	}
}

// end sends SIGTERM. A process that has ended meanwhile is no error.
func end(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
