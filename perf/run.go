package perf

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"posttrade/app/settings"
)

// Options say what to measure and where to write.
type Options struct {
	Smoke  bool   // a hundredth of the work: checks that every row runs, not how fast
	Only   string // only rows with this text in the name; several texts are separated by commas
	Dir    string // where journals are written; removed afterwards
	Out    string // the results file; empty: perf/results/<commit>.<cpu>.txt
	Commit string
	Binary string // this program, for the rows that need a process of their own
	// Postgres is the URL of a server for the database rows, "" for none. The rows make tables of
	// their own there.
	Postgres string
	Lobster  string // a folder with LOBSTER files, "" for none
	Profiles string // the folder for CPU profiles of the servers under HTTP load, "" for none
	// how long the matcher's thread is observed for pauses; 0: as long as a full run allows
	Pause time.Duration
	// commands in the journal of the row that restarts; 0: as many as a full run has time for
	Restart int
	Config  *settings.Config // of the engines that a row needs in this process
	Stdout  io.Writer
	Stderr  io.Writer // the last words of such an engine
}

// Run collects the figures of one run.
type Run struct {
	o       Options
	env     Environment
	lines   []string
	targets []target
	section string

	farReadNs   float64 // when the row began
	jitterAfter string
	servers     int // with sessions, so far
}

type metric struct {
	value float64
	unit  string
}

type row struct {
	name    string
	measure func(*Run) error
	goals   []goal // what the performance table asks of it
}

// rows are all rows in the order in which they run.
func rows() []row {
	return []row{
		{"jitter", measureJitter, nil},
		{"ring", measureRing, []goal{ringSingle, ringRate, ringShared, ringBatch, ringTrip}},
		{"book", measureBook, []goal{
			bookLadder(1), bookLadder(32), bookSlowest(1), bookSlowest(32), bookSpread,
		}},
		{"realistic", measureRealistic, []goal{realisticWorst, realisticSpread}},
		{"lobster", measureLobster, nil},
		{"decision", measureDecision, []goal{decisionLadder(1), decisionLadder(32), decisionAllocs}},
		{"gate", measureGate, nil},
		{"codec", measureCodec, nil},
		{"journal", measureJournal, []goal{
			journalKeys, journalRate, journalBytes, journalStall, journalLongest, journalCommit,
		}},
		{"first-orders", measureFirstOrders, nil},
		{"end-to-end", measureEndToEnd, []goal{answersRate, answersFsync, answersOS}},
		{"session", measureSession, []goal{sessionTrip, sessionSpinning, sessionRate}},
		{"cluster", measureCluster, []goal{clusterTime, clusterTrip, clusterRate}},
		{"failover", measureFailover, []goal{failoverTime}},
		{"http", measureHTTP, []goal{httpOS, httpFsync, httpBatches, httpCPU, httpPath}},
		{"curve", measureCurves, []goal{
			flat("P6", "in-process/durability=fsync"), flat("P6", "in-process/durability=os"),
			flat("P7", "session/durability=fsync"), flat("P7", "session/durability=os"),
			flat("P8", "http/durability=fsync"), flat("P8", "http/durability=os"),
		}},
		{"recovery", measureRecovery, []goal{recoveryRate, recoveryRestart}},
		{"memory", measureMemory, []goal{memoryIdle, memoryLoaded}},
		{"heap", measureHeap, []goal{heapGrowth, heapAllocs}},
		{"pause", measurePause, []goal{longestPause}},
		{"downstream", measureDownstream, []goal{
			projectionRate("sqlite"), projectionRate("postgres"), reconTime("sqlite"),
			reconTime("postgres"), reportRate, reindexRate, costsTime,
		}},
		{"evidence", measureEvidence, []goal{evidenceRate, besideLog}},
		{"past", measurePast, []goal{pastMoment, pastNext, whatIfRate}},
		{"everything", measureEverything, []goal{besideAll, besideLock}},
		{"feeds", measureFeeds, []goal{gateWoken, gatePolled, deltasRate, bootstrapTime}},
		{"feed-replay", measureFeedReplay, []goal{besideDeltas, deltasAllocs}},
		{"fan-out", measureLiveFeed, []goal{feedTime, feedFanOutRate, besideClients, calmFeedTime}},
		{"cut", measureCut, []goal{besideCut}},
		{"backup", measureBackup, []goal{besideBackups}},
	}
}

// Measure runs the rows and writes the results file. It returns an error when a row could not be
// measured or measured something wrong, never because the row was slow.
func Measure(o Options) error {
	chosen, err := rowsOf(o.Only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.Dir, "posttrade-perf-")
	if err != nil {
		return fmt.Errorf("perf: make work folder: %w", err)
	}
	defer os.RemoveAll(dir)
	o.Dir = dir
	r := &Run{o: o, env: readEnvironment(o.Commit, dir)}
	if o.Smoke {
		r.env.Work = "smoke"
	}
	if r.env.LineRoundTripNs, err = lineRoundTrip(r.scale(200_000)); err != nil {
		return err
	}
	r.env.JitterBefore = r.jitter()
	fmt.Fprint(o.Stdout, r.env.header())
	for _, row := range chosen {
		if err := r.measure(row); err != nil {
			return fmt.Errorf("perf: row %s: %w", row.name, err)
		}
	}
	r.jitterAfter = r.jitter()
	if o.Only == "" {
		r.unjudged()
	}
	r.summary(o.Stdout)
	r.note(fmt.Sprintf("the run took %.0f s", time.Since(r.env.Date).Seconds()))
	if err := r.write(); err != nil {
		return err
	}
	r.verdicts()
	return nil
}

// measure runs a row on a machine that has settled, and notes the state of the machine.
func (r *Run) measure(row row) error {
	r.section = row.name
	fmt.Fprintf(r.o.Stdout, "\n== %s\n", row.name)
	r.farReadNs = r.farRead()
	r.settle()
	begun, before := time.Now(), host{"/"}.ticks()
	if err := row.measure(r); err != nil {
		return err
	}
	r.note(fmt.Sprintf(
		"row %s took %.1f s; a read of memory before it %.0f ns; stolen from the machine during it %s",
		row.name, time.Since(begun).Seconds(), r.farReadNs, host{"/"}.ticks().stolenSince(before)))
	return nil
}

// rowsOf are the rows that --only asks for, all for "". A word that no row's name contains is an
// error; the run does not silently measure less.
func rowsOf(only string) (chosen []row, err error) {
	var names []string
	for _, row := range rows() {
		names = append(names, row.name)
		if wanted(row.name, only) {
			chosen = append(chosen, row)
		}
	}
	if only == "" {
		return chosen, nil
	}
	for word := range strings.SplitSeq(only, ",") {
		if word == "" ||
			!slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, word) }) {
			return nil, fmt.Errorf("perf: choose rows only=%s: no row's name contains %q; there are %s",
				only, word, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}

// wanted reports whether a row's name contains one of the words.
func wanted(name, words string) bool {
	return slices.ContainsFunc(strings.Split(words, ","),
		func(word string) bool { return strings.Contains(name, word) })
}

// scale shrinks a count for a smoke run.
func (r *Run) scale(n int) int {
	if r.o.Smoke {
		return max(n/100, 1)
	}
	return n
}

// duration shrinks a measuring time for a smoke run.
func (r *Run) duration(d time.Duration) time.Duration {
	if r.o.Smoke {
		return d / 50
	}
	return d
}

// bench records one line in Go's benchmark format: a name, the number of measured operations,
// nanoseconds per operation, and further figures.
func (r *Run) bench(name string, n int, elapsed time.Duration, more ...metric) {
	line := fmt.Sprintf("Benchmark%s %d %.4g ns/op", unbroken(name), n,
		float64(elapsed.Nanoseconds())/float64(max(n, 1)))
	for _, m := range more {
		line += fmt.Sprintf(" %.5g %s", m.value, m.unit)
	}
	r.lines = append(r.lines, line)
	fmt.Fprintln(r.o.Stdout, line)
}

// unbroken is a name in the form that the format needs: one word.
func unbroken(name string) string { return strings.ReplaceAll(name, " ", "-") }

// figures records a line that has no time per operation.
func (r *Run) figures(name string, more ...metric) {
	line := "Benchmark" + unbroken(name) + " 1"
	for _, m := range more {
		line += fmt.Sprintf(" %.5g %s", m.value, m.unit)
	}
	r.lines = append(r.lines, line)
	fmt.Fprintln(r.o.Stdout, line)
}

// note adds a remark to the results.
func (r *Run) note(text string) {
	r.lines = append(r.lines, "# "+text)
	fmt.Fprintln(r.o.Stdout, "# "+text)
}

// outFile is the path of the results file.
func (r *Run) outFile() string {
	if r.o.Out != "" {
		return r.o.Out
	}
	return filepath.Join("perf", "results", r.env.fileName())
}

// write puts the header, the lines and the targets into the results file.
func (r *Run) write() error {
	name := r.outFile()
	var b strings.Builder
	b.WriteString(r.env.header())
	b.WriteString(r.env.footer(r.jitterAfter))
	b.WriteString("\n")
	for _, line := range r.lines {
		fmt.Fprintln(&b, line)
	}
	b.WriteString("\n")
	for _, t := range r.targets {
		fmt.Fprintf(&b, "# %s\n", t)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("perf: make results folder: %w", err)
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("perf: write results: %w", err)
	}
	fmt.Fprintf(r.o.Stdout, "\nwritten to %s\n", name)
	return nil
}
