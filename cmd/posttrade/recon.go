package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"posttrade/app/settings"
	"posttrade/httpapi/client"
	"posttrade/matcher"
)

// reconUsage is the forms of the command.
const reconUsage = "recon status|breaks|repair [flags]"

// runRecon is `posttrade recon`: it shows the reconciliation to an operator, and repairs rows.
//
// All of it is asked of the trade-processor of the running server; only repair changes rows.
func runRecon(args []string, stdout, stderr io.Writer) int {
	var class, reason string
	var dry bool
	f := newFlags(reconUsage,
		"Asks the server that runs on data.dir how the projection compares with the journal.\n"+
			"  status   how far reconciliation has come and what it counts\n"+
			"  breaks   what is open, with the fields that differ; --class narrows it\n"+
			"  repair trd-1..trd-900   makes those rows again from the journal; each row as it was is kept")
	f.StringVar(&class, "class", "", "only breaks of this `class`: MISSING_IN_PROJECTION, "+
		"FIELD_MISMATCH, ORPHAN_IN_PROJECTION or EXTERNAL")
	f.BoolVar(&dry, "dry-run", false, "with repair: show what would be made again, and change nothing")
	f.StringVar(&reason, "reason", "", "with repair: why, for the record (`text`)")
	c, err := f.read(args, 2, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	show, err := reconCommand(f.rest, class, reason, dry)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	server, err := localClient(c, "trade-processor", time.Now())
	if err != nil {
		return settings.Exit(stderr, err)
	}
	defer server.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return settings.Exit(stderr, show(ctx, server, stdout))
}

// reconCommand returns what the arguments ask for. It asks no server, so a wrong command line is an
// error also while none runs.
func reconCommand(args []string, class, reason string,
	dry bool) (func(context.Context, *client.Client, io.Writer) error, error) {
	if len(args) == 2 && args[0] == "repair" {
		q, err := repairRange(args[1])
		q.DryRun = dry
		return func(ctx context.Context, s *client.Client, w io.Writer) error {
			return repairRows(ctx, s.Because(reason), q, w)
		}, err
	}
	if dry || reason != "" {
		return nil, settings.Usagef("--dry-run and --reason go with recon repair")
	}
	switch strings.Join(args, " ") {
	case "status":
		return showReconStatus, nil
	case "breaks":
		return func(ctx context.Context, s *client.Client, w io.Writer) error {
			return showBreaks(ctx, s, class, w)
		}, nil
	}
	return nil, settings.Usagef("usage: posttrade %s", reconUsage)
}

// repairRange reads trd-1..trd-900, or the id of one trade. Both ends are inclusive.
func repairRange(text string) (q client.RepairQuery, err error) {
	first, last, both := strings.Cut(text, "..")
	if !both {
		last = first
	}
	from, ok := matcher.ParseTradeID(first)
	to, also := matcher.ParseTradeID(last)
	if !ok || !also || to < from {
		return q, settings.Usagef("%s is not a range of trades such as trd-1..trd-900",
			settings.Printable(text))
	}
	return client.RepairQuery{From: first, To: last}, nil
}

// repairRows repairs, and shows which rows and how they were. The server keeps the rows as they
// were under the number of the repair, 0 for a dry run. The list of a large repair may be cut
// (Truncated); the counts are of all of it.
func repairRows(ctx context.Context, server *client.Client, q client.RepairQuery,
	w io.Writer) error {
	done, err := server.RepairRows(ctx, q)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(done.Items) > 0 {
		fmt.Fprintln(t, "trade\twhat differed")
	}
	for _, item := range done.Items {
		fmt.Fprintf(t, "%s\t%s\n", item.TradeID, strings.Join(item.Fields, ","))
	}
	if done.Truncated {
		fmt.Fprintf(t, "and %d more\n", done.Repaired-uint64(len(done.Items)))
	}
	verb := "made again"
	if done.DryRun {
		verb = "to be made again (dry run: nothing was changed)"
	}
	fmt.Fprintf(t, "compared %d, right %d, %s %d, not projected yet %d\n", done.Checked, done.Matched,
		verb, done.Repaired, done.Pending)
	if done.RepairID != 0 {
		fmt.Fprintf(t, "repair %d; the rows as they were: recon_repaired_rows where repair = %d\n",
			done.RepairID, done.RepairID)
	}
	return t.Flush()
}

// showReconStatus prints the counts of the reconciliation, for people. compared is how many fills
// of the journal have a class, and lag how many have none yet. The four lines behind compared are
// the present tallies by class.
func showReconStatus(ctx context.Context, server *client.Client, w io.Writer) error {
	s, err := server.ReconStatus(ctx)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "compared\t%d\n", s.Cursor)
	fmt.Fprintf(t, "matched\t%d\n", s.Matched)
	fmt.Fprintf(t, "missing in projection\t%d\n", s.MissingInProjection)
	fmt.Fprintf(t, "field mismatch\t%d\n", s.FieldMismatch)
	fmt.Fprintf(t, "orphans\t%d\n", s.Orphans)
	fmt.Fprintf(t, "lag\t%d\n", s.Lag)
	fmt.Fprintf(t, "bookings from outside\t%d\n", s.External)
	fmt.Fprintf(t, "of these not confirmed\t%d\n", s.ExternalUnmatched)
	fmt.Fprintf(t, "last sweep\t%s\n", instant(s.LastSweepAt))
	fmt.Fprintf(t, "last orphan sweep\t%s\n", instant(s.LastOrphanSweepAt))
	return t.Flush()
}

// instant formats a time, or says that there is none.
func instant(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// showBreaks prints all open breaks, page by page; an empty class is every class. The lines are
// held until the end, because a table needs the width of all its columns.
func showBreaks(ctx context.Context, server *client.Client, class string, w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\ttrade\tfields\tfirst seen\tlast seen")
	cursor := ""
	for {
		page, err := server.ReconBreaks(ctx, class, 1000, cursor)
		if err != nil {
			return err
		}
		for _, b := range page.Items {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", b.Class, b.TradeID, strings.Join(b.Fields, ","),
				instant(b.FirstSeenAt), instant(b.LastSeenAt))
		}
		if cursor = page.NextCursor; cursor == "" {
			return t.Flush()
		}
	}
}
