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
		{"replay", "send an order flow and show throughput and latency", runReplay},
		{"journal", "verify, measure or export the journal", runJournal},
		{"snapshot", "write a snapshot at the journal's head", runSnapshot},
		{"recon", "show how the projection compares with the journal", runRecon},
		{"tca", "show what a trade cost against its benchmarks", runTCA},
		{"risk-extract", "render the files of a stored cut again", runRiskExtract},
		{"RiskExtractMain", "the same, as --rebuild", runRiskExtractMain},
		{"source", "show the control sources, or begin a new epoch of one", runSource},
		{"top", "watch what a running server is doing", runTop},
		{"cluster", "show the members of a cluster, add or remove one", runCluster},
		{"perf", "measure this build on this machine", runPerf},
		{"version", "print commit, Go version and platform", runVersion},
	}
}
