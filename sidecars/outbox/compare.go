package outbox

import (
	"context"
	"fmt"

	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// Compare checks the end of the stream against the marks of the outbox, repairs what can be
// repaired, and determines which message the next row must follow. doc.go lists its findings.
//
// It runs before the first message and after every doubt: an error of Publish, a conflict, a
// replica's CompareNow. It costs three reads of the database and one message of the stream in the
// usual case. Behind messages of other writers it reads back one message at a time. It is serial
// with Step: both belong to Run's goroutine.
func (b *Outbox) Compare(ctx context.Context) error {
	if err := b.o.Stream.Ensure(ctx); err != nil {
		return err
	}
	// During a hand-over another publisher may be at work. So the marks are read before the stream:
	// the stream has every row that was marked by then. The source's counter is read after the stream:
	// the counter covers every version that was on the stream by then.
	var marked store.OutboxRow
	if err := b.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		marked, _, err = tx.LastPublished(string(b.o.Source))
		return err
	}); err != nil {
		return err
	}
	end, err := b.lastOwn(ctx)
	if err != nil {
		return err
	}
	var epoch, version uint64 // of the source
	if err := b.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		epoch, version, _, err = tx.Source(string(b.o.Source))
		return err
	}); err != nil {
		return err
	}
	found, err := b.repair(ctx, &end, marked.Version, epoch, version)
	if err == nil {
		err = b.drawKey(ctx)
	}
	if err != nil {
		return err
	}
	if b.finding = found; found != "" {
		b.raise(found)
	}
	b.continueBehind(&end)
	return nil
}

// repair makes stream and outbox agree up to the source's version: it marks the rows that are on
// the stream, and publishes again those that were marked and are not. found says what was lost for
// good.
//
// marked is the last version that the outbox has as published; epoch and version are the source's.
// ErrForeign is returned when the stream has something that the database has forgotten.
func (b *Outbox) repair(ctx context.Context, end *end, marked, epoch,
	version uint64) (found string, err error) {
	switch {
	case end.forgotten && end.version > version:
		return "", b.foreign(fmt.Sprintf("the stream has version %d, the source has only given %d",
			end.version, version))
	case end.forgotten:
		return "", b.foreign(fmt.Sprintf("the stream's version %d is not the outbox's", end.version))
	case end.version > marked:
		return b.markAcknowledged(ctx, marked, end)
	case end.version < marked:
		return "", b.republish(ctx, end.version+1, marked, epoch)
	}
	return "", nil
}

// continueBehind sets which message the next row must follow.
//
// It sets a condition on the sequence and none on the id: the last message may be another writer's.
func (b *Outbox) continueBehind(end *end) {
	b.passed = len(end.strange) > 0
	b.last, b.after, b.compared = end.version, Outgoing{AfterSequence: &end.sequence}, true
	b.end = position{end.sequence, end.version}
	if b.refusal != nil && *b.refusal == b.end || b.conflicts >= mostConflicts {
		// A server that has lost messages from a damaged file may report an end that it then does not
		// accept, until it is restarted. Another writer may also write faster than this code can look. So
		// one row is sent without a condition. Its id prevents a second copy.
		b.after = Outgoing{}
	}
}

// position is an end of the stream.
//
// Two equal positions mean that nothing was written in between.
type position struct{ sequence, version uint64 }

// end describes the end of a stream.
//
// The zero end is that of an empty stream.
type end struct {
	first     uint64 // no message of the stream has a lower sequence
	sequence  uint64 // of the stream's last message, from any writer
	version   uint64 // of our last message, 0 for none
	message   Message
	forgotten bool      // the outbox does not have it
	strange   []Message // foreign messages behind it, without their data, the last one first
}

// lastOwn finds the source's last message on its stream; it searches backwards from the end.
//
// A sequence without a message was deleted; the search goes on below it, to the first sequence that
// the stream still has. It counts the foreign messages that it passes, oldest first, as
// CountForeign wants them.
func (b *Outbox) lastOwn(ctx context.Context) (e end, err error) {
	counted := b.counted()
	m, extent, found, err := b.o.Stream.Last(ctx)
	e.first, e.sequence = max(extent.First, 1), extent.Last
	if err != nil {
		return e, err
	}
	b.streamEnds(counted, e.sequence)
	if !found {
		return e, nil
	}
	for at := m.Sequence; ; {
		if found {
			v, version, err := b.judge(ctx, &m)
			if err != nil {
				return e, err
			}
			if v != strange {
				e.version, e.message, e.forgotten = version, m, v == forgotten
				break
			}
			e.strange = append(e.strange, Message{Sequence: m.Sequence, MsgID: m.MsgID})
		}
		if at--; at < e.first {
			break
		}
		if m, found, err = b.o.Stream.At(ctx, at); err != nil {
			return e, err
		}
	}
	for i := len(e.strange) - 1; i >= 0; i-- {
		b.CountForeign(&e.strange[i])
	}
	return e, nil
}

// LastOnStream returns the source's last message on its stream as the row that BumpEpoch of the
// source takes; Version 0 for none.
//
// It is for a bump of the epoch, and may be called whether or not Run runs. It looks at the
// stream's end only and changes nothing in the database; it makes the stream when there is none.
func (b *Outbox) LastOnStream(ctx context.Context) (row store.OutboxRow, err error) {
	if err := b.o.Stream.Ensure(ctx); err != nil {
		return row, err
	}
	e, err := b.lastOwn(ctx)
	if err != nil || e.version == 0 {
		return row, err
	}
	row = store.OutboxRow{
		Version: e.version, Epoch: 1, Payload: e.message.Data, Published: true,
		StreamSequence: e.message.Sequence,
	}
	// Else the source's ids were used by another writer, and no epoch is known.
	if d, err := control.ParseDelta(b.o.Source, e.message.Data); err == nil {
		row.Epoch = d.Epoch
	}
	return row, nil
}

// row reads the row of a version.
func (b *Outbox) row(ctx context.Context,
	version uint64) (row store.OutboxRow, found bool, err error) {
	err = b.o.DB.Read(ctx, func(tx *store.Tx) error {
		found = false
		return tx.OutboxFrom(string(b.o.Source), version, 1, func(r store.OutboxRow) error {
			row, found = r, r.Version == version
			return nil
		})
	})
	return row, found, err
}

// republish makes the rows wait again that the stream had and has lost.
//
// Rows of an earlier epoch become superseded instead.
func (b *Outbox) republish(ctx context.Context, from, to, epoch uint64) (err error) {
	var waiting int64
	if err = b.o.DB.Write(ctx, func(tx *store.Tx) error {
		waiting, err = tx.MarkLost(string(b.o.Source), from, epoch)
		return err
	}); err == nil {
		b.o.Logger.Warn("outbox: the stream has lost messages, those of this epoch are published again",
			"source", string(b.o.Source), "from", from, "to", to, "again", waiting)
	}
	return err
}

// onStream returns the stream sequences of the own versions after one, read backwards from the end
// to the first sequence that the stream still has.
//
// When the stream has a version twice, the later one counts. Memory and time grow with the versions
// that were acknowledged and not noted: a batch, unless another publisher was at work.
func (b *Outbox) onStream(ctx context.Context, after uint64, e *end) (at map[uint64]uint64,
	err error) {
	at = map[uint64]uint64{}
	m, there := e.message, true
	for sequence := e.message.Sequence; ; {
		if there {
			v, version, err := b.judge(ctx, &m)
			if err != nil {
				return nil, err
			}
			if v == forgotten {
				return nil, b.foreign(fmt.Sprintf("the stream's version %d is not the outbox's", version))
			}
			if v == own && version <= after {
				return at, nil
			}
			if _, again := at[version]; v == own && !again {
				at[version] = sequence
			}
		}
		if sequence--; sequence < e.first {
			return at, nil
		}
		if m, there, err = b.o.Stream.At(ctx, sequence); err != nil {
			return nil, err
		}
	}
}

// markAcknowledged marks the rows after a version that are on the stream, up to its last, provided
// that the bytes are the same. A row that is missing there cannot be put back into its place:
// replicas meet the gap and take a snapshot.
//
// The marks and the supersession of the missing rows are one transaction: none of those rows may be
// published behind a later version.
func (b *Outbox) markAcknowledged(ctx context.Context, after uint64,
	e *end) (found string, err error) {
	at, err := b.onStream(ctx, after, e)
	if err != nil {
		return "", err
	}
	var lost int64
	now := b.o.Now().UnixMilli()
	err = b.o.DB.Write(ctx, func(tx *store.Tx) (err error) {
		for version, sequence := range at {
			if err := tx.MarkPublished(string(b.o.Source), version, version, sequence, now); err != nil {
				return err
			}
		}
		lost, err = tx.Supersede(string(b.o.Source), 1, e.version, now)
		return err
	})
	if err == nil {
		b.published.Add(uint64(len(at)))
	}
	if lost > 0 {
		found = fmt.Sprintf("the stream has lost %d messages before version %d", lost, e.version)
	}
	return found, err
}
