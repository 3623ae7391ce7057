package outbox

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// elsewhere runs a test on both databases with a server that has a stream to be damaged.
func elsewhere(t *testing.T, test func(t *testing.T, r *rig, srv *brokertest.Server)) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		srv := brokertest.External(t)
		test(t, newRig(t, db, openBroker(t, broker.Options{URL: srv.URL()})), srv)
	})
}

// put publishes a message of another writer.
func (r *rig) put(msgID, data string) {
	r.t.Helper()
	must.Get(r.stream.broker.Publish(r.t.Context(), account.Subject(), []byte(data),
		broker.PublishOptions{MsgID: msgID}))(r.t)
}

func TestVersionsGoOutInOrder(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		r.step()
		r.has(nil)
		r.upsert(1)
		r.step()
		n := size(701, 301)
		r.upsert(n - 1) // more than a batch
		r.step()
		r.has(span(1, uint64(n)))
		if r.b.Published() != uint64(n) || r.b.Alarms() != 0 {
			t.Errorf("published %d, %d alarms", r.b.Published(), r.b.Alarms())
		}
		r.fresh()
		r.step()
		r.upsert(2)
		r.step()
		r.has(span(1, uint64(n)+2))
	})
}

func TestLostStreamIsPublishedAgain(t *testing.T) {
	n := size(300, 60)
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.upsert(n)
		r.step()
		srv.DeleteStream(account.Stream())
		r.fresh() // it was lost while this program was down
		r.step()
		r.has(span(1, uint64(n)))
		srv.DeleteStream(account.Stream()) // and while it runs
		r.upsert(1)
		if _, err := r.b.Step(t.Context()); !errors.Is(err, broker.ErrUnavailable) {
			t.Errorf("published on a stream that is not there: %v", err)
		}
		r.step()
		r.has(span(1, uint64(n)+1))
		srv.DeleteStream(account.Stream()) // another client made it anew
		must.OK(t, r.stream.Ensure(t.Context()))
		r.upsert(1)
		if _, err := r.b.Step(t.Context()); !errors.Is(err, ErrConflict) {
			t.Errorf("published on another stream: %v", err)
		}
		r.step()
		r.has(span(1, uint64(n)+2))
		if r.b.Alarms() != 0 {
			t.Error(r.b.Alarm())
		}
	})
}

// An emptied stream continues with its sequences, and keeps the ids of dropped messages as long as
// its window lasts. Until then it treats those versions as duplicates.
func TestPurgedStreamIsPublishedAgainAfterTheWindow(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.upsert(20)
		for window := 700 * time.Millisecond; !r.purgedWithin(srv, window); window *= 2 {
			srv.DeleteStream(account.Stream()) // the machine was too slow for it
			r.fresh()
		}
		if r.b.Unpublished() == 0 {
			t.Error("no row waits")
		}
		stop := r.run()
		until(t, "published again", func() bool {
			return r.b.Published() == 20 && r.b.Unpublished() == 0
		})
		stop()
		r.has(span(1, 20))
		if m := r.messages(); m[0].Sequence != 21 {
			t.Errorf("the first is at %d", m[0].Sequence)
		}
	})
}

// purgedWithin publishes all, empties the stream and publishes once more. It reports whether that
// was done within the window, in which case no row may count as published.
func (r *rig) purgedWithin(srv *brokertest.Server, window time.Duration) bool {
	r.t.Helper()
	r.stream.config.Duplicates = window
	began := time.Now()
	r.step()
	for sequence := uint64(1); sequence <= 20; sequence++ {
		srv.DeleteMessage(account.Stream(), sequence)
	}
	r.fresh()
	n, err := r.b.Step(r.t.Context())
	if time.Since(began) >= window {
		return false
	}
	if n != 0 || err == nil || errors.Is(err, ErrForeign) {
		r.t.Errorf("a duplicate of nothing was taken for published: %d, %v", n, err)
	}
	return true
}

// Only the last message is gone: the one before it is the end, and the stream is not empty.
func TestDeletedLastMessageIsPublishedAgain(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.upsert(10)
		r.step()
		srv.Restart() // its ids are lost with the message
		until(t, "connected", func() bool { return r.stream.Ensure(t.Context()) == nil })
		srv.DeleteMessage(account.Stream(), 10)
		srv.Restart()
		until(t, "connected", func() bool { return r.stream.Ensure(t.Context()) == nil })
		r.fresh()
		r.step()
		r.has(span(1, 10))
		if m := r.messages(); m[9].Sequence != 11 {
			t.Errorf("version 10 is at sequence %d", m[9].Sequence)
		}
	})
}

// A server over the files of an older backup: the stream ends earlier.
func TestTruncatedStreamGetsItsEndBack(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		dir := t.TempDir()
		b := running(t, broker.Options{Dir: dir})
		r := newRig(t, db, b)
		r.upsert(40)
		r.step()
		old := copyOf(t, dir)
		r.upsert(25)
		r.step()
		must.OK(t, b.Close())
		r.stream.broker = openBroker(t, broker.Options{Dir: old})
		if got := r.versions(); len(got) != 40 {
			t.Fatalf("the backup has %v", got)
		}
		r.fresh()
		r.step()
		r.has(span(1, 65))
	})
}

// A row was acknowledged, and the process died before the mark: nothing is published twice.
func TestAcknowledgedRowsAreMarkedNotRepeated(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		r.upsert(5)
		r.step()
		died := errors.New("died")
		r.b = New(Options{Source: account, DB: db, Stream: r.stream, Marked: func(uint64) error {
			return died
		}})
		r.upsert(300)
		if _, err := r.b.Step(t.Context()); !errors.Is(err, died) {
			t.Fatal(err)
		}
		if got := r.versions(); !slices.Equal(got, span(1, 261)) {
			t.Fatalf("the stream has %v", got)
		}
		r.fresh()
		r.step()
		r.has(span(1, 305))
	})
}

func TestMessagesOfOthersAreAnAlarmAndNoMore(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.upsert(3)
		r.step()
		r.put("", "no id")
		r.put("security:4", "another source's")
		r.put("account:04", "almost ours")
		r.upsert(2)
		if _, err := r.b.Step(t.Context()); !errors.Is(err, ErrConflict) {
			t.Errorf("published behind what it does not know: %v", err)
		}
		r.step()
		r.has([]uint64{1, 2, 3, 0, 0, 0, 4, 5})
		if r.b.Alarms() != 1 || r.b.Alarm() != "" || r.b.Foreign() != 3 {
			t.Errorf("%d alarms, %q, %d messages", r.b.Alarms(), r.b.Alarm(), r.b.Foreign())
		}
		r.put("zzz", "again") // and while no message of ours follows
		for range 3 {
			r.fresh()
			r.step()
			if r.b.Alarms() != 1 || r.b.Alarm() == "" {
				t.Errorf("%d alarms, %q", r.b.Alarms(), r.b.Alarm())
			}
			r.step()
		}
		r.upsert(1)
		r.step()
		r.fresh()
		r.step()
		if r.b.Alarm() != "" {
			t.Errorf("ours is the last again, and the alarm stands: %s", r.b.Alarm())
		}
		r.has([]uint64{1, 2, 3, 0, 0, 0, 4, 5, 0, 6})
	})
}

// The server is restarted after its window: it has no ids. Its last message is still the expected
// one.
func TestServerThatHasForgottenItsIDs(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.stream.config.Duplicates = 100 * time.Millisecond
		died := errors.New("died")
		for round := range uint64(3) {
			r.upsert(10)
			r.b = New(Options{Source: account, DB: r.db, Stream: r.stream, Marked: func(uint64) error {
				return died
			}})
			if _, err := r.b.Step(t.Context()); !errors.Is(err, died) { // acknowledged, not marked
				t.Fatal(err)
			}
			srv.Stop()
			<-time.After(150 * time.Millisecond) // the window passes while it is down
			srv.Restart()
			until(t, "connected", func() bool { return r.stream.Ensure(t.Context()) == nil })
			r.fresh()
			r.step()
			r.has(span(1, 10*(round+1)))
		}
	})
}

// A message lost in the middle of the unmarked ones cannot be put back. An alarm reports that, and
// publishing continues.
func TestHoleAmongAcknowledgedRows(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.upsert(2)
		r.step()
		died := errors.New("died")
		r.b = New(Options{Source: account, DB: r.db, Stream: r.stream, Marked: func(uint64) error {
			return died
		}})
		r.upsert(8)
		if _, err := r.b.Step(t.Context()); !errors.Is(err, died) {
			t.Fatal(err)
		}
		srv.DeleteMessage(account.Stream(), 5)
		srv.DeleteMessage(account.Stream(), 6)
		r.fresh()
		r.upsert(1)
		r.step()
		r.has([]uint64{1, 2, 3, 4, 7, 8, 9, 10, 11})
		if r.b.Alarms() != 1 || r.b.Alarm() == "" {
			t.Errorf("%d alarms, %q", r.b.Alarms(), r.b.Alarm())
		}
		replica, u := r.replica(false)
		r.converges(replica, u)
	})
}

// lowest is a stream that notes the lowest sequence it was asked for.
type lowest struct {
	*natsStream
	sequence uint64
}

func (l *lowest) At(ctx context.Context, sequence uint64) (Message, bool, error) {
	l.sequence = min(l.sequence, sequence)
	return l.natsStream.At(ctx, sequence)
}

// A comparison does not ask for the sequences that a stream has no more: each costs a round trip.
func TestCompareStopsWhereTheStreamBegins(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		compared := func(first uint64) {
			stream := &lowest{r.stream, first}
			r.b = New(Options{Source: account, DB: r.db, Stream: stream})
			must.OK(t, r.b.Compare(t.Context()))
			if stream.sequence < first {
				t.Errorf("asked for sequence %d of a stream that begins at %d", stream.sequence, first)
			}
		}
		r.upsert(4)
		r.step()
		died := errors.New("died")
		r.b = New(Options{Source: account, DB: r.db, Stream: r.stream, Marked: func(uint64) error {
			return died
		}})
		r.upsert(4)
		if _, err := r.b.Step(t.Context()); !errors.Is(err, died) {
			t.Fatal(err)
		}
		remove := func(from, to uint64) {
			for sequence := from; sequence <= to; sequence++ {
				srv.DeleteMessage(account.Stream(), sequence)
			}
		}
		remove(1, 4)
		compared(5) // it marks what is on the stream
		r.put("another's", "message")
		remove(5, 8)
		compared(9) // no message is the source's
	})
}

// Two publishers of one source, as in a hand-over: the stream itself enforces the order.
func TestTwoPublishersDoNotDouble(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		stop := r.run()
		first := r.b
		r.fresh()
		stopOther := r.run()
		r.upsert(100)
		stop()
		stopOther()
		r.drain()
		r.has(span(1, uint64(r.n)))
		if first.Alarms()+r.b.Alarms() != 0 {
			t.Error(first.Alarm(), r.b.Alarm())
		}
	})
}

// meddled is a stream that another writer changes while its end is being read.
type meddled struct {
	*natsStream
	before, after func()
}

func (m *meddled) Last(ctx context.Context) (Message, Extent, bool, error) {
	m.before()
	last, extent, found, err := m.natsStream.Last(ctx)
	m.after()
	return last, extent, found, err
}

// In a hand-over the old publisher publishes and marks while the new one compares: Compare takes
// the stream neither for a lost nor for a foreign one.
func TestCompareWhileAnotherPublishes(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		r.step()
		other := r.b
		publish := func() {
			r.upsert(5)
			if _, err := other.Step(t.Context()); err != nil {
				t.Error(err)
			}
		}
		var log waittest.Log
		for range 3 {
			m := &meddled{r.stream, publish, publish}
			r.b = New(Options{Source: account, DB: db, Stream: m,
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			r.upsert(1)
			_, _ = r.b.Step(t.Context()) // it may meet the other publisher's messages
			m.before, m.after = func() {}, func() {}
			r.drain()
			if r.b.Alarms() != 0 || log.Count("lost") != 0 {
				t.Errorf("taken for more: %q, %s", r.b.Alarm(), log.String())
			}
			other = New(Options{Source: account, DB: db, Stream: r.stream})
			if _, err := other.Step(t.Context()); err != nil {
				t.Error(err)
			}
		}
		r.has(span(1, uint64(r.n)))
	})
}
