package riskextract

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// running is an Extractor with a Run that continues until stop, or the end of the test.
func running(t *testing.T, x *Extractor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run ended with %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("Run does not end")
		}
	}
	t.Cleanup(stop)
	return stop
}

// wait is Wait with a time limit.
func wait(t *testing.T, x *Extractor, seq uint64) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return x.Wait(ctx, seq)
}

// seqs are the sequences that were announced, in order.
func (r *rig) seqs() (all []uint64) {
	for _, a := range r.announcements() {
		all = append(all, a.ConsensusSequence)
	}
	return all
}

func at(seq uint64) Marker { return Marker{Seq: seq, SessionDate: 20_000, PriceVersion: 1} }

func TestRunFollowsTheMarkers(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		r := newRig(t)
		r.o.DB, r.o.Poll = db, time.Hour // only callers of Wait make it look
		x := New(r.o)
		r.mark(at(5), goldenEmpty)
		r.mark(at(9), goldenEmpty)
		stop := running(t, x)
		if err := wait(t, x, 9); err != nil || !slices.Equal(r.seqs(), []uint64{5, 9}) {
			t.Fatalf("%v, announced %d", err, r.seqs())
		}
		r.mark(at(12), goldenEmpty)
		// and a marker that was finished long ago, or none
		for _, seq := range []uint64{12, 5, 9, 1, 11} {
			if err := wait(t, x, seq); err != nil {
				t.Fatalf("wait %d: %v", seq, err)
			}
		}
		stop()
		// A new process begins after the last announcement.
		r.mark(at(20), goldenEmpty)
		x = New(r.o)
		stop = running(t, x)
		if err := wait(t, x, 20); err != nil || !slices.Equal(r.seqs(), []uint64{5, 9, 12, 20}) {
			t.Fatalf("%v, announced %d", err, r.seqs())
		}
		stop()
		if cursor := cursorOf(t, db); cursor != 20 {
			t.Errorf("the cursor is at %d", cursor)
		}
	})
}

// goldenEmpty is a state without any history.
var goldenEmpty = new(fakeState)

func cursorOf(t *testing.T, db *store.DB) (seq uint64) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
		seq, err = tx.Cursor("riskextract")
		return err
	})
	must.OK(t, err)
	return seq
}

// TestRunGoesOnBehindARefusal has one marker refused: the next marker does not wait, the cursor
// does, and the refused one is made when its inputs are there. A restart meanwhile announces
// nothing again.
func TestRunGoesOnBehindARefusal(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	r := newRig(t)
	marks := &SQLMarks{DB: db}
	r.o.DB, r.o.Marks, r.o.Poll = db, marks, time.Hour
	naked := &fakeState{securities: []matcher.SecurityInfo{{ID: 1, Ticker: "NAKED"}},
		positions: []matcher.PositionInfo{{AccountID: 1, SecurityID: 1, Qty: 2}}}
	r.mark(at(5), naked)
	r.mark(at(9), goldenEmpty)
	var passed atomic.Int64 // retryPauses
	r.o.Now = func() time.Time {
		return time.Unix(0, 0).Add(retryPause * time.Duration(passed.Load()))
	}
	x := New(r.o)
	stop := running(t, x)
	for _, after := range []int64{0, 0, 1} {
		passed.Add(after)
		if err := wait(t, x, 5); !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), "security=NAKED ") {
			t.Fatalf("got %v", err)
		}
		x.progress.mu.Lock()
		if tries := x.progress.find(5).refusals; tries != 1+int(passed.Load()) {
			t.Errorf("%d tries after %d pauses", tries, passed.Load())
		}
		x.progress.mu.Unlock()
	}
	if err := wait(t, x, 9); err != nil || !slices.Equal(r.seqs(), []uint64{9}) {
		t.Fatalf("%v, announced %d", err, r.seqs())
	}
	if cursor := cursorOf(t, db); cursor != 0 && cursor != 4 {
		t.Errorf("the cursor is at %d", cursor)
	}
	if !containsOnce(r.log.String(), "riskextract: refused") {
		t.Errorf("the log is %s", r.log)
	}
	if engines, closed := r.cuts(); engines != 2 || closed != 1 {
		t.Errorf("%d states, %d engines closed, for two cuts", engines, closed)
	}
	stop()
	x = New(r.o)
	stop = running(t, x)
	if err := wait(t, x, 5); !errors.Is(err, ErrRefused) {
		t.Fatalf("after a restart: %v", err)
	}
	must.OK(t, marks.PutMarks(t.Context(), 20_000, 1,
		[]store.Mark{{Security: "NAKED", Price: 3_000_000}}))
	passed.Add(1)
	if err := wait(t, x, 5); err != nil || !slices.Equal(r.seqs(), []uint64{9, 5}) {
		t.Fatalf("%v, announced %d", err, r.seqs())
	}
	stop()
	if cursor := cursorOf(t, db); cursor != 9 {
		t.Errorf("the cursor is at %d", cursor)
	}
	row := files(t, r.o.Sink)[filepath.Join(store.Date(20_000).String(), "v1", "seq-5.csv")]
	if !strings.Contains(row,
		"\n1,NAKED,EQUITY,2,1,0.000000,3.000000,EOD_SNAPSHOT,OFFICIAL,6.000000,6.000000,USD,") {
		t.Errorf("the file is\n%s", row)
	}
}

// TestRunSurvivesItsSurroundings stops engine and broker, and then locks the database.
func TestRunSurvivesItsSurroundings(t *testing.T) {
	eachImpatient(t, func(t *testing.T, db *store.DB) {
		r := newRig(t)
		r.o.DB, r.o.Poll = db, time.Millisecond
		r.mark(at(5), goldenEmpty)
		r.fail(errors.New("down"))
		x := New(r.o)
		stop := running(t, x)
		for !strings.Contains(r.log.String(), "riskextract: held up") {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if err := x.Wait(ctx, 5); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			cancel()
		}
		r.fail(nil)
		must.OK(t, wait(t, x, 5))
		if !containsOnce(r.log.String(), "riskextract: held up") {
			t.Errorf("the log is %s", r.log)
		}
		stop()
		x = New(r.o)
		r.mark(at(8), goldenEmpty)
		unlock := storetest.Lock(t, db)
		stop = running(t, x)
		if err := wait(t, x, 8); err != nil { // reading goes on; the cursor cannot be saved
			t.Fatal(err)
		}
		unlock()
		r.mark(at(9), goldenEmpty)
		must.OK(t, wait(t, x, 9))
		stop()
		if cursor := cursorOf(t, db); cursor != 9 {
			t.Errorf("the cursor is at %d", cursor)
		}
	})
}

// eachImpatient is storetest.Each with databases that soon give up waiting for a lock.
func eachImpatient(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			o := storetest.Options(t, d)
			o.BusyTimeout = 50 * time.Millisecond
			test(t, storetest.OpenWith(t, o))
		})
	}
}

// TestLeaderTakesOver makes a follower the leader: it announces what the old leader did not
// announce, and nothing else.
func TestLeaderTakesOver(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	old, next := newRig(t), newRig(t)
	old.o.DB, next.o.DB = db, db
	old.o.Poll, next.o.Poll = time.Millisecond, time.Millisecond
	old.o.Role = func() string { return RoleLeader }
	var leads atomic.Bool
	next.o.Role = func() string {
		if leads.Load() {
			return RoleLeader
		}
		return RoleFollower
	}
	for _, r := range []*rig{old, next} {
		r.mark(at(5), goldenEmpty)
	}
	x, y := New(old.o), New(next.o)
	stop := running(t, x)
	running(t, y)
	must.OK(t, wait(t, x, 5))
	if err := wait(t, y, 5); err != nil { // the shared cursor says so
		t.Fatal(err)
	}
	stop()
	next.mark(at(7), goldenEmpty)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := y.Wait(ctx, 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a follower says that it is announced: %v", err)
	}
	leads.Store(true)
	if err := wait(t, y, 7); err != nil || !slices.Equal(next.seqs(), []uint64{7}) ||
		!slices.Equal(old.seqs(), []uint64{5}) {
		t.Errorf("%v, announced %d, then %d", err, old.seqs(), next.seqs())
	}
}

// TestRunWithoutADatabase keeps its cursor in the sink.
func TestRunWithoutADatabase(t *testing.T) {
	r := newRig(t)
	r.o.Poll = time.Hour
	for _, seq := range []uint64{3, 4} {
		r.mark(at(seq), goldenEmpty)
		x := New(r.o)
		stop := running(t, x)
		must.OK(t, wait(t, x, seq))
		stop()
	}
	if !slices.Equal(r.seqs(), []uint64{3, 4}) {
		t.Errorf("announced %d", r.seqs())
	}
	path := filepath.Join(r.o.Sink, "riskextract.cursor")
	if text, err := os.ReadFile(path); err != nil || string(text) != "4" {
		t.Errorf("the cursor is %q, %v", text, err)
	}
	write(t, path, "four")
	if err := New(r.o).round(t.Context()); err == nil || !strings.Contains(err.Error(), `"four"`) {
		t.Errorf("a cursor that is none: %v", err)
	}
}

// TestBrokersReturnEndsThePause: the announcement follows as soon as the broker is back, however
// long it was away.
func TestBrokersReturnEndsThePause(t *testing.T) {
	r := newRig(t)
	r.mark(at(3), goldenEmpty)
	synctest.Test(t, func(t *testing.T) {
		returned, announce := make(chan struct{}), r.o.Announce
		var away atomic.Bool
		away.Store(true)
		r.o.Returned = func() <-chan struct{} {
			if !away.Load() {
				return nil // it closes once
			}
			return returned
		}
		r.o.Announce = func(ctx context.Context, a Announcement) error {
			if away.Load() {
				return errors.New("no broker")
			}
			return announce(ctx, a)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- New(r.o).Run(ctx) }()
		<-time.After(time.Minute) // the pauses are as long as they get
		synctest.Wait()
		away.Store(false)
		close(returned)
		synctest.Wait() // no time passes
		if !slices.Equal(r.seqs(), []uint64{3}) {
			t.Errorf("announced %d", r.seqs())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestCursorPassesLongStretches saves the cursor without a marker too, but rarely.
func TestCursorPassesLongStretches(t *testing.T) {
	r := newRig(t)
	x := New(r.o)
	for _, tt := range []struct{ durable, want uint64 }{{saveEvery - 1, 0}, {saveEvery, saveEvery},
		{saveEvery + 5, saveEvery}} {
		r.durable = tt.durable
		must.OK(t, x.round(t.Context()))
		if saved, err := x.cursor.load(t.Context()); err != nil || saved != tt.want {
			t.Errorf("at %d the cursor is %d, %v; want %d", tt.durable, saved, err, tt.want)
		}
	}
	r.o.Role = func() string { return RoleFollower }
	r.durable = 9 * saveEvery
	x = New(r.o)
	if err := x.round(t.Context()); err != nil || x.saved != saveEvery {
		t.Fatalf("saved %d, %v", x.saved, err)
	}
	if saved, err := x.cursor.load(t.Context()); err != nil || saved != saveEvery {
		t.Errorf("a follower moved the cursor to %d, %v", saved, err)
	}
	// One with a cursor of its own goes on from there after a restart.
	r.o.Own = t.TempDir()
	x = New(r.o)
	must.OK(t, x.round(t.Context()))
	if again := New(r.o); again.round(t.Context()) != nil || again.saved != r.durable {
		t.Errorf("a follower's own cursor is %d after a restart, want %d", again.saved, r.durable)
	}
	if saved, err := New(r.leader()).cursor.load(t.Context()); err != nil || saved != saveEvery {
		t.Errorf("a follower moved the leader's cursor to %d, %v", saved, err)
	}
}

// TestLeaderMovesItsOwnCursor: a member makes no cut again that it has made while it led. Cuts that
// it lacks are made when it follows again.
func TestLeaderMovesItsOwnCursor(t *testing.T) {
	for _, tt := range []struct {
		name       string
		own, moved uint64
	}{
		{"it has made all cuts", 5, 12}, {"it is behind, without a marker between", 7, 12},
		{"it lacks a cut", 3, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			for _, seq := range []uint64{4, 12} {
				r.mark(at(seq), goldenEmpty)
			}
			own := fileCursor{t.TempDir()}
			must.OK(t, own.save(t.Context(), tt.own))
			r.o.Followed = own.dir
			x := New(r.o)
			must.OK(t, x.cursor.save(t.Context(), 8)) // of the leader before
			must.OK(t, x.round(t.Context()))
			if at := must.Get(own.load(t.Context()))(t); at != tt.moved || x.saved != 12 {
				t.Errorf("its own cursor is at %d, that of the leader at %d, want %d and 12", at, x.saved,
					tt.moved)
			}
		})
	}
	r := newRig(t)
	own := fileCursor{t.TempDir()}
	r.o.Followed = own.dir
	must.OK(t, New(r.o).cursor.save(t.Context(), 2*saveEvery))
	r.durable = 3 * saveEvery
	must.OK(t, New(r.o).round(t.Context()))
	if at := must.Get(own.load(t.Context()))(t); at != 0 {
		t.Errorf("far behind, its own cursor is at %d, want 0", at)
	}

	// The journal of the new leader does not reach as far as the cursor of the one before: it cannot
	// know whether it lacks a cut.
	r = newRig(t)
	r.mark(at(12), goldenEmpty)
	must.OK(t, own.save(t.Context(), 3))
	r.o.Followed = own.dir
	reach := r.o.Markers
	r.o.Markers = func(ctx context.Context, from uint64) (list []Marker, next uint64, err error) {
		if from <= 8 {
			return nil, 6, nil
		}
		return reach(ctx, from)
	}
	x := New(r.o)
	must.OK(t, x.cursor.save(t.Context(), 8))
	must.OK(t, x.round(t.Context()))
	if at := must.Get(own.load(t.Context()))(t); at != 3 || x.saved != 12 {
		t.Errorf("its own cursor is at %d, that of the leader at %d, want 3 and 12", at, x.saved)
	}
}

// leader are the options of the member that leads.
func (r *rig) leader() Options {
	o := r.o
	o.Own = ""
	return o
}

// TestRunGoesOnBehindAlteredMarks: published marks that were changed in the database refuse their
// own extract, not those behind it.
func TestRunGoesOnBehindAlteredMarks(t *testing.T) {
	r := newRig(t)
	r.o.Marks, r.o.Poll = alteredOnce{}, time.Hour
	first := at(5)
	first.PriceVersion = 2
	r.mark(first, goldenEmpty)
	r.mark(at(9), goldenEmpty)
	x := New(r.o)
	running(t, x)
	if err := wait(t, x, 5); !errors.Is(err, store.ErrMarksChanged) {
		t.Errorf("got %v", err)
	}
	if err := wait(t, x, 9); err != nil || !slices.Equal(r.seqs(), []uint64{9}) {
		t.Errorf("%v, announced %d", err, r.seqs())
	}
}

// alteredOnce has no marks, and altered ones in version 2.
type alteredOnce struct{}

func (alteredOnce) Marks(_ context.Context, _ store.Date, version uint32) ([]store.Mark, bool,
	error) {
	if version == 2 {
		return nil, false, store.ErrMarksChanged
	}
	return nil, false, nil
}
