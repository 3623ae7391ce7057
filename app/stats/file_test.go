package stats

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/ring/must"
)

// numbered fills every block with words that count up from n.
func numbered(n uint64) *Image {
	image := &Image{}
	for _, block := range image.blocks() {
		for i := range block {
			block[i] = n
			n++
		}
	}
	return image
}

// newStats makes a stats file in a folder of the test.
func newStats(t *testing.T) (path string, f *file) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "stats")
	f = must.Get(createStats(path, time.Unix(1_800_000_000, 7)))(t)
	t.Cleanup(func() { f.Close() })
	return path, f
}

// loaded reads a stats file as another process would.
func loaded(t *testing.T, path string) (image Image, alive bool) {
	t.Helper()
	f, err := OpenStats(path)
	must.OK(t, err)
	defer f.Close()
	must.OK(t, f.Load(&image))
	if alive, err = f.Alive(); err != nil {
		t.Fatal(err)
	}
	return image, alive
}

// TestStatsLayoutIsFixed pins the layout that a program of the same version relies on.
func TestStatsLayoutIsFixed(t *testing.T) {
	want := [][2]int{{16, 4}, {32, 26}, {64, 53}, {128, 164}, {304, 166}, {480, 11}, {496, 8},
		{512, 167}, {688, 351}} // word, words
	var got [][2]int
	at := first
	for _, block := range (&Image{}).blocks() {
		got = append(got, [2]int{at, len(block)})
		at = nextBlock(at, block)
	}
	if !slices.Equal(got, want) || Version != 3 {
		t.Errorf("version %d has its blocks at %v, want version 3 with %v: another layout is "+
			"another version", Version, got, want)
	}
	if at*8 > bytes {
		t.Errorf("the blocks end at %d, the file at %d", at*8, bytes)
	}
}

func TestStatsAreReadAsWritten(t *testing.T) {
	path, f := newStats(t)
	want := numbered(1)
	must.OK(t, f.store(want))
	got, alive := loaded(t, path)
	want.Header = Header{Magic, Version, 1_800_000_000_000_000_007, uint64(os.Getpid())}
	if got != *want || !alive {
		t.Errorf("alive %t, got %+v, want %+v", alive, got, *want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != mode || info.Size() != bytes {
		t.Errorf("mode %v, %d bytes, %v", info.Mode(), info.Size(), err)
	}
	must.OK(t, f.Close())
	if got, alive = loaded(t, path); alive || got != *want {
		t.Errorf("after the writer: alive %t, got %+v", alive, got)
	}
}

// tornLooks is the number of looks, and the least number of writes.
const tornLooks = 20_000

// TestTornStatsAreNeverShown reads while the file is rewritten all the time: all words of a block
// come from one write.
func TestTornStatsAreNeverShown(t *testing.T) {
	path, f := newStats(t)
	var writings atomic.Uint64
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		image := &Image{}
		for n := uint64(0); ; n++ {
			for _, block := range image.blocks() {
				for i := range block {
					block[i] = n
				}
			}
			if err := f.store(image); err != nil {
				ended <- err
				return
			}
			writings.Store(n)
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
		}
	}()
	reader := must.Get(OpenStats(path))(t)
	defer reader.Close()
	for look := uint64(0); look < tornLooks || writings.Load() < tornLooks; look++ {
		var image Image
		must.OK(t, reader.Load(&image))
		for b, block := range image.blocks() {
			for i, w := range block {
				if w != block[0] {
					t.Fatalf("look %d: word %d of block %d is of writing %d, word 0 of %d", look, i, b, w,
						block[0])
				}
			}
		}
	}
	close(stop)
	must.OK(t, <-ended)
}

// TestHalfWrittenStatsAreSaidToBe: a writer that was killed inside a block.
func TestHalfWrittenStatsAreSaidToBe(t *testing.T) {
	path, f := newStats(t)
	f.lockAt(nextBlock(first, f.words[:4])).Begin()
	reader := must.Get(OpenStats(path))(t)
	defer reader.Close()
	synctest.Test(t, func(t *testing.T) { // the reader waits in simulated time
		if err := reader.Load(&Image{}); !errors.Is(err, errStatsTorn) {
			t.Errorf("a half written file is read: %v", err)
		}
	})
}

func TestBadStatsFilesAreRefused(t *testing.T) {
	file := func(magic, version uint64) string {
		text := make([]byte, bytes)
		binary.NativeEndian.PutUint64(text, magic)
		binary.NativeEndian.PutUint64(text[8:], version)
		return string(text)
	}
	tests := []struct {
		name, text string
		want       error
	}{
		{"empty", "", errStatsForeign},
		{"too short", file(Magic, Version)[:bytes-1], errStatsForeign},
		{"something else", file(Magic+1, Version), errStatsForeign},
		{"another version", file(Magic, Version+1), errStatsVersion},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "stats")
			must.OK(t, os.WriteFile(path, []byte(tt.text), 0o600))
			if _, err := OpenStats(path); !errors.Is(err, tt.want) {
				t.Errorf("opened with %v, want %v", err, tt.want)
			}
		})
	}
	if _, err := OpenStats(filepath.Join(t.TempDir(), "stats")); !errors.Is(err, errStatsAbsent) {
		t.Errorf("nothing there: %v", err)
	}
	if _, err := OpenStats(t.TempDir()); err == nil {
		t.Error("a folder is opened")
	}
}

// TestStatsThatAreCutShortAreAnError truncates the file while writer and reader use it. Both get an
// error, where a fault would end the process.
func TestStatsThatAreCutShortAreAnError(t *testing.T) {
	path, f := newStats(t)
	reader := must.Get(OpenStats(path))(t)
	defer reader.Close()
	must.OK(t, os.Truncate(path, 0))
	if err := f.store(numbered(1)); !errors.Is(err, ErrStatsFault) {
		t.Errorf("written with %v", err)
	}
	if err := reader.Load(&Image{}); !errors.Is(err, ErrStatsFault) {
		t.Errorf("read with %v", err)
	}
}

// TestOtherPanicsAreNotSwallowed: only a memory fault becomes an error.
func TestOtherPanicsAreNotSwallowed(t *testing.T) {
	defer func() {
		if r := recover(); r != "a bug" {
			t.Errorf("recovered %v", r)
		}
	}()
	withoutFaults(func() { panic("a bug") })
}

// TestStartReplacesStats starts beside an old file and one that was never finished.
func TestStartReplacesStats(t *testing.T) {
	path, old := newStats(t)
	must.OK(t, os.WriteFile(path+".new", []byte("half"), 0o400))
	before := must.Get(OpenStats(path))(t)
	defer before.Close()
	f := must.Get(createStats(path, time.Unix(1_900_000_000, 0)))(t)
	defer f.Close()
	must.OK(t, old.Close())
	if image, alive := loaded(t, path); !alive ||
		image.Header.Generation != 1_900_000_000_000_000_000 {
		t.Errorf("alive %t, generation %d", alive, image.Header.Generation)
	}
	if alive, err := before.Alive(); alive || err != nil {
		t.Errorf("the old file's process is alive: %t, %v", alive, err)
	}
}

func TestStatsThatCannotBeMadeLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := createStats(filepath.Join(dir, "absent", "stats"), time.Now()); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	// a folder in the place of the file, and in the place of the new file
	for _, taken := range []string{"stats", "other.new"} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, taken, "x"), 0o700))
	}
	for _, name := range []string{"stats", "other"} {
		if _, err := createStats(filepath.Join(dir, name), time.Now()); err == nil {
			t.Errorf("%s: made over a folder", name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestStatsBucketsHoldWhatTheySay compares bounds and buckets over the whole range.
func TestStatsBucketsHoldWhatTheySay(t *testing.T) {
	for b := 1; b < buckets; b++ {
		lower, upper := Bound(b-1).Seconds(), Bound(b).Seconds()
		if upper-lower < 10e-9 { // bounds in whole nanoseconds are too coarse there
			continue
		}
		if got := Bucket((lower + upper) / 2); got != b {
			t.Errorf("the middle of bucket %d is counted in %d", b, got)
		}
	}
	for seconds, want := range map[float64]int{0: 0, -1: 0, 1e-12: 0, 1: Offset, 1e9: buckets - 1} {
		if got := Bucket(seconds); got != want {
			t.Errorf("%v seconds are in bucket %d, want %d", seconds, got, want)
		}
	}
}
