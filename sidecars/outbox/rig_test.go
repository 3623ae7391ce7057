package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	var leak error
	for tries := 0; code == 0 && tries < 50; tries++ { // a broker that stops takes a moment
		if leak = goleak.Find(); leak == nil {
			break
		}
	}
	if leak != nil {
		fmt.Fprintln(os.Stderr, leak)
		code = 1
	}
	os.Exit(code)
}

const account = control.Account

// natsStream is a source's stream on a broker. impatient, if any, bounds every call.
type natsStream struct {
	broker    *broker.Broker
	config    broker.Stream
	impatient time.Duration
}

func streamOn(b *broker.Broker) *natsStream {
	return &natsStream{broker: b, config: broker.Stream{
		Name: account.Stream(), Subjects: []string{account.Subject()}, RefuseWhenFull: true,
	}}
}

func (s *natsStream) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.impatient == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.impatient)
}

func (s *natsStream) Ensure(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.broker.EnsureStream(ctx, s.config)
}

func (s *natsStream) Last(ctx context.Context) (m Message, e Extent, found bool, err error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	info, err := s.broker.StreamInfo(ctx, s.config.Name)
	e = Extent{info.FirstSeq, info.LastSeq}
	if err != nil || info.Messages == 0 {
		return m, e, false, err
	}
	// The subject is needed: with ">" the server only takes the last sequence.
	last, err := s.broker.LastMessage(ctx, s.config.Name, account.Subject())
	if err == nil {
		e.Last = max(e.Last, last.Sequence)
		return messageOf(&last), e, true, nil
	}
	// After damage to its files the server counts messages that it does not find by their subject.
	for at := e.Last; errors.Is(err, broker.ErrNotFound) && at >= max(e.First, 1); at-- {
		if m, found, failed := s.At(ctx, at); found || failed != nil {
			return m, e, found, failed
		}
	}
	if errors.Is(err, broker.ErrNotFound) {
		err = nil
	}
	return m, e, false, err
}

func (s *natsStream) At(ctx context.Context, sequence uint64) (Message, bool, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	m, err := s.broker.Message(ctx, s.config.Name, sequence)
	if errors.Is(err, broker.ErrNotFound) {
		return Message{}, false, nil
	}
	return messageOf(&m), err == nil, err
}

func messageOf(m *broker.Message) Message {
	return Message{Sequence: m.Sequence, MsgID: m.MsgID, Data: m.Data, Signature: m.Signature}
}

func (s *natsStream) Publish(ctx context.Context, messages []Outgoing) ([]Ack, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	out := make([]broker.Outgoing, len(messages))
	for i, m := range messages {
		out[i] = broker.Outgoing{Subject: account.Subject(), Data: m.Data,
			PublishOptions: broker.PublishOptions{
				MsgID: m.MsgID, Signature: m.Signature, ExpectLastMsgID: m.AfterMsgID,
				ExpectLastSeq: m.AfterSequence, ExpectStream: s.config.Name,
			}}
	}
	n, given, err := s.broker.PublishBatch(ctx, out)
	acks := make([]Ack, n)
	for i := range acks {
		acks[i] = Ack{Sequence: given[i].Sequence, Duplicate: given[i].Duplicate}
	}
	if errors.Is(err, broker.ErrSequence) {
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return acks, err
}

// running makes a Broker and waits until its embedded server, if it has one, runs: Open itself
// returns after two seconds without it.
func running(t *testing.T, o broker.Options) *broker.Broker {
	t.Helper()
	b := must.Get(broker.Open(o))(t)
	until(t, "the embedded server runs", func() bool {
		ready, _ := b.State()
		return ready || o.URL != ""
	})
	return b
}

// openBroker returns a running Broker that is closed with the test.
func openBroker(t *testing.T, o broker.Options) *broker.Broker {
	t.Helper()
	b := running(t, o)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close the broker: %v", err)
		}
	})
	return b
}

// rig is an account-service with its outbox and a stream.
type rig struct {
	t      *testing.T
	db     *store.DB
	stream *natsStream
	s      *accounts.Accounts
	b      *Outbox
	n      int // upserts so far
}

func newRig(t *testing.T, db *store.DB, b *broker.Broker) *rig {
	r := &rig{t: t, db: db, stream: streamOn(b), s: accounts.New(source.Options{DB: db})}
	r.fresh()
	return r
}

// fresh makes a publisher without knowledge of the stream, as after a restart.
func (r *rig) fresh() {
	r.b = New(Options{Source: account, DB: r.db, Stream: r.stream, Poll: 5 * time.Millisecond})
}

// upsert commits n changes of ten accounts.
func (r *rig) upsert(n int) {
	r.t.Helper()
	for range n {
		r.n++
		a := accounts.Account{ID: uint32(r.n%10 + 1),
			DisplayName: fmt.Sprint("change ", r.n), Enabled: r.n%3 > 0}
		must.Get(r.s.Upsert(r.t.Context(), a))(r.t)
	}
}

// step publishes all waiting rows, and fails on any error.
func (r *rig) step() {
	r.t.Helper()
	for {
		n := must.Get(r.b.Step(r.t.Context()))(r.t)
		if n == 0 {
			return
		}
	}
}

// refuses asserts that nothing is published, now and later, because the histories differ, and that
// one alarm says so.
func (r *rig) refuses() {
	r.t.Helper()
	before, alarms := r.messages(), r.b.Alarms()
	for range 3 {
		if n, err := r.b.Step(r.t.Context()); n != 0 || !errors.Is(err, ErrForeign) {
			r.t.Fatalf("published %d, %v", n, err)
		}
	}
	if r.b.Alarm() == "" || r.b.Alarms() != alarms+1 {
		r.t.Errorf("%d alarms more, %q", r.b.Alarms()-alarms, r.b.Alarm())
	}
	if err := r.b.Behind(r.t.Context(), 1<<50, time.Hour); !errors.Is(err, ErrForeign) {
		r.t.Errorf("a replica beside it is told %v", err)
	}
	if after := r.messages(); len(after) != len(before) {
		r.t.Errorf("%d messages were published", len(after)-len(before))
	}
}

// bump begins an epoch, as an operator does.
func (r *rig) bump() {
	r.t.Helper()
	last := must.Get(r.b.LastOnStream(r.t.Context()))(r.t)
	must.Get(r.s.BumpEpoch(r.t.Context(), last, nil))(r.t)
}

// messages reads the whole stream.
func (r *rig) messages() (all []Message) {
	r.t.Helper()
	ctx := r.t.Context()
	info := must.Get(r.stream.broker.StreamInfo(ctx, r.stream.config.Name))(r.t)
	for sequence := info.FirstSeq; sequence <= info.LastSeq; sequence++ {
		m, found, err := r.stream.At(ctx, sequence)
		must.OK(r.t, err)
		if found {
			all = append(all, m)
		}
	}
	return all
}

// versions returns the versions of our messages on the stream, in stream order; 0 for any other
// message.
func (r *rig) versions() (all []uint64) {
	for _, m := range r.messages() {
		version, _ := versionOf(account, &m)
		all = append(all, version)
	}
	return all
}

// span returns the versions first to last.
func span(first, last uint64) (all []uint64) {
	for v := first; v <= last; v++ {
		all = append(all, v)
	}
	return all
}

// has asserts the versions on the stream, and that the outbox agrees with it.
func (r *rig) has(want []uint64) {
	r.t.Helper()
	if got := r.versions(); !slices.Equal(got, want) {
		r.t.Fatalf("the stream has %v, want %v", got, want)
	}
	rows := map[uint64]store.OutboxRow{}
	for _, row := range r.rows() {
		rows[row.Version] = row
		if !row.Published {
			r.t.Errorf("version %d waits", row.Version)
		}
	}
	for _, m := range r.messages() {
		version, ours := versionOf(account, &m)
		if row := rows[version]; ours &&
			(!bytes.Equal(row.Payload, m.Data) || row.StreamSequence != m.Sequence) {
			r.t.Errorf("sequence %d has %s, the row is %+v", m.Sequence, m.Data, row)
		}
	}
	if n, lag := r.b.Unpublished(), r.b.LagSeconds(); n != 0 || lag != 0 {
		r.t.Errorf("%d rows wait, for %v s", n, lag)
	}
}

func (r *rig) rows() (all []store.OutboxRow) {
	r.t.Helper()
	err := r.db.Read(r.t.Context(), func(tx *store.Tx) error {
		all = nil
		return tx.OutboxFrom(string(account), 1, 1<<30, func(row store.OutboxRow) error {
			all = append(all, row)
			return nil
		})
	})
	must.OK(r.t, err)
	return all
}

// run runs the publisher in the background until stop.
func (r *rig) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	b := r.b
	go func() { ended <- b.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				r.t.Errorf("Run: %v", err)
			}
		})
	}
	r.t.Cleanup(stop)
	return stop
}

// drain publishes all waiting rows, in as many attempts as that takes: messages that an earlier
// publisher had under way may still arrive.
func (r *rig) drain() {
	r.t.Helper()
	var failure error
	failures := 0
	until(r.t, "drained", func() bool {
		_, err := r.b.Step(r.t.Context())
		if err != nil {
			failure = err
			if failures++; failures == 1000 {
				r.t.Fatalf("it goes on failing: %v", failure)
			}
		}
		return err == nil && r.b.Unpublished() == 0
	})
}

// until polls a condition that no channel announces.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	hangs := time.NewTimer(2 * time.Minute)
	defer hangs.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-hangs.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// both runs a test on both databases, one with the embedded server and one with an external server;
// with -short on one of the two pairs.
func both(t *testing.T, test func(t *testing.T, db *store.DB, b *broker.Broker)) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) { test(t, db, beside(t, db)) })
}

// beside returns the broker that goes with a database. Each database gets one kind, since the other
// pairs would show nothing else.
func beside(t *testing.T, db *store.DB) *broker.Broker {
	t.Helper()
	if db.Dialect() == store.SQLite {
		return openBroker(t, broker.Options{Dir: t.TempDir()})
	}
	return openBroker(t, broker.Options{URL: brokertest.External(t).URL()})
}

// size returns how many repetitions a test does: fewer with -short.
func size(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// copyOf returns a copy of a folder, like a backup.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	must.OK(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}
