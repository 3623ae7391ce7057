package tca

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
)

var fileNames = []string{samplesName, arrivalsName, checkpointName}

// sameFiles asks that two indexes are the same, byte for byte.
func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	for _, name := range fileNames {
		one := must.Get(os.ReadFile(filepath.Join(a, name)))(t)
		other := must.Get(os.ReadFile(filepath.Join(b, name)))(t)
		if !bytes.Equal(one, other) {
			t.Errorf("file %s: %d and %d bytes, which differ", name, len(one), len(other))
		}
	}
}

// snatch copies an index's folder while it is being written, file after file in any order: what a
// kill leaves behind, and worse.
func snatch(t *testing.T, rnd *rand.Rand, from string) string {
	t.Helper()
	to := t.TempDir()
	for _, i := range rnd.Perm(len(fileNames)) {
		text, err := os.ReadFile(filepath.Join(from, fileNames[i]))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		must.OK(t, os.WriteFile(filepath.Join(to, fileNames[i]), text, 0o600))
	}
	return to
}

// mangle changes a file's text in place or cuts it.
func mangle(t *testing.T, rnd *rand.Rand, name string, how int) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || len(text) == 0 {
		return "nothing to damage"
	}
	at := rnd.IntN(len(text))
	said := ""
	switch how {
	case 0:
		text, said = text[:at], "cut off"
	case 1:
		text[at] ^= 1 << rnd.IntN(8)
		said = "flipped"
	case 2:
		clear(text[at&^511 : min(len(text), at&^511+4096)])
		said = "torn"
	}
	must.OK(t, os.WriteFile(name, text, 0o600))
	return said
}

// killed is a venue with copies of its index from many moments.
func killed(t *testing.T, rnd *rand.Rand) (v *venue, o Options, copies []string) {
	t.Helper()
	v = newVenue(t)
	f := &flow{v: v, rnd: rnd}
	f.steps(scaled(12_000))
	o = v.options()
	o.CheckpointCommands = 400
	head := v.head()
	v.become(0)
	x := open(t, o)
	stop := run(t, x)
	for at := uint64(0); at < head; {
		at = min(head, at+1+rnd.Uint64N(700))
		v.become(at)
		if rnd.IntN(2) == 0 {
			caughtUp(t, x, v)
		}
		copies = append(copies, snatch(t, rnd, o.Dir))
	}
	caughtUp(t, x, v)
	stop()
	closeAll(t, x)
	return v, o, copies
}

func TestAnIndexKilledAtAnyMomentGoesOn(t *testing.T) {
	rnd := seeded(t)
	v, o, copies := killed(t, rnd)
	fresh := o.Dir
	again, rebuilt := 0, 0
	for n, dir := range copies {
		o.Dir = dir
		// Half of the copies also lose their end. A lost end that the checkpoint does not cover has no
		// effect; a file that is shorter than its checkpoint says has one.
		if n%2 == 0 {
			mangle(t, rnd, filepath.Join(dir, fileNames[rnd.IntN(3)]), 0)
		}
		if n%7 == 0 {
			must.OK(t, os.WriteFile(filepath.Join(dir, checkpointName+".new"), []byte("half a checkpoi"),
				0o600))
		}
		x := open(t, o)
		if x.Applied() > 0 {
			again++
		} else {
			rebuilt++
		}
		follow(t, x, v)
		closeAll(t, x)
		sameFiles(t, dir, fresh)
		if t.Failed() {
			t.Fatalf("copy %d", n)
		}
	}
	t.Logf("%d copies: %d went on from a checkpoint, %d began again", len(copies), again, rebuilt)
	if len(copies) > 20 && (again == 0 || rebuilt == 0) {
		t.Error("one of the two ways was not taken")
	}
}

// TestADamagedIndexNeverAnswersWrongly flips and zeroes bytes in every file. A report is then
// either right, or refused while the index is being built again.
func TestADamagedIndexNeverAnswersWrongly(t *testing.T) {
	rnd := seeded(t)
	v, o, copies := killed(t, rnd)
	oracle := newOracle(o.Window, v.events)
	want := make([]string, len(v.trades))
	for i, trade := range v.trades {
		if i%9 == 0 {
			want[i] = oracle.report(trade)
		}
	}
	o.Patience = time.Minute
	damaged := 0
	for n, dir := range copies {
		o.Dir = dir
		for range 3 {
			mangle(t, rnd, filepath.Join(dir, fileNames[n%3]), 1+rnd.IntN(2))
		}
		x := open(t, o)
		stop := run(t, x)
		caughtUp(t, x, v)
		for i := 0; i < len(v.trades); i += 9 {
			r, err := x.Report(t.Context(), v.trades[i])
			for tries := 0; err != nil && tries < 100; tries++ {
				if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrBehind) {
					t.Fatal(err)
				}
				damaged++
				caughtUp(t, x, v)
				r, err = x.Report(t.Context(), v.trades[i])
			}
			if got := string(r.AppendJSON(nil)); err != nil || got != want[i] {
				t.Fatalf("copy %d: %v\n got %s\nwant %s", n, err, got, want[i])
			}
		}
		stop()
		closeAll(t, x)
	}
	t.Logf("%d copies, %d reports refused", len(copies), damaged)
	if len(copies) > 20 && damaged == 0 {
		t.Error("no damage was met")
	}
}

func TestACheckpointOfAnotherGenesisOrHistoryIsNotUsed(t *testing.T) {
	rnd := seeded(t)
	v := newVenue(t)
	(&flow{v: v, rnd: rnd}).steps(6_000)
	o := v.options()
	x := open(t, o)
	follow(t, x, v)
	closeAll(t, x)

	t.Run("another genesis", func(t *testing.T) {
		foreign := o
		foreign.Dir = snatch(t, rnd, o.Dir)
		foreign.Genesis = []byte("another")
		x := open(t, foreign)
		if x.Applied() != 0 {
			t.Errorf("opened at %d", x.Applied())
		}
		closeAll(t, x)
	})
	other := newVenue(t)
	(&flow{v: other, rnd: rnd}).steps(9_000)
	for _, tt := range []struct {
		name string
		v    *venue
		head uint64
	}{
		{"another history of the same genesis", other, 9_000},
		{"another history that is as long", other, 6_000},
		{"another history that is shorter", other, 4_500},
		{"a journal that has lost its end", v, 5_999},
		{"an empty journal", v, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.v.become(tt.head)
			defer tt.v.become(uint64(len(tt.v.commands)))
			o := o
			o.Dir, o.Durable = snatch(t, rnd, o.Dir), tt.v.head
			// A request for a shadow at the first command shows that the index begins again.
			again := make(chan struct{})
			began := sync.OnceFunc(func() {
				// No checkpoint may be valid for the old files while new ones are written.
				if _, err := os.Stat(filepath.Join(o.Dir, checkpointName)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the checkpoint is still there: %v", err)
				}
				close(again)
			})
			o.Shadow = func(before uint64) (Shadow, error) {
				if before == 0 {
					began()
				}
				return tt.v.shadow(before)
			}
			x := open(t, o)
			for range 100 { // cached blocks of the old history must not be seen in the new one
				text(t, x, v.trades[rnd.IntN(len(v.trades))])
			}
			stop := run(t, x)
			<-again
			caughtUp(t, x, tt.v)
			stop()
			oracle := newOracle(o.Window, tt.v.events)
			for range 100 {
				trade := tt.v.trades[rnd.IntN(len(tt.v.trades))]
				if trade.Sequence > tt.head {
					continue
				}
				if got, want := text(t, x, trade), oracle.report(trade); got != want {
					t.Fatalf("\n got %s\nwant %s", got, want)
				}
			}
			closeAll(t, x)
			fresh := o
			fresh.Dir = t.TempDir()
			y := open(t, fresh)
			follow(t, y, tt.v)
			closeAll(t, y)
			if tt.head > 0 {
				sameFiles(t, o.Dir, fresh.Dir)
			}
		})
	}
}

func TestEveryByteOfACheckpointIsGuarded(t *testing.T) {
	v := newVenue(t)
	(&flow{v: v, rnd: seeded(t)}).steps(300)
	o := v.options()
	x := open(t, o)
	follow(t, x, v)
	closeAll(t, x)
	name := filepath.Join(o.Dir, checkpointName)
	good := must.Get(os.ReadFile(name))(t)
	read := func(text []byte) error {
		blank := index{open: map[uint32]arrival{}}
		_, _, err := blank.read(text, x.genesis)
		return err
	}
	must.OK(t, read(good))
	for at := range good {
		bad := bytes.Clone(good)
		bad[at]++
		if err := read(bad); !errors.Is(err, errCheckpoint) {
			t.Fatalf("byte %d changed: %v", at, err)
		}
		if err := read(good[:at]); !errors.Is(err, errCheckpoint) {
			t.Fatalf("cut at %d: %v", at, err)
		}
	}
}
