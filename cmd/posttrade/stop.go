package main

import (
	"fmt"
	"io"
	"syscall"
	"time"

	"posttrade/app/settings"
	"posttrade/journal"
)

// stopLook is how often stop looks whether the server has ended.
const stopLook = 20 * time.Millisecond

// runStop is `posttrade stop`: it ends the server that runs on data.dir.
func runStop(args []string, stdout, stderr io.Writer) int {
	f := newFlags("stop [flags]",
		"Ends the server that runs on data.dir as SIGTERM does, and waits until it has ended.\n"+
			"Exit 0 when it has, and when no server runs; 1 when it has not ended after --timeout.")
	timeout := f.Duration("timeout", time.Minute, "how long to wait for the end")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	return settings.Exit(stderr, stopServer(c, *timeout, stdout))
}

func stopServer(c *settings.Config, timeout time.Duration, stdout io.Writer) error {
	dir := c.InDataDir("journal")
	pid := journal.InUse(dir)
	if pid == 0 {
		_, err := fmt.Fprintf(stdout, "no server runs on %s\n", c.String("data.dir"))
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	late := time.After(timeout)
	look := time.NewTicker(stopLook)
	defer look.Stop()
	for journal.InUse(dir) == pid {
		select {
		case <-look.C:
		case <-late:
			return fmt.Errorf("process %d has not ended after %s", pid, timeout)
		}
	}
	_, err := fmt.Fprintf(stdout, "stopped process %d\n", pid)
	return err
}
