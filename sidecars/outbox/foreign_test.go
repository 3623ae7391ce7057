package outbox

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// byAnother is a message of another writer: its content, and its id.
type byAnother struct {
	name string
	id   func(version uint64) string
	data func(r *rig, epoch, version uint64) []byte
}

// deltaOf returns a delta as the source could write it.
func deltaOf(epoch, version uint64, name string) []byte {
	d := control.Delta{Source: account, Epoch: epoch, Version: version,
		Record: control.Record{ID: 5, Name: name, Enabled: true, Version: version}}
	return d.AppendJSON(nil)
}

// otherHands returns messages of every kind that the source has not written, given the source's
// last version.
func otherHands() (all []byAnother) {
	none := func(uint64) string { return "" }
	of := func(by int64) func(uint64) string {
		return func(version uint64) string { return account.MsgID(uint64(int64(version) + by)) }
	}
	delta := func(epochs, by int64) func(*rig, uint64, uint64) []byte {
		return func(_ *rig, epoch, version uint64) []byte {
			return deltaOf(uint64(int64(epoch)+epochs), uint64(int64(version)+by), "x")
		}
	}
	raw := func(text string) func(*rig, uint64, uint64) []byte {
		return func(*rig, uint64, uint64) []byte { return []byte(text) }
	}
	first := func(r *rig, _, _ uint64) []byte { return r.rows()[0].Payload }
	last := func(r *rig, _, _ uint64) []byte { rows := r.rows(); return rows[len(rows)-1].Payload }
	return []byAnother{
		{"ahead", none, delta(0, 2)}, {"ahead, with its id", of(2), delta(0, 2)},
		{"far ahead, with its id", of(1 << 40), delta(0, 1<<40)},
		{"the next one", none, delta(0, 1)}, {"the next one, with its id", of(1), delta(0, 1)},
		{"the next one's id, of another epoch", of(1), delta(1, 1)},
		{"the next one's id and no JSON", of(1), raw("\x00\xff")},
		{"the next one's id and nothing", of(1), raw("")},
		{"behind, with other content", none, delta(0, -1)},
		{"the last one, with other content", none, delta(0, 0)},
		{"the last one's bytes without its id", none, last},
		{"the first one's bytes without its id", none, first},
		{"another epoch", none, delta(1, 1)}, {"an older epoch", none, delta(-1, 1)},
		{"no JSON", none, raw("{")}, {"nothing", none, raw("")},
		{"another id beside the next one's", func(v uint64) string {
			return account.MsgID(v+1) + ":0123456789abcdef"
		}, delta(0, 1)},
	}
}

// hand puts the message on the stream under its id.
func (r *rig) hand(by *byAnother, epoch uint64) {
	r.t.Helper()
	id := by.id(uint64(r.n))
	r.put(id, string(by.data(r, epoch, uint64(r.n))))
}

func (r *rig) epoch() uint64 {
	r.t.Helper()
	s := must.Get(r.s.Snapshot(r.t.Context()))(r.t)
	return s.Epoch
}

// ours returns the versions of the source's own messages on the stream, in stream order.
func (r *rig) ours() (all []uint64) {
	r.t.Helper()
	for _, m := range r.messages() {
		v, version, err := r.b.judge(r.t.Context(), &m)
		must.OK(r.t, err)
		if v == own {
			all = append(all, version)
		}
	}
	return all
}

// Whatever another writer publishes, no replica judges it. The replica stays ready, nothing waits
// for a change of the source, and later changes arrive in order.
func TestMessagesOfOtherHandsNeverReachTheReplica(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, _ *brokertest.Server) {
		r.s = accounts.New(source.Options{DB: r.db, Changed: func() { r.b.Wake() }})
		r.upsert(10)
		r.step()
		var log waittest.Log
		now := time.Unix(1e9, 0)
		r.b = New(Options{Source: account, DB: r.db, Stream: r.stream, Poll: 5 * time.Millisecond,
			Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.run()
		replica, u := r.replica(false)
		r.converges(replica, u)
		epoch, met := r.epoch(), uint64(0)
		for _, by := range otherHands() {
			for range 3 { // several in a row, and no second one under an id that is used
				r.hand(&by, epoch)
			}
			if met += 3; by.id(uint64(r.n)) != "" {
				met -= 2
			}
			until(t, by.name+" is counted", func() bool { return r.b.Foreign() == met })
			r.upsert(3) // directly behind it, the first under the id that was used
			r.converges(replica, u)
		}
		if s := replica.Status(); len(s.Quarantines) != 0 || s.Applied != uint64(3*len(otherHands())) {
			t.Errorf("the replica has judged them: %+v", s)
		}
		until(t, "all is published", func() bool { return r.b.Unpublished() == 0 })
		if got := r.ours(); !slices.Equal(got, span(1, uint64(r.n))) {
			t.Errorf("the source's own messages are %v", got)
		}
		if n := log.Count(foreignAlarm); n != 1 || r.b.Alarms() != 1 { // no time has passed
			t.Errorf("%d alarms, logged %d times", r.b.Alarms(), n)
		}
	})
}

// The same while every process is down: the start skips those messages, and needs no change.
func TestMessagesOfOtherHandsWhileEverythingIsDown(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, _ *brokertest.Server) {
		r.upsert(10)
		r.step()
		epoch := r.epoch()
		for _, by := range otherHands() {
			r.hand(&by, epoch)
			r.hand(&byAnother{"", func(uint64) string { return "" }, by.data}, epoch)
			r.fresh()
			replica, u := r.replica(true)
			stop := r.run()
			r.converges(replica, u)
			until(t, by.name+" is counted", func() bool { return r.b.Foreign() == 2 })
			until(t, "the alarm stands", func() bool { return r.b.Alarm() != "" })
			if r.b.Alarms() != 1 {
				t.Errorf("%s: %d alarms, %q", by.name, r.b.Alarms(), r.b.Alarm())
			}
			r.upsert(2)
			r.converges(replica, u)
			if s := replica.Status(); len(s.Quarantines) != 0 {
				t.Errorf("%s: %+v", by.name, s)
			}
			until(t, "the alarm ends", func() bool { return r.b.Unpublished() == 0 && r.b.Alarm() == "" })
			stop()
		}
		if got := r.ours(); !slices.Equal(got, span(1, uint64(r.n))) {
			t.Errorf("the source's own messages are %v", got)
		}
	})
}

// copy publishes a message of the source again, once the stream has dropped its id.
func (r *rig) copy(m *Message) {
	r.t.Helper()
	until(r.t, "the stream takes the copy", func() bool {
		ack, err := r.stream.broker.Publish(r.t.Context(), account.Subject(), m.Data,
			broker.PublishOptions{MsgID: m.MsgID, Signature: m.Signature})
		return err == nil && !ack.Duplicate
	})
}

// goesOn has a publisher that was started again publish the source's eleventh change, and checks
// that nothing but the source's changes has come to the replica.
func (r *rig) goesOn(replica *bootstrap.Bootstrap, u *universe) {
	r.t.Helper()
	r.fresh()
	r.step()
	r.upsert(1)
	r.step()
	r.converges(replica, u)
	if s := replica.Status(); len(s.Quarantines) != 0 || s.Applied != 1 {
		r.t.Errorf("%+v", s)
	}
	if got := r.ours(); !slices.Equal(got, span(1, 11)) {
		r.t.Errorf("the source's own messages are %v", got)
	}
}

// Another writer publishes copies of the source's messages again when the stream has dropped the
// ids: the content is the source's, the message is not.
func TestCopiesOfOwnMessages(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.stream.config.Duplicates = 100 * time.Millisecond
		r.upsert(10)
		r.step()
		replica, u := r.replica(false)
		r.converges(replica, u)
		var sent uint64
		for _, m := range r.messages() {
			r.copy(&m)
			sent++
		}
		until(t, "they are counted", func() bool { return r.b.Foreign() == sent })
		r.goesOn(replica, u)
	})
}

// A copy of an old message is the last one on the stream when a replica subscribes: it is not taken
// for the source's last message.
func TestCopyAtTheEndWhenAReplicaSubscribes(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, _ *brokertest.Server) {
		r.stream.config.Duplicates = 100 * time.Millisecond
		r.upsert(10)
		r.step()
		sent := r.messages()
		for _, m := range []Message{sent[0], sent[2]} {
			r.copy(&m)
		}
		for i, m := range r.messages() {
			mine, version, err := r.b.Own(t.Context(), 0, &m)
			if err != nil || mine != (i < 10) {
				t.Errorf("message %d is the source's version %d: %v, %v", i+1, version, mine, err)
			}
		}
		replica, u := r.replica(false)
		r.converges(replica, u)
		r.upsert(1)
		r.drain()
		r.converges(replica, u)
		if s := replica.Status(); len(s.Quarantines) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Another writer reads a version's second id off the signature and publishes a copy under it at
// once: the content and the signature are the source's, the message is not.
func TestCopiesUnderTheSecondID(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, _ *brokertest.Server) {
		r.upsert(10)
		r.step()
		replica, u := r.replica(false)
		r.converges(replica, u)
		sent := r.messages()
		for i := range sent {
			m := &sent[i]
			must.Get(r.stream.broker.Publish(t.Context(), account.Subject(), m.Data,
				broker.PublishOptions{Signature: m.Signature,
					MsgID: otherID(account, uint64(i+1), m.Signature)}))(t)
		}
		until(t, "they are counted", func() bool { return r.b.Foreign() == uint64(len(sent)) })
		if got := r.ours(); !slices.Equal(got, span(1, 10)) {
			t.Errorf("the source's own messages are %v", got)
		}
		r.goesOn(replica, u)
	})
}

// Messages of the previous build carry no signature. Their bytes and their id identify them as the
// source's. The database of that build has no key either.
func TestStreamOfTheBuildBefore(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		r.upsert(10)
		must.OK(t, r.stream.Ensure(t.Context()))
		for _, row := range r.rows()[:7] { // the last one is not marked
			r.put(account.MsgID(row.Version), string(row.Payload))
			if row.Version < 7 {
				must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
					return tx.MarkPublished(string(account), row.Version, row.Version, row.Version, 1)
				}))
			}
		}
		replica, u := r.replica(false)
		r.step()
		r.has(span(1, 10))
		r.converges(replica, u)
		for _, m := range r.messages() {
			if signed := m.Signature != ""; signed != (m.Sequence > 7) {
				t.Errorf("sequence %d has the signature %q", m.Sequence, m.Signature)
			}
		}
		r.put(account.MsgID(12), string(deltaOf(r.epoch(), 12, "x")))
		r.fresh()
		r.step()
		r.upsert(2)
		r.step()
		r.converges(replica, u)
		if s := replica.Status(); len(s.Quarantines) != 0 || r.b.Foreign() != 1 {
			t.Errorf("%+v, %d of other hands", s, r.b.Foreign())
		}
	})
}

// A quarantine makes the publisher check the stream, although no row waits. Messages that the
// stream has lost are published again without a change of the source.
func TestDoubtMakesThePublisherLook(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.b = New(Options{Source: account, DB: r.db, Stream: r.stream, Poll: 24 * time.Hour})
		r.upsert(10)
		r.step()
		r.run()
		srv.DeleteStream(account.Stream())
		r.b.CompareNow()
		until(t, "published again", func() bool {
			info, err := r.stream.broker.StreamInfo(t.Context(), account.Stream())
			return err == nil && info.Messages == 10
		})
	})
}

// flooded is a stream on which another writer publishes before each of our publications.
type flooded struct {
	*natsStream
	put func()
}

func (f *flooded) Publish(ctx context.Context, messages []Outgoing) ([]Ack, error) {
	f.put()
	return f.natsStream.Publish(ctx, messages)
}

// Another writer that is always faster does not block the source for good.
func TestAnotherHandThatIsAlwaysFaster(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, _ *brokertest.Server) {
		stream := &flooded{r.stream, func() { r.put("", "x") }}
		r.b = New(Options{Source: account, DB: r.db, Stream: stream, Poll: 5 * time.Millisecond})
		replica, u := r.replica(false)
		r.upsert(20)
		r.run()
		until(t, "all is published", func() bool { return r.b.Published() == 20 })
		r.converges(replica, u)
		if got := r.ours(); !slices.Equal(got, span(1, 20)) {
			t.Errorf("the source's own messages are %v", got)
		}
		if s := replica.Status(); len(s.Quarantines) != 0 || r.b.Foreign() < 20 {
			t.Errorf("%+v, %d of other hands", s, r.b.Foreign())
		}
	})
}

// A message that the source has signed and that the outbox does not have belongs to a lost history
// of the source. It is still judged, and no publication hides it.
func TestForgottenMessageIsNoForeignOne(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		r.upsert(10)
		r.step()
		replica, u := r.replica(false)
		r.converges(replica, u)
		key := must.Get(r.b.signingKey(t.Context()))(t)
		payload := deltaOf(r.epoch(), 12, "x")
		must.Get(b.Publish(t.Context(), account.Subject(), payload, broker.PublishOptions{
			MsgID: account.MsgID(12), Signature: signature(key, account, 12, payload)}))(t)
		until(t, "the gap is found", func() bool {
			return replica.Status().Quarantines[bootstrap.Gap] > 0
		})
		r.fresh()
		r.refuses()
		if r.b.Foreign() != 0 {
			t.Error("it was counted as another hand's")
		}
	})
}
