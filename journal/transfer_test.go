package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// streamOf reads a whole transfer and checks that it has the length that Size gave.
func streamOf(t testing.TB, j *Journal) (stream []byte, inputSeq, tradeSeq uint64) {
	t.Helper()
	tr, err := j.Transfer()
	must.OK(t, err)
	stream, err = io.ReadAll(tr)
	must.OK(t, err)
	if int64(len(stream)) != tr.Size() {
		t.Fatalf("%d bytes, Size is %d", len(stream), tr.Size())
	}
	inputSeq, tradeSeq = tr.Head()
	must.OK(t, tr.Close())
	return stream, inputSeq, tradeSeq
}

// stored is every block of a journal up to a head, by key.
func stored(t testing.TB, j *Journal, inputSeq, tradeSeq uint64) map[string]string {
	t.Helper()
	all := map[string]string{}
	for kind, last := range map[byte]uint64{keyCommands: inputSeq, keyFills: tradeSeq,
		keyIDs: inputSeq} {
		must.OK(t, iterate(j.db, newKey(kind, 0), newKey(kind, last+1), func(it *pebble.Iterator) error {
			for ok := it.First(); ok; ok = it.Next() {
				v, err := it.ValueAndErr()
				if err != nil {
					return err
				}
				all[string(it.Key())] = string(v)
			}
			return nil
		}))
	}
	return all
}

// toyRebuild makes toy engines and tallies.
func toyRebuild(f flow) Rebuild {
	return Rebuild{
		Engine: func(state io.Reader) (Engine, error) {
			if state == nil {
				return &toy{flow: f}, nil
			}
			return readToy(f, state)
		},
		Views: func(image io.Reader) (Views, error) {
			if image == nil {
				return &tally{}, nil
			}
			return readTally(image)
		},
	}
}

// stateAt replays a journal up to a sequence, from genesis.
func stateAt(t testing.TB, j *Journal, f flow, to uint64) (toy, tally) {
	t.Helper()
	sh := shadowOf(j)
	must.OK(t, sh.restore(toyRebuild(f), nil, nil))
	must.OK(t, sh.Follow(context.Background(), to, nil))
	return *sh.engine.(*toy), *sh.views.(*tally)
}

// expectCopy compares a received journal with the one that it was sent from, up to its head.
func expectCopy(t testing.TB, from, to *Journal, f flow) {
	t.Helper()
	inputSeq, tradeSeq := to.Head()
	want, got := stored(t, from, inputSeq, tradeSeq), stored(t, to, inputSeq, tradeSeq)
	if len(got) != len(want) {
		t.Fatalf("%d blocks, want %d", len(got), len(want))
	}
	for key, v := range want {
		if got[key] != v {
			t.Fatalf("key=%s differs", keyName([]byte(key)))
		}
	}
	if from.Seed() != to.Seed() {
		t.Error("another seed")
	}
	must.OK(t, compareHistory(to, &flow{seed: f.seed, idsEvery: f.idsEvery}, inputSeq))
	engine, views := stateAt(t, from, f, inputSeq)
	copied, copiedViews := stateAt(t, to, f, inputSeq)
	if engine.sum != copied.sum || views != copiedViews {
		t.Error("a replay gives another state")
	}
	recovered := must.Get(Recover(context.Background(), to, toyRebuild(f),
		func(err error) { t.Error(err) }))(t)
	if recovered.Engine.(*toy).sum != engine.sum || *recovered.Views.(*tally) != views {
		t.Errorf("recovery from the snapshot at %d gives another state", recovered.Snapshot)
	}
	fills := must.Get(to.LastFills(1000))(t)
	if n := min(tradeSeq, 1000); uint64(len(fills)) != n || n > 0 && fills[n-1].TradeSeq != tradeSeq {
		t.Errorf("%d last fills of %d", len(fills), tradeSeq)
	}
}

// snapshotNow takes a snapshot of the toy engine and its views.
func snapshotNow(t testing.TB, j *Journal, f flow) Snapshot {
	t.Helper()
	s := must.Get(NewSnapshotter(j, toyRebuild(f), 0))(t)
	return must.Get(s.Take(context.Background()))(t)
}

// flushed makes the store write its tables.
func flushed(t testing.TB, j *Journal) {
	t.Helper()
	must.OK(t, guard(j.db.Flush))
}

func TestTransferGivesTheWholeJournal(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		for _, codec := range []Codec{CodecNone, CodecS2, CodecZstd} {
			t.Run(fmt.Sprint(mode, " codec ", codec), func(t *testing.T) {
				fs := vfs.NewMem()
				f := flow{seed: 3, idsEvery: 4}
				o := strict(t, fs).WithCodec(codec)
				o.Durability = mode
				j, made := openNew(t, "j", o), f
				appendAll(t, j, &made, 1, 2, 300, 1, 40)
				flushed(t, j)
				appendAll(t, j, &made, 7, 2000, 1)
				old := snapshotNow(t, j, f)
				appendAll(t, j, &made, 5)
				snap := snapshotNow(t, j, f)
				appendAll(t, j, &made, 1, 1, 30)

				stream, inputSeq, tradeSeq := streamOf(t, j)
				got, err := Receive("copy", bytes.NewReader(stream), o)
				must.OK(t, err)
				if got.InputSeq != inputSeq || got.TradeSeq != tradeSeq || inputSeq != made.inputSeq ||
					!bytes.Equal(got.Genesis, testGenesis) {
					t.Fatalf("received %+v, head %d, %d", got, inputSeq, tradeSeq)
				}
				c, err := Open("copy", o)
				must.OK(t, err)
				expectCopy(t, j, c, f)
				list, err := c.Snapshots()
				must.OK(t, err)
				if len(list) != 1 || list[0].InputSeq != snap.InputSeq || list[0].State != snap.State ||
					*list[0].Views != *snap.Views || old.InputSeq >= snap.InputSeq {
					t.Errorf("snapshots %+v", list)
				}
				appendAll(t, c, &made, 3, 4) // it goes on
				must.OK(t, compareHistory(c, &flow{seed: 3, idsEvery: 4}, made.inputSeq))
				must.OK(t, errors.Join(c.Close(), j.Close()))
				_, err = Verify(context.Background(), "copy", VerifyOptions{FS: fs, boot: "boot-1"})
				must.OK(t, err)
			})
		}
	}
}

func TestTransferOfSmallJournals(t *testing.T) {
	for _, sizes := range [][]int{nil, {1}, {1, 1, 1}, {MaxBlockCommands}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			o := strict(t, vfs.NewMem())
			f := flow{seed: 1}
			j, made := openNew(t, "j", o), f
			appendAll(t, j, &made, sizes...)
			stream, _, _ := streamOf(t, j)
			must.Get(Receive("copy", bytes.NewReader(stream), o))(t)
			c := must.Get(Open("copy", o))(t)
			expectCopy(t, j, c, f)
			again, _, _ := streamOf(t, c)
			if !slices.Equal(stream, again) {
				t.Error("the copy's own transfer is another")
			}
			must.OK(t, errors.Join(c.Close(), j.Close()))
		})
	}
}

func TestTransferWithoutGenesis(t *testing.T) {
	j, err := Open("j", strict(t, vfs.NewMem()))
	must.OK(t, err)
	_, err = j.Transfer()
	must.Be(t, err, ErrNoGenesis)
	must.OK(t, j.Close())
	_, err = j.Transfer()
	must.Be(t, err, ErrClosed)
}

// busy appends, takes snapshots and makes tables until stop is closed.
func busy(j *Journal, made *flow, f flow, stop <-chan struct{}) error {
	var b Block
	s, err := NewSnapshotter(j, toyRebuild(f), 0)
	for i := 0; err == nil; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		var c *Commit
		if c, err = j.Append(made.block(&b, 1+i%50)); err == nil {
			err = c.Wait()
		}
		if err == nil && i%20 == 0 {
			_, err = s.Take(context.Background())
		}
		if err == nil && i%7 == 0 {
			err = guard(j.db.Flush)
		}
	}
	return err
}

// TestTransferOfAJournalInUse sends while commits and snapshots continue, and the snapshot that is
// being sent is pruned.
func TestTransferOfAJournalInUse(t *testing.T) {
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		t.Run(mode, func(t *testing.T) {
			fs := vfs.NewMem()
			f := flow{seed: 5, idsEvery: 3}
			o := strict(t, fs)
			o.Durability, o.FlushInterval = mode, time.Millisecond
			j, made := openNew(t, "j", o), f
			appendAll(t, j, &made, 1, 500, 20)
			snapshotNow(t, j, f)

			stop, stopped := make(chan struct{}), make(chan error, 1)
			go func() { stopped <- busy(j, &made, f, stop) }()
			for i := range rounds {
				tr, err := j.Transfer()
				must.OK(t, err)
				inputSeq, tradeSeq := tr.Head()
				half := make([]byte, tr.Size()/2)
				_, err = io.ReadFull(tr, half)
				must.OK(t, err)
				until(t, "the journal moves on", func() bool { head, _ := j.Head(); return head > inputSeq+60 })
				rest, err := io.ReadAll(tr)
				must.OK(t, errors.Join(err, tr.Close()))
				if got := int64(len(half) + len(rest)); got != tr.Size() {
					t.Fatalf("%d bytes, Size is %d", got, tr.Size())
				}
				dir := fmt.Sprint("copy", i)
				got, err := Receive(dir, bytes.NewReader(append(half, rest...)), o)
				must.OK(t, err)
				if got.InputSeq != inputSeq || got.TradeSeq != tradeSeq {
					t.Fatalf("received %d, %d of %d, %d", got.InputSeq, got.TradeSeq, inputSeq, tradeSeq)
				}
				c, err := Open(dir, o)
				must.OK(t, err)
				expectCopy(t, j, c, f)
				must.OK(t, c.Close())
			}
			close(stop)
			must.OK(t, errors.Join(<-stopped, j.Close()))
		})
	}
}

func TestTransferSendsASnapshotThatIsPruned(t *testing.T) {
	for _, real := range []bool{false, true} {
		t.Run(fmt.Sprint("real disk ", real), func(t *testing.T) {
			o, dir := strict(t, vfs.NewMem()), "j"
			if real {
				o, dir = strict(t, vfs.Default), t.TempDir()+"/j"
			}
			f := flow{seed: 5, idsEvery: 3}
			j, made := openNew(t, dir, o), f
			appendAll(t, j, &made, 100)
			sent := snapshotNow(t, j, f)
			tr, err := j.Transfer()
			must.OK(t, err)
			for range snapshotsKept {
				appendAll(t, j, &made, 10)
				snapshotNow(t, j, f)
			}
			if _, err := o.FS.Stat(o.FS.PathJoin(dir, sent.State.Path)); !notExist(err) {
				t.Fatalf("the snapshot is still there: %v", err)
			}
			_, err = Receive(dir+".copy", tr, o)
			must.OK(t, errors.Join(err, tr.Close()))
			c, err := Open(dir+".copy", o)
			must.OK(t, err)
			expectCopy(t, j, c, f)
			list, err := c.Snapshots()
			must.OK(t, err)
			if len(list) != 1 || list[0].InputSeq != sent.InputSeq {
				t.Errorf("snapshots %+v", list)
			}
			must.OK(t, errors.Join(c.Close(), j.Close()))
		})
	}
}

// TestSizeIsCountedInTables: measuring does not read the keys of whole tables.
func TestSizeIsCountedInTables(t *testing.T) {
	j, made := openNew(t, "j", strict(t, vfs.NewMem())), flow{seed: 5, idsEvery: 3}
	for range 5 {
		appendAll(t, j, &made, 1, 200, 3)
		flushed(t, j)
	}
	appendAll(t, j, &made, 1, 2)
	for kind, last := range map[byte]uint64{keyCommands: made.inputSeq, keyFills: made.tradeSeq,
		keyIDs: made.inputSeq} {
		tables := must.Get(tablesIn(j.db, newKey(kind, 1), newKey(kind, last+1)))(t)
		whole := must.Get(countBlocks(j.db, newKey(kind, 1), newKey(kind, last+1)))(t)
		var within uint64
		for _, table := range tables {
			within += table.Properties.NumEntries
		}
		if len(tables) == 0 || within+2 < whole.blocks {
			t.Errorf("%c: %d of %d blocks in %d tables", kind, within, whole.blocks, len(tables))
		}
		for to := uint64(1); to <= last; to++ { // wherever the range ends
			got := must.Get(measureBlocks(j.db, kind, 1, to))(t)
			want := must.Get(countBlocks(j.db, newKey(kind, 1), newKey(kind, to+1)))(t)
			if got != want {
				t.Fatalf("%c up to %d: counted %+v, want %+v", kind, to, got, want)
			}
		}
	}
	must.OK(t, j.Close())
}

// TestSizeCountsBetweenTables: blocks that are not in a table are counted wherever they lie.
func TestSizeCountsBetweenTables(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	for _, group := range [][]uint64{{1, 2}, {6, 7}, {3, 5}} {
		flushed(t, j)
		for _, seq := range group {
			must.OK(t, j.db.Set(newKey(keyCommands, seq), make([]byte, seq), pebble.Sync))
		}
	}
	for to, want := range []extent{0: {0, 0}, 2: {2, 3}, 4: {3, 6}, 5: {4, 11}, 6: {5, 17}, 7: {6, 24},
		8: {6, 24}} {
		if got, err := measureBlocks(j.db, keyCommands, 1, uint64(to)); err != nil || want.blocks > 0 &&
			got != want {
			t.Errorf("up to %d: counted %+v, want %+v, %v", to, got, want, err)
		}
	}
	must.OK(t, j.Close())
}

func TestTransferEndsWithTheJournal(t *testing.T) {
	j, made := openNew(t, "j", strict(t, vfs.NewMem())), flow{seed: 5}
	appendAll(t, j, &made, 10)
	tr, err := j.Transfer()
	must.OK(t, err)
	other, err := j.Transfer()
	must.OK(t, err)
	must.OK(t, other.Close())
	if _, err := other.Read(make([]byte, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed transfer reads on: %v", err)
	}
	must.OK(t, j.Close())
	_, err = io.ReadAll(tr)
	must.Be(t, err, ErrClosed)
	must.OK(t, tr.Close())
}

// TestCloseWaitsForReads closes the journal while a Transfer is reading the store.
func TestCloseWaitsForReads(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	must.OK(t, j.share()) // as a Transfer does while it reads
	closed := make(chan error, 1)
	go func() { closed <- j.Close() }()
	until(t, "Close has come as far as it can", func() bool {
		if len(closed) > 0 {
			return true
		}
		if j.reading.TryRLock() {
			j.reading.RUnlock()
			return false
		}
		return true
	})
	select {
	case err := <-closed:
		t.Fatalf("Close did not wait: %v", err)
	default:
	}
	must.Be(t, j.share(), ErrClosed)
	j.reading.RUnlock()
	must.OK(t, <-closed)
}

// TestTransferShowsOnlyWhatIsDurable opens a transfer while a commit waits for its sync.
func TestTransferShowsOnlyWhatIsDurable(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if strings.HasSuffix(op.Path, ".log") {
				once.Do(func() { close(started) })
				<-goOn
			}
		}
		return nil
	})}
	o := strict(t, errorfs.Wrap(vfs.NewMem(), slow))
	j, made := openNew(t, "j", o), flow{seed: 5}
	appendAll(t, j, &made, 10)
	slow.On()
	c := must.Get(j.Append(made.block(&Block{}, 5)))(t)
	<-started
	stream, inputSeq, _ := streamOf(t, j)
	if inputSeq != 10 {
		t.Errorf("head %d, want 10", inputSeq)
	}
	got := must.Get(Receive("copy", bytes.NewReader(stream), strict(t, vfs.NewMem())))(t)
	if got.InputSeq != 10 {
		t.Errorf("received %d, want 10", got.InputSeq)
	}
	close(goOn)
	must.OK(t, errors.Join(c.Wait(), j.Close()))
}

func TestTransferNamesDamage(t *testing.T) {
	for _, kind := range []byte{keyCommands, keyFills, keyIDs} {
		for _, how := range []string{"flipped", "missing"} {
			t.Run(fmt.Sprintf("%c %s", kind, how), func(t *testing.T) {
				j, made := openNew(t, "j", strict(t, vfs.NewMem())), flow{seed: 5, idsEvery: 2}
				appendAll(t, j, &made, 10, 10, 10)
				var key []byte
				must.OK(t, iterate(j.db, newKey(kind, 2), newKey(kind, 1<<20), func(it *pebble.Iterator) error {
					it.First()
					key = slices.Clone(it.Key())
					return nil
				}))
				v, closer, err := get(j.db, key)
				must.OK(t, err)
				v = slices.Clone(v)
				must.OK(t, closer.Close())
				v[len(v)-1] ^= 1
				if how == "flipped" {
					must.OK(t, j.db.Set(key, v, pebble.Sync))
				} else {
					must.OK(t, j.db.Delete(key, pebble.Sync))
				}
				tr, err := j.Transfer()
				must.OK(t, err)
				_, err = io.ReadAll(tr)
				must.Be(t, err, ErrCorrupt)
				if !strings.Contains(err.Error(), keyName(key)) {
					t.Errorf("the error does not name key=%s: %v", keyName(key), err)
				}
				must.OK(t, errors.Join(tr.Close(), j.Close()))
			})
		}
	}
}
