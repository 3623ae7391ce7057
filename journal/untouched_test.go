package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// same compares two directories: every name, and every byte. Lock files are empty, and the first
// opening makes one that is missing.
func (im image) same(other image) error {
	for _, name := range slices.Sorted(maps.Keys(other)) {
		if b, ok := im[name]; !ok && len(other[name]) > 0 {
			return fmt.Errorf("%s is new", name)
		} else if string(b) != string(other[name]) {
			return fmt.Errorf("%s has changed", name)
		}
	}
	for name := range im {
		if _, ok := other[name]; !ok {
			return fmt.Errorf("%s is gone", name)
		}
	}
	return nil
}

// started does what a start does: read everything that it needs, then begin.
func startedOn(fs vfs.FS) (refused, later error) {
	j, err := Prepare("j", Options{FS: fs, boot: "boot-1", Fatal: func(error) {}})
	if err != nil {
		return err, nil
	}
	if _, created := j.Genesis(); created {
		none := func([]matcher.Command, ClientIDs) error { return nil }
		_, err = j.LastFills(1 << 20)
		err = errors.Join(err, j.Replay(context.Background(), 1, none))
		if err != nil {
			return errors.Join(err, j.Close()), nil
		}
	}
	if err := j.Begin(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	// What the store reads by itself, a moment later.
	_, err = j.db.SSTables(pebble.WithProperties())
	return nil, errors.Join(err, j.Close())
}

// TestARefusedStartChangesNoByte flips a bit in every kind of file of a journal. A start refuses
// and leaves every file as it was, or it succeeds and the store has nothing left to find.
func TestARefusedStartChangesNoByte(t *testing.T) {
	t.Logf("-args -faultseed=%d", *faultSeed)
	r := rand.New(rand.NewPCG(*faultSeed, 7))
	each := 16
	if testing.Short() {
		each = 4
	}
	for name, d := range wrecks(t) {
		count := map[string]int{}
		for _, file := range d.files() {
			for i := range each {
				b := slices.Clone(d.image[file])
				at := r.IntN(len(b))
				if i%2 == 0 { // what a file begins and ends with is read first
					at = len(b) - 1 - r.IntN(min(len(b), 512))
				}
				b[at] ^= 1 << r.IntN(8)
				fs := d.restore(t, file, b)
				before := capture(t, fs, "j")
				refused, later := startedOn(fs)
				what := fmt.Sprintf("%s: byte %d of %d of %s", name, at, len(b), file)
				if later != nil {
					t.Errorf("%s: found after the store was opened for writing: %v", what, later)
				}
				if refused == nil {
					count["whole"]++
					continue
				}
				count["refused"]++
				if err := before.same(capture(t, fs, "j")); err != nil {
					t.Errorf("%s: refused with %v, but %v", what, refused, err)
				}
				if text := refused.Error(); strings.Contains(text, carrier) {
					t.Errorf("%s: %s", what, text)
				}
			}
		}
		t.Logf("%s: %v", name, count)
	}
}

// TestAStartThatIsRefusedByItsCallerChangesNoByte: the caller compares what Prepare has read with
// something else, and refuses. The commands of the tail have been read by then.
func TestAStartThatIsRefusedByItsCallerChangesNoByte(t *testing.T) {
	fs := vfs.NewMem()
	o, fake := tailed(t, fs)
	g := newGate()
	o.FS = g.fs(fs)
	f := &flow{seed: 3, idsEvery: 3}
	j := openNew(t, "j", o)
	appendAll(t, j, f, 20, 20)
	g.shut()
	var b Block
	publishAll(t, j, f, &b, 15) // in the tail alone
	left := fake.into(t, vfs.FS(fs).(*vfs.MemFS), always)
	d := damaged{capture(t, left, "j"), *f, f.inputSeq}
	g.release()
	must.OK(t, j.Close())

	fs2 := d.restore(t, "", nil)
	o2, _ := tailed(t, fs2)
	j, err := Prepare("j", o2)
	must.OK(t, err)
	expectHistory(t, j, f, 55)
	must.Be(t, j.Create(testGenesis), ErrReading)
	must.OK(t, j.Close())
	must.OK(t, d.image.same(capture(t, fs2, "j")))

	j, err = Prepare("j", o2)
	must.OK(t, err)
	expectHistory(t, j, f, 55)
	must.OK(t, j.Begin())
	expectHistory(t, j, f, 55)
	appendAll(t, j, f, 5)
	expectHistory(t, j, f, 60)
	must.OK(t, j.Close())
}

// TestARefusalToAcceptChangesNoByte: accept verifies first.
func TestARefusalToAcceptChangesNoByte(t *testing.T) {
	r := rand.New(rand.NewPCG(*faultSeed, 8))
	each := 12
	if testing.Short() {
		each = 3
	}
	for name, d := range wrecks(t) {
		refusals := 0
		for _, file := range d.files() {
			for range each {
				b := slices.Clone(d.image[file])
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
				fs := d.restore(t, file, b)
				before := capture(t, fs, "j")
				report, err := AcceptHistory(context.Background(), "j", verifying(fs, d.flow))
				if err == nil {
					copied := capture(t, fs, report.Copy)[report.Copy+"/anchor"]
					if report.Copy == "" || string(copied) != string(before["j/anchor"]) {
						t.Errorf("%s: accepted, and the anchor was not copied to %q", name, report.Copy)
					}
					continue
				}
				refusals++
				if err2 := before.same(capture(t, fs, "j")); err2 != nil {
					t.Errorf("%s: %s: refused with %v, but %v", name, file, err, err2)
				}
			}
		}
		if refusals == 0 {
			t.Errorf("%s: nothing was refused", name)
		}
	}
}

// TestWhatAcceptReplacesIsCopied: the anchor, the tail, and the logs that the next opening removes
// are copied, each time into a folder of its own.
func TestWhatAcceptReplacesIsCopied(t *testing.T) {
	d := wrecks(t)["grown killed"]
	var log string
	for _, file := range d.files() {
		if isLog(file) {
			log = file
		}
	}
	fs := d.restore(t, log, d.image[log][:len(d.image[log])/2])
	must.OK(t, putFile(fs, "j/tail", []byte("not a tail")))
	before := capture(t, fs, "j")
	for n := 1; n <= 2; n++ {
		r := must.Get(AcceptHistory(context.Background(), "j", verifying(fs, d.flow)))(t)
		if want := fmt.Sprintf("j/accepted-%d", n); r.Copy != want {
			t.Fatalf("copied to %s, want %s", r.Copy, want)
		}
	}
	copied := capture(t, fs, "j/accepted-1")
	for name, b := range before {
		at := "j/accepted-1/" + strings.TrimPrefix(name, "j/")
		if isTable(name) || strings.Contains(name, "/snapshots/") || len(b) == 0 {
			continue
		}
		if got, ok := copied[at]; !ok || string(got) != string(b) {
			t.Errorf("%s was not copied", name)
		}
	}
	if string(capture(t, fs, "j")["j/tail.refused"]) != "not a tail" {
		t.Error("the tail was not set aside")
	}
}
