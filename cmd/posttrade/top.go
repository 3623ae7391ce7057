package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"posttrade/app/settings"
	"posttrade/app/stats"
	"posttrade/app/top"
)

// The intervals of posttrade top. The server writes its figures every stats.Every, so a shorter
// interval would show the same ones again.
const (
	topInterval    = time.Second
	minTopInterval = stats.Every
	maxTopInterval = time.Hour
)

// runTop is `posttrade top`.
//
// It reads the file that the server writes and makes no request, so it also shows a server that
// answers none.
func runTop(args []string, stdout, stderr io.Writer) int {
	f := newFlags("top [--once] [--interval=1s] [flags]",
		"Shows what the server on data.dir is doing, from the figures that it writes there every 100 "+
			"ms: no request is made.\n"+
			"Rates and percentiles are of the time between two looks; a percentile is the upper bound of "+
			"its bucket, a mean wait\n"+
			"is how many commands were in a stage by how many left it. q or ctrl-c ends. Without a "+
			"terminal the frames follow one\n"+
			"another as plain text. NO_COLOR turns colours off. Without a running server there is "+
			"one line,"+
			" and exit code 1.")
	once := f.Bool("once", false, "print one frame, of one interval, and end")
	interval := f.Duration("interval", topInterval, "`time` between two looks, 100ms..1h")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if *interval < minTopInterval || *interval > maxTopInterval {
		return settings.Exit(stderr, settings.Usagef("flag --interval: %v is not within %v..%v",
			*interval,
			minTopInterval, maxTopInterval))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	t := &top.Screen{Path: c.InDataDir("stats"), Interval: *interval, Now: time.Now}
	if *once {
		return settings.Exit(stderr, t.Once(ctx, stdout))
	}
	return settings.Exit(stderr, t.Live(ctx, os.Stdin, behind(stdout)))
}
