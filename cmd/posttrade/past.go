package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"posttrade/app/inspect"
	"posttrade/app/settings"
	"posttrade/app/top"
)

// inspectUsage is the forms of the command.
const inspectUsage = "inspect [--at=N] book TICKER | positions | orders | ... | diff " +
	"--from=A --to=B |" +
	" step"

// runInspect is `posttrade inspect`: the past of a journal, without a server.
//
// --at and --to of 0 are sequences, so their default, the head, is told from them by whether the
// flag is given. step takes the terminal: it reads single keys from stdin, and gives the terminal
// back as it was at the end.
func runInspect(args []string, stdout, stderr io.Writer) int {
	f := newFlags(inspectUsage,
		"Shows the state after any sequence of the journal in data.dir, also while a server has it "+
			"open. Changes nothing.\n"+
			"  book TICKER, orders, order ID, positions, credit, trades, contracts, contract ID, "+
			"accounts,\n"+
			"  controls\n"+
			"                      as they were after --at (default: the head); lists may end with: "+
			"account NUMBER\n"+
			"  diff                what the commands after --from, up to --to, have changed, and which "+
			"commands it was\n"+
			"  step                walks from --at command by command: n next, b back, f next fill of a "+
			"ticker, q quit")
	at := f.Uint64("at", 0, "the `sequence`; 0 is the state before the first command (default: "+
		"the head)")
	from := f.Uint64("from", 0, "diff: the `sequence` to compare with")
	to := f.Uint64("to", 0, "diff: the `sequence` to compare (default: the head)")
	depth := f.Int("depth", 0, "book: `levels` a side (default 100)")
	asJSON := f.Bool("json", !terminal(stdout),
		"print the JSON of GET /as-of/{sequence}/..., not a table (default: unless stdout is a terminal)")
	c, err := f.read(args, 4, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if len(f.rest) == 0 {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", inspectUsage))
	}
	return settings.Exit(stderr, withPast(c, func(ctx context.Context, p *inspect.Past) error {
		head := p.History().Head()
		if !f.given("at") {
			*at = head
		}
		if !f.given("to") {
			*to = head
		}
		switch f.rest[0] {
		case "diff":
			return p.Diff(ctx, stdout, *from, *to, f.rest[1:])
		case "step":
			if len(f.rest) > 1 {
				return settings.Usagef("unexpected argument %s", settings.Printable(f.rest[1]))
			}
			restore, err := top.SingleKeys(os.Stdin)
			if err != nil {
				return err
			}
			return errors.Join(p.Step(ctx, os.Stdin, stdout, *at), restore())
		}
		return p.Show(ctx, stdout, *at, f.rest, *depth, *asJSON)
	}))
}

// runWhy is `posttrade why`.
//
// The forms of the ids do not overlap, so one argument says which kind it is.
func runWhy(args []string, stdout, stderr io.Writer) int {
	f := newFlags("why [--json] ord-N|SW-N|SWPT-N|SEQUENCE",
		"Explains what became of an order, why a contract was booked, or the decision on any command, "+
			"from the journal\n"+
			"in data.dir: the check, its two sides, and the commands that put them there. Changes nothing.")
	asJSON := f.Bool("json", !terminal(stdout),
		"print the JSON of GET /orders/{id}/why, not sentences (default: unless stdout is a terminal)")
	c, err := f.read(args, 1, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if len(f.rest) == 0 {
		return settings.Exit(stderr,
			settings.Usagef("the id is missing: ord-N, SW-N, SWPT-N or a sequence"))
	}
	return settings.Exit(stderr, withPast(c, func(ctx context.Context, p *inspect.Past) error {
		return p.Why(ctx, stdout, f.rest[0], *asJSON)
	}))
}

// terminal reports that people read what is written: then a command prints tables, or progress.
func terminal(w io.Writer) bool {
	file, ok := behind(w).(*os.File)
	return ok && top.OnTerminal(file)
}

// withPast opens the journal in data.dir for reading, as it is at the call, and closes it behind f.
// A running server keeps its lock and notices nothing. A signal ends the context of f.
func withPast(c *settings.Config, f func(context.Context, *inspect.Past) error) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p, err := inspect.Open(c.String("data.dir"), c.String("journal.archive-dir"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return f(ctx, p)
}

// runWhatIf is `posttrade what-if`.
//
// Ctrl-C is no failure of the comparison: what was compared is printed, and the exit code is 1.
func runWhatIf(args []string, stdout, stderr io.Writer) int {
	f := newFlags("what-if --from=A --to=B [--set NAME=VALUE] [--without-account N] [--halt "+
		"TICKER@SEQ] ...",
		"Decides the commands of the journal in data.dir anew, with something changed, and prints what "+
			"comes out\n"+
			"differently: orders, trades, and profit and loss per account at the last prices. The gate's "+
			"refusals are decided\n"+
			"anew too. What a strategy would have done instead is not modelled. Changes nothing. Ctrl-C "+
			"prints what there is.")
	var o inspect.WhatIf
	f.Uint64Var(&o.From, "from", 1, "first `sequence`")
	f.Uint64Var(&o.To, "to", 0, "last `sequence` (default: the head)")
	list := func(name, help string, to *[]string) {
		f.Func(name, help+"; may be repeated", func(text string) error {
			*to = append(*to, text)
			return nil
		})
	}
	list("set", "another `limit`, as NAME=VALUE: risk.price.collar-bps=100", &o.Set)
	list("without-account", "leave out what an `account` has sent", &o.Without)
	list("halt", "halt a security before a sequence: `TICKER@SEQ`", &o.Halt)
	list("price", "set a market price before a sequence: `TICKER=PRICE@SEQ`", &o.Price)
	list("latency", "delay an account: `account=N,ms=M`", &o.Latency)
	f.BoolVar(&o.JSON, "json", false, "print every difference as a line of JSON")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if terminal(stderr) {
		o.Progress = stderr
	}
	return settings.Exit(stderr, withPast(c, func(ctx context.Context, p *inspect.Past) error {
		if !f.given("to") {
			o.To = p.History().Head()
		}
		out := bufio.NewWriterSize(stdout, 1<<16)
		return errors.Join(p.WhatIf(ctx, out, &o), out.Flush())
	}))
}
