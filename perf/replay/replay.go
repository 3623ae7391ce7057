package replay

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/app/latency"
	"posttrade/app/settings"
)

// Command sends a flow. InProcess opens an engine in this process, for a replay without --url; nil
// where only --url may be given. It is a field, so that tests and programs without an engine can
// leave it out.
type Command struct {
	// InProcess returns how to open a venue, and how to stop the engine behind all of them. stop is
	// called once, after the last venue was closed.
	InProcess func(c *settings.Config) (open venues, stop func() error, err error)
}

// Run checks the options, sends the flow, and reports. rest is what the command line has beside
// flags: the flow's file.
//
// Errors: settings.Usagef for flags that do not go together; settings.ErrMismatch when --check
// found another book; else the flow's, the venue's or a file's. Refusals of single orders are no
// error, but for a flow of which most are refused for the market price. It blocks until the flow
// has ended.
func (r Command) Run(cfg *settings.Config, o *Flow, rest []string,
	stdout, stderr io.Writer) error {
	if err := o.valid(rest); err != nil {
		return err
	}
	if o.prefix == "" {
		o.prefix = "r" + strconv.FormatInt(time.Now().UnixMilli(), 36) + "-"
	}
	return r.replay(cfg, o, rest, stdout, stderr)
}

// replay opens the flow and the venue, sends, and reports. The time runs from the first step read
// to the last answer; opening connections and setting prices are not in it. Nothing is printed of a
// replay that failed.
func (r Command) replay(cfg *settings.Config, o *Flow, rest []string,
	stdout, stderr io.Writer) (err error) {
	flow, err := o.open(rest)
	if err != nil {
		return err
	}
	defer flow.close()
	if o.write != "" {
		return writeFlow(o.write, flow, stdout)
	}
	open, stop, err := r.venues(cfg, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if o.setsPrices {
		if err := o.setPrices(open, rest); err != nil {
			return err
		}
	}
	d, err := newDriver(open, o.connections, o.batch, o.rate)
	if err != nil {
		return err
	}
	defer d.close()

	stopProgress := showProgress(stderr, o.progress, &d.done, flow.total)
	begin := time.Now()
	var check *lobsterCheck
	if o.check {
		check = &lobsterCheck{flow: flow.lobster, worker: d.workers[0]}
		err = check.run()
	} else {
		err = d.run(flow)
	}
	elapsed := time.Since(begin)
	stopProgress()
	if err != nil {
		return err
	}
	if err := report(stdout, o, flow, d, elapsed); err != nil {
		return err
	}
	if check != nil {
		return check.verdict(stdout)
	}
	t := d.totals()
	return o.otherPrices(t.Reasons, int64(t.Steps))
}

// venues opens connections over HTTP, or in process for a replay without --url. The second function
// stops what is behind them.
func (r Command) venues(cfg *settings.Config,
	o *Flow) (venues, func() error, error) {
	if o.url == "" {
		if r.InProcess == nil {
			return nil, nil, settings.Usagef("replay needs --url")
		}
		return r.InProcess(cfg)
	}
	open, err := httpVenues(o.url, o.token)
	return open, func() error { return nil }, err
}

// report prints what was sent, the rate, and the times by action. The file of --hgrm has the
// distribution of all steps together.
func report(stdout io.Writer, o *Flow, flow *openFlow, d *driver,
	elapsed time.Duration) error {
	t := d.totals()
	fmt.Fprintf(stdout, "%s: %d steps in %s, %.0f steps/s, %d connections, batch %d",
		flow.name, t.Steps, latency.Short(elapsed), float64(t.Steps)/elapsed.Seconds(), o.connections,
		o.batch)
	if o.rate > 0 {
		fmt.Fprintf(stdout, ", open loop at %.0f/s", o.rate)
	}
	fmt.Fprintf(stdout, "\naccepted %d, refused %d, gone %d, not sent %d, retried %d\n",
		t.Accepted, t.Refused, t.Gone, t.Untracked, t.Retried)
	if len(t.Reasons) > 0 {
		var words []string
		for _, reason := range slices.Sorted(maps.Keys(t.Reasons)) {
			words = append(words, fmt.Sprintf("%s %d", reason, t.Reasons[reason]))
		}
		fmt.Fprintf(stdout, "refusals: %s\n", strings.Join(words, ", "))
	}
	names, rows := d.latencies()
	if err := latency.WriteTable(stdout, names, rows); err != nil {
		return err
	}
	if o.hgrm == "" {
		return nil
	}
	file, err := os.Create(o.hgrm)
	if err != nil {
		return fmt.Errorf("replay: --hgrm %s: %w", o.hgrm, settings.Cause(err))
	}
	return errors.Join(rows[len(rows)-1].WriteHgrm(file), file.Close())
}
