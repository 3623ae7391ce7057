package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/journal/transfer"
	"posttrade/ring/must"
)

// section is what a journal has behind a point, and the point where that ends.
func section(t testing.TB, j *Journal, after Point) (stream []byte, to Point) {
	t.Helper()
	head, _ := j.Head()
	must.OK(t, j.WaitStable(t.Context(), head))
	tr, err := j.TransferAfter(after)
	must.OK(t, err)
	stream, err = io.ReadAll(tr)
	must.OK(t, err)
	if int64(len(stream)) != tr.Size() {
		t.Fatalf("%d bytes, Size is %d", len(stream), tr.Size())
	}
	must.OK(t, tr.Close())
	genesis, _ := j.Genesis()
	seen, err := CheckStream(bytes.NewReader(stream), j.Seed(), after)
	must.OK(t, err)
	if after.InputSeq > 0 && seen.From != after || seen.To.InputSeq != head ||
		!bytes.Equal(seen.Genesis, genesis) {
		t.Fatalf("%d..%d, want %d..%d", seen.From.InputSeq, seen.To.InputSeq, after.InputSeq, head)
	}
	return stream, seen.To
}

// sections makes a journal in three parts, the second with a snapshot, and their streams.
func sections(t testing.TB, mode string) (j *Journal, f flow, streams [][]byte, ends []Point) {
	f = flow{seed: 5, idsEvery: 3}
	o := strict(t, vfs.NewMem())
	o.Durability = mode
	j = openNew(t, "j", o)
	var at Point
	for part, sizes := range [][]int{{7, 1, 12}, {30, 2, 9}, {1, 64}} {
		appendAll(t, j, &f, sizes...)
		if part == 1 {
			snapshotNow(t, j, f)
		}
		stream, to := section(t, j, at)
		streams, ends, at = append(streams, stream), append(ends, to), to
	}
	return j, f, streams, ends
}

func readers(streams ...[]byte) (list []io.Reader) {
	for _, s := range streams {
		list = append(list, bytes.NewReader(s))
	}
	return list
}

func TestSectionsAreTheJournal(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		t.Run(mode, func(t *testing.T) {
			j, f, streams, ends := sections(t, mode)
			for n := range streams {
				fs := vfs.NewMem()
				got := must.Get(ReceiveAll("copy", 0, strict(t, fs), readers(streams[:n+1]...)...))(t)
				if got.InputSeq != ends[n].InputSeq || got.TradeSeq != ends[n].TradeSeq {
					t.Errorf("%d, %d, want %+v", got.InputSeq, got.TradeSeq, ends[n])
				}
				to := must.Get(Open("copy", strict(t, fs)))(t)
				expectCopy(t, j, to, f)
				must.OK(t, to.Close())
			}
			must.OK(t, j.Close())
		})
	}
}

// TestReceivedJournalKeepsThreeSnapshots: every section of a chain brings a snapshot. The newest
// ones stay, with their files, and no file of another.
func TestReceivedJournalKeepsThreeSnapshots(t *testing.T) {
	f := flow{seed: 5, idsEvery: 3}
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	var streams [][]byte
	var files []string
	var at Point
	for range snapshotsKept + 2 {
		appendAll(t, j, &f, 7, 2)
		s := snapshotNow(t, j, f)
		stream, to := section(t, j, at)
		streams, at = append(streams, stream), to
		for _, path := range []string{s.State.Path, s.Views.Path} {
			files = append(files, strings.TrimPrefix(path, snapshotsName+"/"))
		}
	}
	want := must.Get(j.Snapshots())(t)
	must.OK(t, j.Close())
	fs := vfs.NewMem()
	must.Get(ReceiveAll("copy", 0, strict(t, fs), readers(streams...)...))(t)
	to := must.Get(Open("copy", strict(t, fs)))(t)
	if list := must.Get(to.Snapshots())(t); len(list) != snapshotsKept ||
		list[0].InputSeq != want[0].InputSeq || list[2].InputSeq != want[2].InputSeq {
		t.Errorf("%+v, want %+v", list, want)
	}
	must.OK(t, to.Close())
	names, kept := must.Get(fs.List("copy/"+snapshotsName))(t), files[len(files)-2*snapshotsKept:]
	slices.Sort(names)
	if slices.Sort(kept); !slices.Equal(names, kept) {
		t.Errorf("files %v, want %v", names, kept)
	}
}

// TestLimitCutsAnywhere ends a copy at every sequence, also inside of a commit. What is there is
// the history up to that command, a snapshot behind it is not, and a journal that goes on from
// there holds.
func TestLimitCutsAnywhere(t *testing.T) {
	j, f, streams, ends := sections(t, DurabilityFsync)
	for limit := uint64(1); limit <= ends[2].InputSeq; limit++ {
		fs := vfs.NewMem()
		_, err := ReceiveAll("copy", limit, strict(t, fs), readers(streams...)...)
		must.OK(t, err)
		_, err = Verify(t.Context(), "copy", VerifyOptions{FS: fs, Engine: func([]byte) (Engine, error) {
			return &toy{flow: f}, nil
		}})
		must.OK(t, err)
		to, err := Open("copy", strict(t, fs))
		must.OK(t, err)
		if head, _ := to.Head(); head != limit {
			t.Fatalf("head %d, want %d", head, limit)
		}
		again := flow{seed: f.seed, idsEvery: f.idsEvery}
		must.OK(t, compareHistory(to, &again, limit))
		list, err := to.Snapshots()
		must.OK(t, err)
		if want := limit >= ends[1].InputSeq; (len(list) == 1) != want {
			t.Errorf("limit %d: %d snapshots", limit, len(list))
		}
		must.OK(t, to.Close())
	}
	_, err := ReceiveAll("more", ends[2].InputSeq+1, strict(t, vfs.NewMem()), readers(streams...)...)
	must.Be(t, err, transfer.ErrNotWhole)
	must.OK(t, j.Close())
}

// TestASectionEndsWhereACommitStays takes a section while commands come one by one, and cuts the
// power. The journal goes on from the section's end, and from that of a snapshot that was kept. In
// mode "fsync" with a tail that is less than what is stable: the tail's commands are packed into
// other commits by the next opening.
func TestASectionEndsWhereACommitStays(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS, withLog} {
		t.Run(mode, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			o, cut := stableMode(t, mode, mem)
			f := flow{seed: 5, idsEvery: 3}
			j := openNew(t, "j", o)
			k := must.Get(OpenSnapshotFolder(j, "kept"))(t)
			var ends []Point
			for n := range 20 {
				appendAll(t, j, &f, 1, 2, 1)
				must.OK(t, j.WaitStable(t.Context(), f.inputSeq))
				if n%4 == 3 {
					must.OK(t, j.WaitStableEnd(t.Context(), f.inputSeq))
				}
				tr := must.Get(j.TransferAfter(Point{}))(t)
				stream := must.Get(io.ReadAll(tr))(t)
				must.OK(t, tr.Close())
				to := must.Get(CheckStream(bytes.NewReader(stream), j.Seed(), Point{}))(t).To
				if n%4 == 3 && to.InputSeq != f.inputSeq {
					t.Errorf("a section ends at %d, want what is stable, %d", to.InputSeq, f.inputSeq)
				}
				ends = append(ends, to)
				sh := must.Get(OpenShadow(j, toyRebuild(f), f.inputSeq, nil))(t)
				must.OK(t, sh.Follow(t.Context(), f.inputSeq, nil))
				if err := k.Write(sh); err != nil && (n%4 == 3 || !errors.Is(err, ErrSnapshot)) {
					t.Errorf("a snapshot at %d is not kept: %v", f.inputSeq, err)
				}
				must.OK(t, sh.Close())

				left := must.Get(Open("j", Options{FS: cut(), boot: "boot-2", Fatal: func(error) {}}))(t)
				for _, end := range ends {
					if end.InputSeq > 0 {
						must.OK(t, must.Get(left.TransferAfter(end))(t).Close())
					}
				}
				kept := must.Get(OpenSnapshotFolder(left, "kept"))(t)
				if got, want := kept.Sequences(), k.Sequences(); !slices.Equal(got, want) {
					t.Errorf("kept are %d, after a power cut %d", want, got)
				}
				must.OK(t, left.Close())
			}
			must.OK(t, j.Close())
		})
	}
}

func TestSectionOfAnotherPlaceIsRefused(t *testing.T) {
	j, _, streams, ends := sections(t, DurabilityFsync)
	inside := ends[0]
	inside.InputSeq--
	chain := ends[0]
	chain.Chain[0]++
	beyond := ends[2]
	beyond.InputSeq++
	for name, p := range map[string]Point{"inside of a commit": inside, "another chain": chain,
		"beyond the head": beyond} {
		if _, err := j.TransferAfter(p); err == nil {
			t.Errorf("%s: a stream", name)
		} else {
			must.Be(t, err, ErrBase)
		}
	}
	other, _, foreign, _ := sectionsOf(t, 6)
	for name, list := range map[string][][]byte{
		"a hole":       {streams[0], streams[2]},
		"out of order": {streams[0], streams[2], streams[1]},
		"no beginning": {streams[1]},
		"twice":        {streams[0], streams[1], streams[1]},
		"two wholes":   {streams[0], streams[0]},
		"foreign":      {streams[0], foreign[1]},
	} {
		fs := vfs.NewMem()
		_, err := ReceiveAll("copy", 0, strict(t, fs), readers(list...)...)
		if err == nil {
			t.Errorf("%s: received", name)
			continue
		}
		must.Be(t, err, ErrBase)
		must.Be(t, err, transfer.ErrNotWhole)
	}
	must.OK(t, j.Close())
	must.OK(t, other.Close())
}

// sectionsOf is another journal of the same shape.
func sectionsOf(t testing.TB, seed uint64) (j *Journal, f flow, streams [][]byte, ends []Point) {
	f = flow{seed: seed, idsEvery: 3}
	j = openNew(t, "other", strict(t, vfs.NewMem()))
	var at Point
	for range 2 {
		appendAll(t, j, &f, 20)
		stream, to := section(t, j, at)
		streams, ends, at = append(streams, stream), append(ends, to), to
	}
	return j, f, streams, ends
}

// TestCheckFindsEveryFlip flips each byte of a section in turn, and cuts it at each length.
func TestCheckFindsEveryFlip(t *testing.T) {
	j, _, streams, ends := sections(t, DurabilityFsync)
	whole := sha256.Sum256(streams[1])
	for at := range streams[1] {
		bad := bytes.Clone(streams[1])
		bad[at] ^= 0x10
		if _, err := CheckStream(bytes.NewReader(bad), j.Seed(), ends[0]); err == nil {
			t.Fatalf("flip at %d is not found", at)
		}
		if _, err := CheckStream(bytes.NewReader(bad[:at]), j.Seed(), ends[0]); err == nil {
			t.Fatalf("cut at %d is not found", at)
		}
	}
	if sha256.Sum256(streams[1]) != whole {
		t.Fatal("the test has changed its stream")
	}
	must.OK(t, j.Close())
}

// TestPointIsTheTextOfManifests pins the JSON that released backups and archives have.
func TestPointIsTheTextOfManifests(t *testing.T) {
	p := Point{InputSeq: 1<<64 - 1, TradeSeq: 2, Chain: sha256.Sum256(nil)}
	const text = `{"inputSequence":18446744073709551615,"tradeSequence":2,"chain":` +
		`"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`
	got := must.Get(json.Marshal(p))(t)
	if string(got) != text {
		t.Errorf("got %s, want %s", got, text)
	}
	var again Point
	must.OK(t, json.Unmarshal([]byte(text), &again))
	if again != p {
		t.Errorf("read %+v, want %+v", again, p)
	}
	for _, bad := range []string{
		`{"inputSequence":1,"tradeSequence":2,"chain":""}`,
		`{"inputSequence":1,"tradeSequence":2,"chain":"e3b0"}`,
		`{"inputSequence":1,"tradeSequence":2,"chain":"` + strings.Repeat("x", 64) + `"}`,
		`{"inputSequence":-1}`, `[]`,
	} {
		if err := json.Unmarshal([]byte(bad), &again); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
