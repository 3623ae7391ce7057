package outbox

import (
	"context"
	"errors"
	"fmt"

	"posttrade/sidecars/store"
)

// errTaken says that another writer has used the id of a version.
var errTaken = errors.New("the id is taken by another hand")

// Step publishes the next unpublished rows, 256 at most, marks them, and returns how many it
// marked.
//
// Run calls it in a loop; tests call it alone. It blocks for the time of the database and the
// stream. ErrConflict and ErrForeign are the errors with a meaning; after any other it may be
// called again. While another writer is active, the rows of a batch are sent one by one, each as a
// step of its own.
func (b *Outbox) Step(ctx context.Context) (published int, err error) {
	for {
		n, err := b.step(ctx)
		published += n
		single := err == nil && n == 1 && published < batchRows && b.foreignRecently()
		if !single && !errors.Is(err, errTaken) {
			return published, err
		}
	}
}

// step is one round: look, compare if in doubt, publish, mark. When it ends between the
// acknowledgement and the mark, the rows are sent again after a Compare; the stream either shows
// them to Compare or answers with a duplicate.
func (b *Outbox) step(ctx context.Context) (published int, err error) {
	if b.compareAsked.Swap(false) {
		b.compared = false
	}
	if err := b.look(ctx); err != nil {
		return 0, err
	}
	fresh := !b.compared
	if fresh {
		if err := b.Compare(ctx); err != nil {
			return 0, err
		}
		if err := b.look(ctx); err != nil { // there may be more to publish now
			return 0, err
		}
	}
	if b.Unpublished() == 0 {
		b.settle()
		return 0, nil
	}
	rows, err := b.rows(ctx, fresh)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if b.after.unconditional() || b.foreignRecently() {
		// When another writer is active, even under the source's ids, a message sent behind a refused one
		// could be accepted all the same. So each message waits for the one before.
		rows = rows[:1]
	}
	out, err := b.messages(ctx, rows)
	if err != nil {
		return 0, err
	}
	acks, sendErr := b.o.Stream.Publish(ctx, out)
	b.refusal = nil
	if fresh && len(acks) == 0 && errors.Is(sendErr, ErrConflict) {
		at := b.end
		b.refusal = &at
	}
	if b.conflicts++; !errors.Is(sendErr, ErrConflict) {
		b.conflicts = 0
	}
	published, err = b.mark(ctx, rows, out, acks)
	if err == nil {
		err = sendErr
	}
	if err != nil {
		b.compared = false // the content of the stream is in doubt
		failed := rows[min(published, len(rows)-1)].Version
		return published, fmt.Errorf("outbox: publish source=%s version=%d: %w", b.o.Source, failed, err)
	}
	b.passed = false
	b.settle()
	return published, b.look(ctx)
}

// look reads the backlog.
//
// It is the only writer of the backlog that Unpublished, LagSeconds and Behind use.
func (b *Outbox) look(ctx context.Context) error {
	return b.o.DB.Read(ctx, func(tx *store.Tx) error {
		at, err := tx.OutboxBacklog(string(b.o.Source))
		if err == nil {
			b.backlog.Store(&at)
		}
		return err
	})
}

// rows reads the next unpublished rows, and checks that none is missing among them or before them:
// publishing would only hide that. Only a finding right after Compare is a reason to stop.
//
// fresh says that Compare has just run. Without it the finding may come from a mark or a restore in
// between, so the step fails and the next one compares first.
func (b *Outbox) rows(ctx context.Context, fresh bool) (rows []store.OutboxRow, err error) {
	var before store.OutboxRow
	err = b.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		rows, before = rows[:0], store.OutboxRow{}
		if err := tx.Unpublished(string(b.o.Source), batchRows, func(row store.OutboxRow) error {
			rows = append(rows, row)
			return nil
		}); err != nil || len(rows) == 0 {
			return err
		}
		before, _, err = tx.OutboxBefore(string(b.o.Source), rows[0].Version)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		row, wrong := &rows[i], ""
		switch {
		case row.Version <= b.last:
			wrong = fmt.Sprintf("version %d waits, and the stream has version %d already",
				row.Version, b.last)
		// An epoch may begin higher.
		case row.Version != before.Version+1 && (before.Version == 0 || row.Epoch <= before.Epoch):
			wrong = fmt.Sprintf("version %d follows %d in the outbox", row.Version, before.Version)
		}
		switch {
		case wrong != "" && fresh:
			err = b.foreign(wrong)
		case wrong != "":
			err = fmt.Errorf("outbox: source=%s: %s", b.o.Source, wrong)
		}
		if err != nil {
			b.compared = false
			return nil, err
		}
		before = *row
	}
	return rows, nil
}

// messages signs and chains rows: each names its predecessor as the stream's last message, by id
// and by sequence. The id alone is not enough: another writer may have used it.
//
// Because of the chain the stream refuses every message behind one that it did not take, so a batch
// is sent without waiting for each acknowledgement.
func (b *Outbox) messages(ctx context.Context, rows []store.OutboxRow) ([]Outgoing, error) {
	key, err := b.signingKey(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Outgoing, len(rows))
	before := b.after
	for i, row := range rows {
		out[i] = before
		out[i].Data, out[i].MsgID = row.Payload, b.o.Source.MsgID(row.Version)
		if key != nil {
			out[i].Signature = signature(key, b.o.Source, row.Version, row.Payload)
			if row.Version == b.taken {
				out[i].MsgID = otherID(b.o.Source, row.Version, out[i].Signature)
			}
		}
		before = Outgoing{AfterMsgID: out[i].MsgID}
		if out[i].AfterSequence != nil {
			next := *out[i].AfterSequence + 1
			before.AfterSequence = &next
		}
	}
	return out, nil
}

// mark notes the stream sequences of the acknowledged rows. A duplicate acknowledges a row only
// when the stream has the same bytes.
//
// Acknowledgements are those of the first rows, without a gap. It returns how many rows are marked;
// doubt says why the rest of them is not. Runs of versions that are adjacent on the stream cost one
// statement each.
func (b *Outbox) mark(
	ctx context.Context, rows []store.OutboxRow, out []Outgoing, acks []Ack,
) (marked int, doubt error) {
	for i, ack := range acks {
		if ack.Duplicate {
			if doubt = b.sameBytes(ctx, &rows[i], &out[i], ack.Sequence); doubt != nil {
				acks = acks[:i]
				break
			}
		}
	}
	if len(acks) == 0 {
		return 0, doubt
	}
	now := b.o.Now().UnixMilli()
	err := b.o.DB.Write(ctx, func(tx *store.Tx) error {
		for i := 0; i < len(acks); {
			run := 1 // rows that are adjacent on the stream too
			for i+run < len(acks) && acks[i+run].Sequence == acks[i].Sequence+uint64(run) &&
				rows[i+run].Version == rows[i].Version+uint64(run) {
				run++
			}
			first, last := rows[i].Version, rows[i+run-1].Version
			if err := tx.MarkPublished(string(b.o.Source), first, last, acks[i].Sequence, now); err != nil {
				return err
			}
			i += run
		}
		return b.o.Marked(rows[len(acks)-1].Version)
	})
	if err != nil {
		return 0, err
	}
	b.published.Add(uint64(len(acks)))
	b.last = rows[len(acks)-1].Version
	end := acks[len(acks)-1].Sequence
	b.after = Outgoing{AfterMsgID: out[len(acks)-1].MsgID, AfterSequence: &end}
	return len(acks), doubt
}

// sameBytes checks that the stream has a row's message at a sequence.
//
// errTaken means that the row is to be sent again under its second id; ErrForeign that the stream's
// message is the source's own and differs.
func (b *Outbox) sameBytes(
	ctx context.Context, row *store.OutboxRow, out *Outgoing, sequence uint64,
) error {
	m, found, err := b.o.Stream.At(ctx, sequence)
	switch {
	case err != nil:
		return err
	// The stream remembers the id of a message that it has dropped since, as long as its window
	// lasts.
	case !found:
		return fmt.Errorf("the stream calls version %d a duplicate and does not have it", row.Version)
	case m.MsgID == out.MsgID && string(m.Data) == string(row.Payload):
		return nil
	}
	v, version, err := b.judge(ctx, &m)
	if err != nil {
		return err
	}
	if v == strange && version == row.Version && b.taken != row.Version {
		b.taken = row.Version // the version is published under another id
		b.CountForeign(&m)
		return errTaken
	}
	return b.foreign(fmt.Sprintf("the stream's version %d, at its sequence %d, is not the outbox's",
		row.Version, sequence))
}
