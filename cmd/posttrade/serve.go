package main

import (
	"context"
	"io"
	"os/signal"
	"syscall"

	"posttrade/app/installation"
	"posttrade/app/settings"
)

// runServe is `posttrade serve`. It returns when the installation has stopped in order, or a part
// of it has failed. SIGINT and SIGTERM begin the stop; app/installation has the steps. stdout gets
// the lines that say where the services listen, stderr the log and the last line.
func runServe(args []string, stdout, stderr io.Writer) int {
	f := newFlags("serve [flags]",
		"Runs everything, on embedded defaults unless a setting says otherwise. Stops in order on "+
			"SIGINT and SIGTERM;\n"+
			"SIGHUP reads certificates, the secrets of tokens and log.level again.")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return installation.ServeToTheEnd(ctx, c, installation.EngineOptions(c), stdout,
		installation.NewFatalStderr(stderr))
}
