package outbox

import (
	"context"
	"fmt"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// memory is a stream in memory that applies the conditions of a real one.
type memory struct{ messages []Message }

func (m *memory) Ensure(context.Context) error { return nil }
func (m *memory) Last(context.Context) (Message, Extent, bool, error) {
	if len(m.messages) == 0 {
		return Message{}, Extent{First: 1}, false, nil
	}
	last := m.messages[len(m.messages)-1]
	return last, Extent{1, last.Sequence}, true, nil
}
func (m *memory) At(_ context.Context, seq uint64) (Message, bool, error) {
	if seq == 0 || seq > uint64(len(m.messages)) {
		return Message{}, false, nil
	}
	return m.messages[seq-1], true, nil
}
func (m *memory) Publish(_ context.Context, out []Outgoing) (acks []Ack, err error) {
	for _, o := range out {
		last := ""
		if n := len(m.messages); n > 0 {
			last = m.messages[n-1].MsgID
		}
		if o.AfterMsgID != "" && o.AfterMsgID != last ||
			o.AfterSequence != nil && *o.AfterSequence != uint64(len(m.messages)) {
			return acks, ErrConflict
		}
		m.messages = append(m.messages, Message{Sequence: uint64(len(m.messages) + 1), MsgID: o.MsgID,
			Data: o.Data, Signature: o.Signature})
		acks = append(acks, Ack{Sequence: uint64(len(m.messages))})
	}
	return acks, nil
}

func TestStepsOverAStreamInMemory(t *testing.T) {
	changes := size(600, 300) // more than a batch
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		s := accounts.New(source.Options{DB: db})
		stream := &memory{}
		b := New(Options{Source: control.Account, DB: db, Stream: stream})
		for i := range changes {
			a := accounts.Account{ID: uint32(i%50 + 1), DisplayName: fmt.Sprint("n", i), Enabled: true}
			must.Get(s.Upsert(t.Context(), a))(t)
		}
		for total := 0; total < changes; {
			n := must.Get(b.Step(t.Context()))(t)
			total += n
		}
		for i, m := range stream.messages {
			d, err := control.ParseDelta(control.Account, m.Data)
			if err != nil || d.Version != uint64(i+1) {
				t.Fatal(d, err)
			}
		}
		if epoch, err := s.BumpEpoch(t.Context(), store.OutboxRow{}, nil); err != nil || epoch == 0 {
			t.Fatal(err)
		}
		if n, err := b.Step(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		fresh := New(Options{Source: control.Account, DB: db, Stream: stream})
		if n, err := fresh.Step(t.Context()); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		snap, err := s.Snapshot(t.Context())
		if err != nil || snap.Watermark != uint64(changes)+1 || len(snap.Records) != 50 {
			t.Fatal(snap.Watermark, len(snap.Records), err)
		}
	})
}
