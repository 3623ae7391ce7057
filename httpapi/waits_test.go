package httpapi

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/blotter/feed"
	"posttrade/ring/waittest"
)

// taken takes all places of one kind until the end of the test.
func taken(t *testing.T, places chan struct{}) {
	for range cap(places) {
		places <- struct{}{}
	}
	t.Cleanup(func() {
		for range cap(places) {
			<-places
		}
	})
}

// TestReadsThatWaitLeaveRoom: when as many reads wait as may, one more that would have to wait is
// refused at once, and those that do not have to are answered.
func TestReadsThatWaitLeaveRoom(t *testing.T) {
	r := newRig(t, enforced)
	r.serve(func(d *Deps) {
		d.Feed = feed.New(feed.Options{})
		d.Evidence = &fakeEvidence{note: []byte("origin\n1\n" +
			strings.Repeat("A", 43) + "=\nhead 1 " + strings.Repeat("0", 64) + "\n\n")}
	})
	admin := r.named("admin")
	r.price("AAA", "100")
	r.price("AAA", "101")
	durable := r.recorder.Durable()
	if open, known := cap(r.m.waits.open), cap(r.m.waits.known); open != 128 || known != 512 {
		t.Errorf("%d and %d reads may wait", open, known)
	}
	taken(t, r.m.waits.open)
	p := newProcessorRig(t)
	taken(t, p.p.waits.known)
	a, s := newAccountRig(t, auth{}), newReferenceRig(t, auth{snapshot: true})
	taken(t, a.waits.open)
	taken(t, s.waits.open)
	busy, far := string(CodeBusy), strconv.Itoa(1<<62)
	for _, tt := range []struct {
		address, path, token, header, min string
		status                            int
		code                              string
	}{
		{r.address, "/book/AAA", "", headerMinSequence, far, 503, busy},
		{r.address, "/book/AAA", "", headerMinSequence, itoa(durable), 200, ""},
		{r.address, "/log/checkpoint", "", headerMinSequence, "2", 503, busy},
		{r.address, "/log/checkpoint", "", headerMinSequence, "1", 200, ""},
		{r.address, "/feed?topics=trades", "", "Last-Event-ID", far + ".1", 503, busy},
		{r.address, "/feed?topics=trades", "", "Last-Event-ID", "1.1", 503, busy}, // it has not begun
		{r.address, "/positions", admin, headerMinSequence, far, 503, string(CodeNotYet)},
		{p.address, "/trades", namedToken(p.now.Load(), "admin"), headerMinSequence, "11", 503, busy},
		{p.address, "/trades", namedToken(p.now.Load(), "admin"), headerMinSequence, "10", 200, ""},
		{a.address, a.list, admin, headerMinVersion, itoa(a.version() + 1), 503, busy},
		{a.address, a.list, admin, headerMinVersion, itoa(a.version()), 200, ""},
		{s.address, s.list, "", headerMinVersion, itoa(s.version() + 1), 503, busy},
		{s.address, "/stocks/control-snapshot", admin, headerMinVersion, itoa(s.version() + 1), 503,
			string(CodeNotYet)},
	} {
		status, header, body := askedAt(t, tt.address, tt.token, tt.path, tt.header, tt.min)
		if status != tt.status || !strings.Contains(body, tt.code) ||
			status == 503 && header.Get("Retry-After") != "1" {
			t.Errorf("%s from %s: %d %s, want %d %s", tt.path, tt.min, status, body, tt.status, tt.code)
		}
	}
	if n := len(r.m.waits.known) + len(s.waits.known); n != 0 {
		t.Errorf("%d reads have kept their places", n)
	}
}

// TestReadsThatWaitShareTheirLooks: each read makes one query of its own. While they wait they make
// one at a time together, and none sooner than rowsLook after the one before.
func TestReadsThatWaitShareTheirLooks(t *testing.T) {
	for _, r := range []*sourceRig{newAccountRig(t, auth{}), newReferenceRig(t, auth{})} {
		const readers = 8
		r.fail(errHeld) // a version that is not there yet
		before, began := r.tally.versions.Load(), time.Now()
		var waiting sync.WaitGroup
		for range readers {
			waiting.Go(func() {
				if status, _, _ := askedAt(t, r.address, "", r.list, headerMinVersion, "1"); status != 200 {
					t.Errorf("%s: %d", r.list, status)
				}
			})
		}
		looks := func() int64 { return r.tally.versions.Load() - before }
		waittest.Until(t, "all wait and look again", func() (bool, any) {
			return len(r.waits.open) == readers && looks() > 2*readers, looks()
		})
		n, most := looks(), int64(time.Since(began)/rowsLook)+readers
		r.fail(nil)
		waiting.Wait()
		if n > most {
			t.Errorf("%s: %d looks, at most %d were due", r.list, n, most)
		}
	}
}

// TestALookThatIsGivenUp: the reads that share it look for themselves, also after a panic.
func TestALookThatIsGivenUp(t *testing.T) {
	r := newRig(t)
	var l looks[int]
	late := time.Now().Add(time.Hour)
	func() {
		defer func() { _ = recover() }()
		_, _ = l.next(&r.m.service, late, func() int {
			shared, mine := l.join()
			if mine {
				t.Error("two looks at a time")
			}
			go func() { <-shared.done }()
			panic("planted")
		})
	}()
	if saw, p := l.next(&r.m.service, late, func() int { return 7 }); saw != 7 || p.status != 0 {
		t.Errorf("saw %d, %v", saw, p)
	}
	if _, p := l.next(&r.m.service, time.Now(), func() int { return 7 }); p != problemNotYet {
		t.Errorf("too late: %v", p)
	}
}
