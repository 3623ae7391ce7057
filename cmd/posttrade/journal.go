package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/evidence"
	"posttrade/matcher"
	"posttrade/matcher/timetext"
)

// journalUsage is the forms of the command.
const journalUsage = "journal verify|stats|export|accept [flags], " +
	"posttrade journal archive DIR --before=DATE [flags]"

// journalCommands is the words that the command knows.
var journalCommands = []string{"verify", "stats", "export", "accept", "archive"}

// runJournal is `posttrade journal`: the commands that work on a journal while its server runs, or
// without a server.
//
// Only archive takes a directory and a date, so the other words with either are a wrong command
// line.
func runJournal(args []string, stdout, stderr io.Writer) int {
	var from, to uint64
	var before string
	var raw bool
	f := newFlags(journalUsage,
		"Reads the journal in data.dir, also while a server has it open: then up to some sequence, "+
			"which is shown.\n"+
			"All but accept and archive change nothing, and need no right to write.\n"+
			"  verify   every checksum, link and sequence; replays all of it, compares fills, snapshots "+
			"and anchor; exit 3 names the first that differs\n"+
			"  stats    what there is and how much of it\n"+
			"  export   the commands as ndjson, --from to --to; --raw has the fields of the records\n"+
			"  accept   after a start was refused: take what the store holds, if all of it verifies, "+
			"and the commands\n"+
			"           of the tail that go on from it. Acknowledged commands beyond that are given up. "+
			"What is replaced\n"+
			"           is copied to journal/accepted-N first. No server may have the journal open\n"+
			"  archive  move the blocks that are older than --before, and than the newest "+
			"snapshot, into a "+
			"folder below DIR.\n"+
			"           What reads across them needs journal.archive-dir=DIR. No server may have the "+
			"journal open")
	f.StringVar(&before, "before", "", "`date` of archive, yyyy-mm-dd, in UTC")
	f.BoolVar(&raw, "raw", false, "export the records' own fields: ids, ticks, bits")
	f.Uint64Var(&from, "from", 1, "first `sequence` of export")
	f.Uint64Var(&to, "to", 0, "last `sequence` of export, 0 = the head")
	c, err := f.read(args, 2, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if err := journalWords(f.rest, before, from, to); err != nil {
		return settings.Exit(stderr, err)
	}
	if f.rest[0] == "archive" {
		return settings.Exit(stderr, archiveJournal(c, f.rest[1], before, stdout))
	}
	export := journal.ExportDecoded
	if raw {
		export = journal.Export
	}
	return settings.Exit(stderr, wholeJournal(f.rest[0], c, stdout, func(dir string, out io.Writer,
		o journal.VerifyOptions) error {
		return export(context.Background(), dir, out, from, to, o)
	}))
}

// journalWords refuses words that do not belong together, or a range that is none, and says what
// the command wants instead.
func journalWords(rest []string, before string, from, to uint64) error {
	switch {
	case len(rest) == 0:
		return settings.Usagef("usage: posttrade %s", journalUsage)
	case !slices.Contains(journalCommands, rest[0]):
		return settings.Usagef("unknown journal command %s; there are %s",
			settings.Printable(rest[0]), strings.Join(journalCommands, ", "))
	case rest[0] == "archive" && len(rest) == 1:
		return settings.Usagef("journal archive: want the folder for archives; usage: posttrade %s",
			journalUsage)
	case rest[0] == "archive" && before == "":
		return settings.Usagef("journal archive: want --before=DATE")
	case rest[0] == "archive":
		return nil
	case len(rest) > 1:
		return settings.Usagef("journal %s: want no folder, got %s; the journal is the one in "+
			"data.dir: choose it with --data.dir=DIR", rest[0], settings.Printable(rest[1]))
	case before != "":
		return settings.Usagef("before: only journal archive has it")
	case rest[0] == "export" && (from == 0 || to != 0 && to < from):
		return settings.Usagef("--from=%d --to=%d: want a first sequence of 1 or more, and a last one "+
			"that is not before it", from, to)
	}
	return nil
}

// wholeJournal runs the command of that name, one of those about the whole journal. export is given
// the journal's folder and a buffered stdout; the caller has chosen the form of the lines.
func wholeJournal(name string, c *settings.Config, stdout io.Writer,
	export func(dir string, out io.Writer, o journal.VerifyOptions) error) error {
	dir := c.InDataDir("journal")
	read := journal.VerifyOptions{ArchiveDir: c.String("journal.archive-dir")}
	switch name {
	case "verify":
		return verifyJournal(dir, read.ArchiveDir, stdout)
	case "stats":
		r, err := journal.Stats(context.Background(), dir, read)
		if err == nil {
			printInUse(stdout, dir)
			printReport(stdout, r)
		}
		return err
	case "accept":
		r, err := journal.AcceptHistory(context.Background(), dir, read)
		if err == nil {
			fmt.Fprintf(stdout, "copied     what was replaced lies in %s\n", r.Copy)
			printReport(stdout, r)
		}
		return err
	case "export":
		out := bufio.NewWriterSize(stdout, 1<<16)
		err := export(dir, out, read)
		return errors.Join(err, out.Flush())
	}
	panic("journal: no such command: " + name)
}

// archiveJournal is `posttrade journal archive`. Nothing old enough is a success that says so: a
// timer may run it each night. Where there is a transparency log, the root of its tree over what is
// moved goes with it.
func archiveJournal(c *settings.Config, into, before string, stdout io.Writer) error {
	day, err := time.Parse(time.DateOnly, before)
	if err != nil {
		return settings.Usagef("before: want yyyy-mm-dd, got %s", settings.Printable(before))
	}
	if at := c.String("journal.archive-dir"); at != "" && at != into {
		return settings.Usagef("journal.archive-dir is %s: archives are read from one folder", at)
	}
	dir := c.InDataDir("journal")
	done, err := journal.Archive(context.Background(), dir, into, day,
		journal.Options{ArchiveDir: into},
		func(inputSeq uint64) (string, error) {
			return evidence.RootUpTo(installation.EvidenceDir(c), inputSeq)
		})
	if errors.Is(err, journal.ErrNothingOld) {
		fmt.Fprintf(stdout, "archived   nothing: %v\n", journal.ErrNothingOld)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "archived   sequences %d to %d, trades %d to %d\nin         "+
		"%s/%s\nsha256     %s\n",
		done.From.InputSeq+1, done.To.InputSeq, done.From.TradeSeq+1, done.To.TradeSeq, into, done.Name,
		done.SHA256)
	if done.Root != "" {
		fmt.Fprintf(stdout, "tree root  %s\n", done.Root)
	}
	fmt.Fprintf(stdout, "read it    journal.archive-dir=%s\n", into)
	return nil
}

// verifyJournal returns a mismatch for every error in the journal's content: exit code 3. A journal
// that cannot be read at all (absent, not permitted, archived elsewhere) is a plain failure.
//
// It replays everything from the genesis, and then compares the states to which the snapshots lead.
// restore calls it too.
func verifyJournal(dir, archives string, stdout io.Writer) error {
	ctx := context.Background()
	report, err := journal.Verify(ctx, dir, journal.VerifyOptions{
		ArchiveDir: archives,
		Engine: func(genesis []byte) (journal.Engine, error) {
			g, err := matcher.ParseGenesis(genesis)
			if err != nil {
				return nil, err
			}
			return matcher.New(g)
		},
	})
	if err != nil {
		return differs(err)
	}
	printInUse(stdout, dir)
	printReport(stdout, report)
	hash, compared, err := engine.CompareSnapshots(ctx, dir, archives)
	if err != nil {
		return differs(err)
	}
	fmt.Fprintf(stdout,
		"state      %x\nverified   every block, fill and link; %d snapshots lead to the same state\n",
		hash, compared)
	return nil
}

// differs is an error of verifyJournal as a mismatch, unless it says that something was not read.
func differs(err error) error {
	for _, unread := range []error{journal.ErrNoGenesis, fs.ErrPermission, journal.ErrArchived,
		syscall.ENOTDIR} {
		if errors.Is(err, unread) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", settings.ErrMismatch, err)
}

// printInUse says that a server still writes to the journal that the command reads.
//
// It also says that the folder is a copy of another journal, if it is.
func printInUse(w io.Writer, dir string) {
	if pid := journal.InUse(dir); pid > 0 {
		fmt.Fprintf(w, "in use     process %d has it open: this is what was there at one moment\n", pid)
	}
	if err := journal.CopiedFrom(dir); err != nil {
		fmt.Fprintf(w, "copy       %v\n", err)
	}
}

// printReport prints what a reading of the journal has found, for people.
//
//   - seed is the SHA-256 of the genesis record, chain the hash over everything up to the last
//     block.
//   - anchored is the sequence that the anchor attests; it may be less than the head.
//   - stored is the size of all blocks as packed, in bytes; times are event times, UTC.
func printReport(w io.Writer, r journal.Report) {
	fmt.Fprintf(w, "commands   %d in %d blocks, sequences 1 to %d\n", r.InputSeq, r.Blocks, r.InputSeq)
	fmt.Fprintf(w, "fills      %d\nclient ids %d\n", r.Fills, r.ClientIDs)
	fmt.Fprintf(w, "seed       %x\nchain      %x\nanchored   %d\n", r.Seed, r.Chain, r.Anchored)
	if r.Tail > 0 {
		fmt.Fprintf(w,
			"tail       the last %d commands are not in the store yet; the next start takes them in\n",
			r.Tail)
	}
	if r.InputSeq > 0 {
		fmt.Fprintf(w, "times      %s to %s\n", timetext.Of(r.FirstTime), timetext.Of(r.LastTime))
		fmt.Fprintf(w, "stored     %d bytes, %.1f a command\n", r.Packed,
			float64(r.Packed)/float64(r.InputSeq))
	}
	for _, s := range r.Snapshots {
		fmt.Fprintf(w, "snapshot   sequence %d, format %d, %d bytes, sha256 %s\n", s.InputSeq, s.Format,
			s.State.Bytes, s.State.SHA256)
	}
}

// runSnapshot is `posttrade snapshot`. The next start then has little to replay.
func runSnapshot(args []string, stdout, stderr io.Writer) int {
	f := newFlags("snapshot [flags]",
		"Writes a snapshot at the head of the journal in data.dir, while no server has it open.\n"+
			"A running server writes its own, every snapshot.interval-commands.")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	return settings.Exit(stderr, takeSnapshot(c, stdout))
}

// takeSnapshot opens the journal with its lock, so it fails beside a running server, and replays up
// to the head. The snapshot has the views too: a start that finds one without them cannot use it.
func takeSnapshot(c *settings.Config, stdout io.Writer) (err error) {
	j, err := journal.OpenExisting(c.InDataDir("journal"),
		journal.Options{ArchiveDir: c.String("journal.archive-dir")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	text, _ := j.Genesis()
	g, err := matcher.ParseGenesis(text)
	if err != nil {
		return err
	}
	shadow, err := journal.NewSnapshotter(j, engine.RebuildFrom(g), 0)
	if err != nil {
		return err
	}
	s, err := shadow.Take(context.Background())
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "snapshot at sequence %d: %d bytes, sha256 %s\n", s.InputSeq, s.State.Bytes,
		s.State.SHA256)
	return nil
}
