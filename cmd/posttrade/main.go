package main

import "os"

// main ends the process with the exit code that the command returns. Only serve ends it elsewhere:
// after a failure of the journal.
func main() {
	os.Exit(dispatch(commands(), os.Args[1:], os.Stdout, os.Stderr))
}

// commands is every subcommand, in the order in which -h lists them.
//
// It is a function, not a variable, because help and completion list it too, and they are in it.
// Aliases that other programs use, such as RiskExtractMain, are commands like any other.
func commands() []command {
	return []command{
		{"serve", "run everything", runServe},
		{"health", "ask the server that runs on data.dir whether it admits orders", runHealth},
		{"stop", "end the server that runs on data.dir", runStop},
		{"config", "print every setting with value, default, source and meaning", runConfig},
		{"token", "mint an access token with the local secret", runToken},
		{"replay", "send an order flow and show throughput and latency", runReplay},
		{"journal", "verify, measure or export the journal", runJournal},
		{"inspect", "show the state after any sequence, what changed, or walk through", runInspect},
		{"why", "explain what became of an order, or any decision", runWhy},
		{"what-if", "decide a part of the history anew, with something changed", runWhatIf},
		{"evidence", "prove records of the journal to a stranger, and check such proofs", runEvidence},
		{"snapshot", "write a snapshot at the journal's head", runSnapshot},
		{"backup", "keep the journal of a running server in a directory", runBackup},
		{"restore", "make an installation from backups", runRestore},
		{"recon", "show how the projection compares with the journal", runRecon},
		{"export", "write trades, blotter or positions as CSV or Parquet", runExport},
		{"tca", "show what a trade cost against its benchmarks", runTCA},
		{"risk-extract", "rebuild: render the files of a stored cut again", runRiskExtract},
		{"RiskExtractMain", "risk-extract under its old name: --rebuild", runRiskExtractMain},
		{"source", "show the control sources, or begin a new epoch of one", runSource},
		{"top", "watch what a running server is doing", runTop},
		{"watch", "print what changes: books, trades, orders, prices, controls, contracts", runWatch},
		{"cluster", "show the members of a cluster, add or remove one, go on alone", runCluster},
		{"perf", "measure this build on this machine", runPerf},
		{"completion", "print a script that completes commands in bash, zsh or fish", runCompletion},
		{"version", "print commit, Go version and platform", runVersion},
	}
}
