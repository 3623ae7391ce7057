package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

var tomorrow = time.Now().AddDate(100, 0, 0)

// agedJournal is a closed journal with a snapshot in its middle, and what a flow needs to go on.
func agedJournal(t *testing.T, fs vfs.FS) (f flow, snapshot uint64) {
	t.Helper()
	f = flow{seed: 9, idsEvery: 4}
	j := openNew(t, "j", strict(t, fs))
	snapshot = growAged(t, j, &f)
	must.OK(t, j.Close())
	return f, snapshot
}

// growAged appends blocks, takes a snapshot and appends more.
func growAged(t *testing.T, j *Journal, f *flow) (snapshot uint64) {
	t.Helper()
	for range 12 {
		appendAll(t, j, f, 7, 1, 12, 30)
	}
	must.OK(t, j.db.Flush())
	snapshot = snapshotNow(t, j, *f).InputSeq
	for range 8 {
		appendAll(t, j, f, 5, 9, 2)
	}
	return snapshot
}

func archive(t *testing.T, fs vfs.FS, before time.Time) (Archived, error) {
	t.Helper()
	o := strict(t, fs)
	return Archive(t.Context(), "j", "archives", before, o,
		func(inputSeq uint64) (string, error) { return fmt.Sprint("root-", inputSeq), nil })
}

func verifyToy(t *testing.T, fs vfs.FS, f flow, archives string) (Report, error) {
	t.Helper()
	return Verify(t.Context(), "j", VerifyOptions{FS: fs, ArchiveDir: archives,
		Engine: func([]byte) (Engine, error) { return &toy{flow: f}, nil }})
}

// TestArchivedBlocksAreReadWhereTheyAre moves old blocks out, twice. With the folder of the
// archives the journal is what it was: every replay, fill, transfer and verification. Without it
// the start, the end and what follows the archives hold, and everything else names the archive.
func TestArchivedBlocksAreReadWhereTheyAre(t *testing.T) {
	fs := vfs.NewMem()
	f, snapshot := agedJournal(t, fs)
	before, err := verifyToy(t, fs, f, "")
	must.OK(t, err)
	done, err := archive(t, fs, tomorrow)
	must.OK(t, err)
	if done.From.InputSeq != 0 || done.To.InputSeq == 0 || done.To.InputSeq > snapshot {
		t.Fatalf("%+v, the snapshot is at %d", done, snapshot)
	}
	expectArchived(t, fs, &f, before, done.To)
	if _, err := archive(t, fs, tomorrow); !errors.Is(err, ErrNothingOld) {
		t.Errorf("again: %v", err)
	}

	o := strict(t, fs)
	o.ArchiveDir = "archives"
	j, err := Open("j", o)
	must.OK(t, err)
	growAged(t, j, &f)
	must.OK(t, j.Close())
	before, err = verifyToy(t, fs, f, "archives")
	must.OK(t, err)
	next, err := archive(t, fs, tomorrow)
	must.OK(t, err)
	if next.From != done.To || next.To.InputSeq <= done.To.InputSeq {
		t.Fatalf("%+v behind %+v", next, done)
	}
	expectArchived(t, fs, &f, before, next.To)
	text, err := readWhole(fs, "archives/"+next.Name+"/"+archiveName)
	must.OK(t, err)
	if !strings.Contains(string(text), fmt.Sprint("root-", next.To.InputSeq)) {
		t.Errorf("%s", text)
	}
}

// expectArchived compares a journal with an archive up to a commit with what it was before.
func expectArchived(t *testing.T, fs vfs.FS, f *flow, before Report, to Point) {
	t.Helper()
	after, err := verifyToy(t, fs, *f, "archives")
	must.OK(t, err)
	if after.InputSeq != before.InputSeq || after.Chain != before.Chain ||
		after.Fills != before.Fills ||
		after.ClientIDs != before.ClientIDs || after.Blocks != before.Blocks {
		t.Errorf("%+v\nbefore\n%+v", after, before)
	}
	if _, err := verifyToy(t, fs, *f, ""); !errors.Is(err, ErrArchived) ||
		!strings.Contains(err.Error(), "journal.archive-dir") {
		t.Errorf("verify without the archive: %v", err)
	}
	o := strict(t, fs)
	o.ArchiveDir = "archives"
	j, err := Open("j", o)
	must.OK(t, err)
	again := flow{seed: f.seed, idsEvery: f.idsEvery}
	must.OK(t, compareHistory(j, &again, before.InputSeq))
	for _, from := range []uint64{1, to.InputSeq - 1, to.InputSeq, to.InputSeq + 1} {
		at := from
		must.OK(t, j.Replay(context.Background(), from, func(c []matcher.Command, _ ClientIDs) error {
			if c[0].InputSeq != at {
				return fmt.Errorf("command %d, want %d", c[0].InputSeq, at)
			}
			at = c[len(c)-1].InputSeq + 1
			return nil
		}))
		if at != before.InputSeq+1 {
			t.Errorf("a replay from %d ends before %d", from, at)
		}
	}
	stream, inputSeq, _ := streamOf(t, j)
	about := must.Get(j.TransferSize())(t)
	if n := uint64(len(stream)); about > n || about+1024 < n { // without genesis and manifest
		t.Errorf("a transfer has %d bytes, TransferSize says %d", n, about)
	}
	copied := vfs.NewMem()
	_, err = Receive("j", bytes.NewReader(stream), strict(t, copied))
	must.OK(t, err)
	if _, err := verifyToy(t, copied, *f, ""); err != nil || inputSeq != before.InputSeq {
		t.Errorf("a copy of both: %d, %v", inputSeq, err)
	}
	scrub := quickScrub(j, func(d Damage) { t.Errorf("%+v", d) })
	must.OK(t, scrub.Pass(t.Context()))
	must.OK(t, j.Close())

	j, err = Open("j", strict(t, fs)) // without the archives
	must.OK(t, err)
	defer func() { must.OK(t, j.Close()) }()
	recovered, err := Recover(context.Background(), j, toyRebuild(*f),
		func(err error) { t.Error(err) })
	must.OK(t, err)
	if recovered.Engine.AppliedSeq() != before.InputSeq {
		t.Errorf("recovered %d", recovered.Engine.AppliedSeq())
	}
	fills, err := j.LastFills(1 << 20)
	must.OK(t, err)
	if n := before.TradeSeq - to.TradeSeq; uint64(len(fills)) != n ||
		n > 0 && fills[n-1].TradeSeq != before.TradeSeq {
		t.Errorf("%d last fills, %d are not archived", len(fills), n)
	}
	none := func([]matcher.Command, ClientIDs) error { return nil }
	must.OK(t, j.Replay(context.Background(), to.InputSeq+1, none))
	err = j.Replay(context.Background(), to.InputSeq, none)
	if !errors.Is(err, ErrArchived) || !strings.Contains(err.Error(), "journal.archive-dir") {
		t.Errorf("a replay of what was moved out: %v", err)
	}
	if _, err := j.Transfer(); !errors.Is(err, ErrArchived) {
		t.Errorf("a transfer: %v", err)
	}
	if _, err := j.TransferSize(); !errors.Is(err, ErrArchived) {
		t.Errorf("the size of a transfer: %v", err)
	}
	must.OK(t, second(io.ReadAll(must.Get(j.TransferAfter(to))(t))))
}

// TestArchivedHistoryIsAccepted loses the anchor of an archived journal. With the archives the
// history is accepted, all of it; without them, or with a damaged one, nothing is changed.
func TestArchivedHistoryIsAccepted(t *testing.T) {
	fs := vfs.NewMem()
	f, _ := agedJournal(t, fs)
	before := must.Get(verifyToy(t, fs, f, ""))(t)
	done := must.Get(archive(t, fs, tomorrow))(t)
	must.OK(t, fs.Remove("j/"+anchorName))
	accept := func(archives string) (Report, error) {
		return AcceptHistory(t.Context(), "j", VerifyOptions{FS: fs, ArchiveDir: archives,
			boot: "boot-1", Engine: func([]byte) (Engine, error) { return &toy{flow: f}, nil }})
	}
	for _, archives := range []string{"", "elsewhere"} {
		untouched := fs.String()
		if _, err := accept(archives); !errors.Is(err, ErrArchived) || fs.String() != untouched {
			t.Errorf("archives in %q: %v, or a change", archives, err)
		}
	}
	r := must.Get(accept("archives"))(t)
	if r.InputSeq != before.InputSeq || r.Chain != before.Chain || r.Blocks != before.Blocks ||
		r.Fills != before.Fills || r.Anchored != before.InputSeq || !r.Replayed {
		t.Errorf("accepted %+v\nbefore %+v", r, before)
	}
	expectArchived(t, fs, &f, before, done.To)
}

// TestKeptSnapshotsStayBehindAnArchive keeps a snapshot of a part of the history that is then moved
// out. With the archive it is used. Without the archive it is neither used nor removed, because it
// may still be of this history.
func TestKeptSnapshotsStayBehindAnArchive(t *testing.T) {
	fs := vfs.NewMem()
	f, _ := agedJournal(t, fs)
	const kept, other = 60, 65
	withFolder := func(archives string, do func(*Journal, *SnapshotFolder)) {
		t.Helper()
		o := strict(t, fs)
		o.ArchiveDir = archives
		j := must.Get(Open("j", o))(t)
		defer func() { must.OK(t, j.Close()) }()
		do(j, must.Get(OpenSnapshotFolder(j, "kept"))(t))
	}
	withFolder("", func(j *Journal, k *SnapshotFolder) {
		sh := must.Get(OpenShadow(j, toyRebuild(f), kept, k))(t)
		must.OK(t, sh.Follow(t.Context(), kept, nil))
		must.OK(t, k.Write(sh))
		must.OK(t, sh.Close())
	})
	done := must.Get(archive(t, fs, tomorrow))(t)
	if done.To.InputSeq < other {
		t.Fatalf("%+v", done)
	}
	for _, archives := range []string{"archives", "", "elsewhere", "archives"} {
		withFolder(archives, func(j *Journal, k *SnapshotFolder) {
			must.OK(t, k.Clean())
			if got := k.Sequences(); !slices.Equal(got, []uint64{kept}) {
				t.Fatalf("archives in %q: kept %d", archives, got)
			}
			sh := must.Get(OpenShadow(j, toyRebuild(f), other, k))(t)
			want := uint64(kept)
			if archives != "archives" {
				want = 0
			}
			if sh.Applied() != want {
				t.Errorf("archives in %q: stands at %d, want %d", archives, sh.Applied(), want)
			}
			if err := sh.Follow(t.Context(), other, nil); (err == nil) != (want == kept) ||
				err != nil && !errors.Is(err, ErrArchived) {
				t.Errorf("archives in %q: %v", archives, err)
			}
			must.OK(t, sh.Close())
		})
	}
}

// TestOnlyOldBlocksAreArchived: not what is younger than the time, nor without a snapshot.
func TestOnlyOldBlocksAreArchived(t *testing.T) {
	fs := vfs.NewMem()
	f := flow{seed: 1}
	j := openNew(t, "j", strict(t, fs))
	for range 40 {
		appendAll(t, j, &f, 100)
	}
	middle := int64(flowStart + 2) // of command 1000
	must.OK(t, j.Close())
	if _, err := archive(t, fs, tomorrow); !errors.Is(err, ErrNothingOld) {
		t.Errorf("without a snapshot: %v", err)
	}
	j = must.Get(Open("j", strict(t, fs)))(t)
	snapshotNow(t, j, f)
	must.OK(t, j.Close())
	if _, err := archive(t, fs, time.UnixMilli(0)); !errors.Is(err, ErrNothingOld) {
		t.Errorf("nothing is that old: %v", err)
	}
	done := must.Get(archive(t, fs, time.UnixMilli(middle)))(t)
	if done.To.InputSeq != 900 {
		t.Errorf("archived up to %d, want what is before the block of 901 to 1000", done.To.InputSeq)
	}
}

// TestABlockIsAsOldAsItsYoungestCommand: a late price at the end of a block does not make the block
// older, nor the history shorter.
func TestABlockIsAsOldAsItsYoungestCommand(t *testing.T) {
	fs := vfs.NewMem()
	f := flow{seed: 1}
	j := openNew(t, "j", strict(t, fs))
	var b Block
	for i := range 41 {
		f.block(&b, 99)
		f.inputSeq++
		c := f.command(f.inputSeq)
		if i%3 != 2 {
			c.EventTimeMillis = flowStart - 1
		}
		b.Command(&c)
		must.OK(t, must.Get(j.Append(&b))(t).Wait())
	}
	snapshotNow(t, j, f)
	stream, _, _ := streamOf(t, j)
	seed := j.Seed()
	must.OK(t, j.Close())
	r := must.Get(Verify(t.Context(), "j", VerifyOptions{FS: fs}))(t)
	seen := must.Get(CheckStream(bytes.NewReader(stream), seed, Point{}))(t)
	if want := int64(flowStart + 3900/500); r.LastTime != want || seen.LastTime != want {
		t.Errorf("the last times are %d and %d, want %d", r.LastTime, seen.LastTime, want)
	}
	done := must.Get(archive(t, fs, time.UnixMilli(flowStart+2)))(t) // of command 1000
	if done.To.InputSeq != 1000 {
		t.Errorf("archived up to %d, want what is before the block of 1001 to 1100", done.To.InputSeq)
	}
}

// TestWrongArchiveIsNamed reads with archives that are missing, another's, or damaged.
func TestWrongArchiveIsNamed(t *testing.T) {
	fs := vfs.NewMem()
	f, _ := agedJournal(t, fs)
	done := must.Get(archive(t, fs, tomorrow))(t)
	folder := "archives/" + done.Name
	if _, err := verifyToy(t, fs, f, "elsewhere"); !errors.Is(err, ErrArchived) ||
		!strings.Contains(err.Error(), "elsewhere/"+done.Name) {
		t.Errorf("missing: %v", err)
	}
	good := must.Get(readWhole(fs, folder+"/"+archiveName))(t)
	put := func(name string, text []byte) {
		t.Helper()
		w := must.Get(fs.Create(name, writeCategory))(t)
		must.OK(t, second(w.Write(text)))
		must.OK(t, w.Close())
	}
	put(folder+"/"+archiveName, []byte(`{"archive":{"format":1},"sha256":"`+
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"+`"}`))
	if _, err := verifyToy(t, fs, f, "archives"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another: %v", err)
	}
	put(folder+"/"+archiveName, good)
	names := must.Get(fs.List(folder + "/" + storeName))(t)
	found, tables := 0, 0
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		tables++
		path := folder + "/" + storeName + "/" + name
		text := must.Get(readWhole(fs, path))(t)
		bad := bytes.Clone(text)
		bad[len(bad)/3] ^= 4
		put(path, bad)
		if _, err := verifyToy(t, fs, f, "archives"); err != nil {
			found++
		}
		put(path, text)
	}
	if _, err := verifyToy(t, fs, f, "archives"); err != nil ||
		found < tables || tables < 4 {
		t.Errorf("flips are found in %d of %d tables, want all: genesis, commands, fills, client ids: %v",
			found, tables, err)
	}
}
