package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/journal/transfer"
	"posttrade/ring/must"
)

// smallStream is a transfer with commits, fills, client ids and a snapshot, and the flow it is of.
func smallStream(t testing.TB) ([]byte, flow) {
	t.Helper()
	f := flow{seed: 7, idsEvery: 2}
	j, made := openNew(t, "j", strict(t, vfs.NewMem())), f
	appendAll(t, j, &made, 1, 12, 3)
	snapshotNow(t, j, f)
	appendAll(t, j, &made, 2)
	stream, inputSeq, tradeSeq := streamOf(t, j)
	if inputSeq != 18 || tradeSeq == 0 {
		t.Fatalf("head %d, %d", inputSeq, tradeSeq)
	}
	must.OK(t, j.Close())
	return stream, f
}

// expectNothing checks that a failed Receive has left nothing but the lock file.
func expectNothing(t testing.TB, fs vfs.FS, dir string) {
	t.Helper()
	names := must.Get(fs.List(dir))(t)
	if !slices.Equal(names, []string{LockName}) {
		t.Fatalf("left behind: %v", names)
	}
}

// refused receives a stream that must be refused.
func refused(t testing.TB, fs vfs.FS, stream []byte) error {
	t.Helper()
	_, err := Receive("copy", bytes.NewReader(stream), strict(t, fs))
	must.Be(t, err, transfer.ErrNotWhole)
	expectNothing(t, fs, "copy")
	return err
}

func TestEveryTruncationIsRefused(t *testing.T) {
	stream, _ := smallStream(t)
	fs, step := vfs.NewMem(), 1
	if testing.Short() {
		step = 7
	}
	for n := 0; n < len(stream); n += step {
		must.Be(t, refused(t, fs, stream[:n]), io.ErrUnexpectedEOF)
	}
	// into the same directory
	must.Get(Receive("copy", bytes.NewReader(stream), strict(t, fs)))(t)
}

func TestEveryFlipIsRefused(t *testing.T) {
	t.Logf("-args -faultseed=%d", *faultSeed)
	stream, _ := smallStream(t)
	r := rand.New(rand.NewPCG(*faultSeed, 11))
	fs := vfs.NewMem()
	for range 500 {
		at, bit := r.IntN(len(stream)), byte(1)<<r.IntN(8)
		flipped := slices.Clone(stream)
		flipped[at] ^= bit
		if _, err := Receive("copy", bytes.NewReader(flipped),
			strict(t, fs)); !errors.Is(err, transfer.ErrNotWhole) {
			t.Fatalf("bit %#x of byte %d: %v", bit, at, err)
		}
		expectNothing(t, fs, "copy")
	}
}

// frame is one frame of a stream, taken apart.
type frame struct {
	kind byte
	body []byte
}

// streamHeader is the size of a stream's header (FORMAT.md, section 6).
const streamHeader = 16

// framesOf takes a stream apart, without its end. It stops at the first frame that is not whole.
func framesOf(stream []byte) (all []frame) {
	b := stream[streamHeader:]
	for len(b) >= transfer.FrameBytes && b[0] != transfer.KindEnd {
		kind, n := b[0], binary.LittleEndian.Uint64(b[8:])
		b = b[transfer.FrameBytes:]
		if n > uint64(len(b)) {
			break
		}
		all = append(all, frame{kind, b[:n]})
		b = b[n:]
	}
	return all
}

// signed puts frames together, with a valid end.
func signed(all []frame) []byte {
	var w transfer.Writer
	w.Begin(false)
	for _, f := range all {
		w.Frame(f.kind, f.body)
	}
	w.End()
	return w.Take()
}

// TestWellSignedNonsenseIsRefused sends streams with right hashes and wrong content.
func TestWellSignedNonsenseIsRefused(t *testing.T) {
	stream, _ := smallStream(t)
	good := framesOf(stream)
	if !bytes.Equal(signed(good), stream) {
		t.Fatal("the test's own frames are wrong")
	}
	var kinds []byte
	at := map[byte]int{} // of the first frame of a kind
	for i, f := range good {
		kinds = append(kinds, f.kind)
		if _, ok := at[f.kind]; !ok {
			at[f.kind] = i
		}
	}
	t.Logf("frames %s", kinds)
	manifest := func(change func(*Snapshot)) []frame {
		s := must.Get(readManifest(good[at[keySnapshot]].body))(t)
		change(&s)
		v := must.Get(putManifest(s))(t)
		all := slices.Clone(good)
		all[at[keySnapshot]].body = v
		return all
	}
	without := func(i int) []frame { return slices.Delete(slices.Clone(good), i, i+1) }
	with := func(i int, f frame) []frame { return slices.Insert(slices.Clone(good), i, f) }
	last := len(good)
	tests := []struct {
		name   string
		frames []frame
	}{
		{"no frame at all", nil},
		{"no genesis", without(0)},
		{"two geneses", with(1, good[0])},
		{"first commit missing", without(1)},
		{"fills missing", without(at[keyFills])},
		{"client ids missing", without(at[keyIDs])},
		{"a commit twice", with(2, good[1])},
		{"client ids of no command", with(at[keyIDs]+1, good[at[keyIDs]])},
		{"commands behind the snapshot", with(last, good[1])},
		{"two snapshots", with(last, good[at[keySnapshot]])},
		{"snapshot's file missing", without(last - 1)},
		{"a file of nothing", with(at[keySnapshot], good[last-1])},
		{"an unknown frame", with(last, frame{'x', nil})},
		{"manifest of nothing", with(at[keySnapshot], frame{keySnapshot, nil})},
		{"manifest without a path", manifest(func(s *Snapshot) { s.State.Path = "" })},
		{"manifest with a path elsewhere",
			manifest(func(s *Snapshot) { s.State.Path = "../../etc/passwd" })},
		{"manifest with another snapshot's path",
			manifest(func(s *Snapshot) { s.State.Path = snapshotsName + "/" + stateName(1) })},
		{"views elsewhere", manifest(func(s *Snapshot) { s.Views.Path = "snapshots/../anchor" })},
		{"snapshot beyond the head", manifest(func(s *Snapshot) {
			s.InputSeq = 19
			s.State.Path, s.Views.Path = snapshotsName+"/"+stateName(19), snapshotsName+"/"+viewsName(19)
		})},
		{"another hash in the manifest", manifest(func(s *Snapshot) {
			s.State.SHA256 = strings.Repeat("0", 64)
		})},
		{"another length in the manifest", manifest(func(s *Snapshot) { s.State.Bytes++ })},
		{"a negative length", manifest(func(s *Snapshot) { s.State.Bytes = -1 })},
		{"manifest too long", with(at[keySnapshot], frame{keySnapshot, make([]byte, maxManifest+1)})},
		{"genesis too long", []frame{{keyGenesis, make([]byte, maxGenesis+genesisHeader+1)}}},
		{"block too long", with(1, frame{keyCommands, make([]byte, maxBlock(keyCommands)+1)})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Log(refused(t, vfs.NewMem(), signed(tt.frames)))
		})
	}
}

func TestStreamThatDoesNotEndIsRefused(t *testing.T) {
	stream, _ := smallStream(t)
	refused(t, vfs.NewMem(), append(slices.Clone(stream), 0))
}

func TestAnotherNumberOfFramesIsRefused(t *testing.T) {
	stream, _ := smallStream(t)
	signs := len(stream) - sha256.Size
	stream[signs-8]++
	sum := sha256.Sum256(stream[:signs])
	copy(stream[signs:], sum[:])
	refused(t, vfs.NewMem(), stream)
}

func TestReadersErrorsComeBack(t *testing.T) {
	stream, _ := smallStream(t)
	torn := errors.New("connection torn")
	for _, n := range []int{0, 10, 40, len(stream) / 2, len(stream) - 5, len(stream)} {
		fs := vfs.NewMem()
		_, err := Receive("copy", io.MultiReader(bytes.NewReader(stream[:n]), iotest.ErrReader(torn)),
			strict(t, fs))
		must.Be(t, err, torn)
		if errors.Is(err, transfer.ErrNotWhole) {
			t.Errorf("at %d the reader's error is a fault of the stream: %v", n, err)
		}
		expectNothing(t, fs, "copy")
	}
}

func TestReceiveReadsByteByByte(t *testing.T) {
	stream, f := smallStream(t)
	o := strict(t, vfs.NewMem())
	must.Get(Receive("copy", iotest.OneByteReader(bytes.NewReader(stream)), o))(t)
	c := must.Get(Open("copy", o))(t)
	must.OK(t, errors.Join(compareHistory(c, &f, 18), c.Close()))
}

func TestReceiveNeedsAnEmptyDirectory(t *testing.T) {
	stream, _ := smallStream(t)
	fs := vfs.NewMem()
	o := strict(t, fs)
	j, made := openNew(t, "j", o), flow{seed: 1}
	appendAll(t, j, &made, 3)
	_, err := Receive("j", bytes.NewReader(stream), o)
	must.Be(t, err, ErrLocked)
	must.OK(t, j.Close())
	_, err = Receive("j", bytes.NewReader(stream), o)
	must.Be(t, err, ErrNotEmpty)
	j, err = Open("j", o)
	must.OK(t, err)
	must.OK(t, errors.Join(compareHistory(j, &flow{seed: 1}, 3), j.Close()))
	_, err = Receive("copy", nil, Options{Durability: "perhaps"})
	must.Be(t, err, ErrDurability)
}

func TestUnfinishedJournalIsRefusedAndOverwritten(t *testing.T) {
	stream, f := smallStream(t)
	fs := vfs.NewMem()
	o := strict(t, fs)
	j, made := openNew(t, "copy", o), flow{seed: 2}
	appendAll(t, j, &made, 40)
	must.OK(t, j.Close())
	mark, err := fs.Create("copy/"+receivingName, writeCategory)
	must.OK(t, errors.Join(err, mark.Close()))
	_, err = Open("copy", o)
	must.Be(t, err, ErrUnfinished)
	_, err = Verify(t.Context(), "copy", VerifyOptions{FS: fs})
	must.Be(t, err, ErrUnfinished)
	_, err = Receive("copy", bytes.NewReader(stream), o)
	must.OK(t, err)
	j, err = Open("copy", o)
	must.OK(t, err)
	must.OK(t, errors.Join(compareHistory(j, &f, 18), j.Close()))
}

func TestTransferTakesTheNewestSnapshotThatHolds(t *testing.T) {
	fs := vfs.NewMem()
	o := strict(t, fs)
	heard := &lines{}
	o.Logger = heard
	f := flow{seed: 1, idsEvery: 4}
	j, made := openNew(t, "j", o), f
	var snaps []Snapshot
	for range 3 {
		appendAll(t, j, &made, 10)
		snaps = append(snaps, snapshotNow(t, j, f))
	}
	received := func() (seqs []uint64) {
		t.Helper()
		stream, _, _ := streamOf(t, j)
		must.OK(t, fs.RemoveAll("copy"))
		_, err := Receive("copy", bytes.NewReader(stream), o)
		must.OK(t, err)
		c, err := Open("copy", o)
		must.OK(t, err)
		expectCopy(t, j, c, f)
		list, err := c.Snapshots()
		must.OK(t, errors.Join(err, c.Close()))
		for _, s := range list {
			seqs = append(seqs, s.InputSeq)
		}
		return seqs
	}
	damage := func(s SnapshotFile) {
		b := must.Get(fs.UnsafeGetFileDataBuffer("j/" + s.Path))(t)
		b[len(b)/2] ^= 4
	}
	expect := func(want []uint64, about string) {
		t.Helper()
		if got := received(); !slices.Equal(got, want) || !strings.Contains(heard.String(), about) {
			t.Fatalf("snapshots %v, want %v; log %q", got, want, heard)
		}
	}
	expect([]uint64{30}, "")
	damage(*snaps[2].Views)
	expect([]uint64{20}, snaps[2].Views.Path)
	must.OK(t, fs.Remove("j/"+snaps[1].State.Path))
	expect([]uint64{10}, snaps[1].State.Path)
	damage(snaps[0].State)
	expect(nil, snaps[0].State.Path)
	must.OK(t, j.db.Set(newKey(keySnapshot, 31), []byte("nonsense"), pebble.Sync))
	expect(nil, "key=s/31")
	must.OK(t, j.Close())
}

// lines is a Logger that keeps its messages.
type lines struct{ strings.Builder }

func (l *lines) Infof(format string, args ...any)  { fmt.Fprintf(l, format+"\n", args...) }
func (l *lines) Errorf(format string, args ...any) { fmt.Fprintf(l, format+"\n", args...) }
