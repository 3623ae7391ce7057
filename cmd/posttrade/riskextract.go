package main

import (
	"errors"
	"fmt"
	"io"

	"posttrade/app/settings"
	"posttrade/sidecars/riskextract"
)

const rebuildUsage = "risk-extract rebuild <cut> <positions.csv> <contracts.csv>"

// runRiskExtractMain is `posttrade RiskExtractMain --rebuild ...`, the name that other programs
// use.
func runRiskExtractMain(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "--rebuild" {
		args = append([]string{"rebuild"}, args[1:]...)
	}
	return runRiskExtract(args, stdout, stderr)
}

// runRiskExtract is `posttrade risk-extract rebuild`.
//
// It needs neither a server nor a journal: the folder of the cut has everything. The files are
// written where the last two arguments say.
func runRiskExtract(args []string, stdout, stderr io.Writer) int {
	f := newFlags(rebuildUsage,
		"Renders the two files of a stored cut again, from the cut's folder alone. Exit 3 when "+
			"anything in it\n"+
			"is not what it was.")
	if _, err := f.read(args, 4, stdout); err != nil {
		return settings.Exit(stderr, err)
	}
	if len(f.rest) != 4 || f.rest[0] != "rebuild" {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", rebuildUsage))
	}
	err := riskextract.Rebuild(f.rest[1], f.rest[2], f.rest[3])
	if errors.Is(err, riskextract.ErrMismatch) {
		err = fmt.Errorf("%w: %w", settings.ErrMismatch, err)
	}
	return settings.Exit(stderr, err)
}
