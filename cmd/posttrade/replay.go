package main

import (
	"io"

	"posttrade/app/settings"
	"posttrade/perf/replay"
)

// runReplay is `posttrade replay`.
//
// What it measures and prints is in perf/replay; here are only the flags. It needs a server at
// --url unless the flow runs in this process.
func runReplay(args []string, stdout, stderr io.Writer) int {
	var o replay.Flow
	f := newFlags("replay [flags] <file.csv> | --lobster=dir | --synthetic=n",
		"Sends an order flow to a running server (--url) or through an engine in this process,\n"+
			"then prints throughput and latency. See perf/orderflow for the CSV form.")
	o.Declare(f.FlagSet)
	cfg, err := f.read(args, 1, stdout)
	if err == nil {
		r := replay.Command{InProcess: replay.InProcess}
		err = r.Run(cfg, &o, f.rest, stdout, stderr)
	}
	return settings.Exit(stderr, err)
}
