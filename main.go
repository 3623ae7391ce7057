package main

import "os"

func main() {
	os.Exit(dispatch(commands(), os.Args[1:], os.Stdout, os.Stderr))
}

// commands is every subcommand, in the order in which -h lists them.
func commands() []command {
	return []command{
		{"serve", "run everything", runServe},
		{"config", "print every setting with value, default, source and meaning", runConfig},
		{"token", "mint an access token with the local secret", runToken},
		{"replay", "send an order flow and show throughput and latency", replayCommand{inProcess: inProcessVenues}.run},
		{"journal", "verify, measure or export the journal", runJournal},
		{"snapshot", "write a snapshot at the journal's head", runSnapshot},
		{"perf", "measure this build on this machine", runPerf},
		{"version", "print commit, Go version and platform", runVersion},
	}
}
