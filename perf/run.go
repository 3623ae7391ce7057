package perf

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"posttrade/app/settings"
)

// Options say what to measure and where to write.
//
// Measure checks Only and Dir before it measures. Any other folder, URL or program that does not
// exist is the error of the row that needs it, and the rows before it have been measured then.
type Options struct {
	// Smoke measures a hundredth of the work, and a fiftieth of the time where a row measures for a
	// time. It shows that every row runs, not how fast: the results say "work: smoke", and no table of
	// verdicts counts them.
	Smoke bool
	// Only has the texts, separated by commas, one of which a row's name must contain; "" for all
	// rows. A run of some rows says nothing about the figures of the others (see unjudged).
	Only string
	// Dir is the folder in which Measure makes the run's own folder for journals and databases, which
	// it removes at the end; "" for the system's. Its disk is the one that most rows measure.
	Dir string
	// Out is the results file; "" for perf/results/<commit>.<cpu>.txt below the working directory. The
	// distributions go into the folder of this name without ".txt".
	Out string
	// Commit is written into the header and the file name; "" for the one in the build information.
	Commit string
	// Binary is this program. Rows that need a process of their own (servers, members, the bare HTTP
	// server, a replay) start it with other arguments.
	Binary string
	// Postgres is the URL of a server for the database rows, "" for none. The rows make tables of
	// their own there.
	Postgres string
	// Lobster is a folder with one pair of LOBSTER files, "" for none: then its row measures nothing.
	Lobster string
	// Profiles is the folder for CPU profiles of the servers under HTTP load, "" for none. The
	// profiler's cost is then in the figures of the row.
	Profiles string
	// Pause is how long the matcher's thread is observed for pauses; 0 for defaultPause, a second in a
	// smoke run.
	Pause time.Duration
	// Restart is the number of commands in the journal of the row that restarts; 0 for
	// restartCommands. A journal of the 100,000,000 that the table asks for takes minutes to make.
	Restart int
	// Config has the settings of the engines that a row needs in this process. A row changes the
	// folder, the durability and what else it needs, in a copy.
	Config *settings.Config
	// Stdout gets every line of the results as soon as it is measured, and the tables at the end.
	Stdout io.Writer
	// Stderr gets the last line of an engine in this process whose journal has failed.
	Stderr io.Writer
}

// Run collects the figures of one run. Rows run one after the other on the goroutine of Measure,
// and one goroutine writes here at a time: that one, or one that it waits for (the work of
// besidePhase).
type Run struct {
	// o is as given, but for Dir: that is the run's own folder, which Measure removes.
	o   Options
	env Environment
	// lines are the benchmark lines and notes, in the order in which they were measured.
	lines []string
	// targets are the judged figures, in the order in which they were measured; unjudged sorts them.
	targets []target
	// section is the name of the row under way.
	section string

	// farReadNs is the time of a memory read when the row under way began, in nanoseconds: see
	// farRead.
	farReadNs float64
	// jitterAfter is the reading of the spinning thread at the end of the run, for the footer.
	jitterAfter string
	// left are folders that the next settle removes; leaves counts them from the start of the run.
	left   []string
	leaves int
	// servers counts the servers with sessions so far: each needs a data folder of its own.
	servers int
}

// row is one entry of the run: what to measure, and what the performance table asks of its figures.
// A row without goals is shown and never judged.
type row struct {
	// name is what --only matches and what an error names.
	name string
	// measure states figures and judges them. It stops what it starts, also when it fails. An error
	// means that something could not be measured, or that a result was wrong: a lost order, a wrong
	// sum.
	measure func(*Run) error
	goals   []goal // what the performance table asks of it
}

// rows are all rows in the order in which they run: the machine itself, single parts of the path,
// the whole path, several processes, and last what runs beside the orders. It makes a new slice in
// each call; the entries are constant.
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
		{"cluster", measureCluster, []goal{clusterTime, clusterPath, clusterTrip, clusterRate}},
		{"failover", measureFailover, []goal{failoverTime, failoverBehind}},
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
//
// It writes no file when a row fails: the lines so far are on Stdout only. The time of a full run
// is minutes, most of it waiting for rows that measure for a fixed time. It uses the whole machine,
// so that nothing else may run beside it. Once in a process at a time, because rows change the
// number of scheduler processors and the rate of the heap profile.
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

// measure runs a row on a machine that has settled, and notes the state of the machine: without it
// a reader could not tell a slower build from a busier neighbour. The read of memory comes before
// the row, because the row's own tables would be in the caches afterwards.
func (r *Run) measure(row row) error {
	r.section = row.name
	fmt.Fprintf(r.o.Stdout, "\n== %s\n", row.name)
	r.farReadNs = r.farRead()
	if err := r.settle(); err != nil {
		return err
	}
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
// No words ask for every name, because every name contains the empty text.
func wanted(name, words string) bool {
	return slices.ContainsFunc(strings.Split(words, ","),
		func(word string) bool { return strings.Contains(name, word) })
}

// scale shrinks a count to a hundredth for a smoke run, but never below 1.
func (r *Run) scale(n int) int {
	if r.o.Smoke {
		return max(n/100, 1)
	}
	return n
}

// duration shrinks a measuring time to a fiftieth for a smoke run. A period may then be too short
// for one request: see period.
func (r *Run) duration(d time.Duration) time.Duration {
	if r.o.Smoke {
		return d / 50
	}
	return d
}
