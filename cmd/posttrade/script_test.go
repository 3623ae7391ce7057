package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts call this test binary as "posttrade".
func TestMain(m *testing.M) {
	programs := map[string]func(){"posttrade": main}
	for name := range standIns {
		programs[standInPrefix+name] = standIn(name)
	}
	testscript.Main(m, programs)
}

// TestScripts runs testdata/script: the command line as a user sees it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "oneline": oneLine,
		},
	})
}

// exits runs "exits CODE command args...": the command must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args...]")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = "?"
		if coder, ok := err.(interface{ ExitCode() int }); ok {
			got = string(rune('0' + coder.ExitCode()))
		}
	}
	if got != args[0] {
		ts.Fatalf("%v exits %s, want %s", args[1:], got, args[0])
	}
}

// oneLine runs "oneline file": the file, stdout or stderr, holds exactly one line.
func oneLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: oneline file")
	}
	text := ts.ReadFile(args[0])
	for i, b := range []byte(text) {
		if b == '\n' && i != len(text)-1 {
			ts.Fatalf("%s has more than one line: %q", args[0], text)
		}
	}
	if text == "" || text[len(text)-1] != '\n' {
		ts.Fatalf("%s is not one line: %q", args[0], text)
	}
}
