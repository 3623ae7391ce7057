package outbox

import (
	"context"
	"time"

	"posttrade/sidecars/store"
)

// verdict says how a message on the stream relates to its source.
type verdict uint8

const (
	strange   verdict = iota // of another writer
	own                      // the outbox has it under its version
	forgotten                // the source has signed it, and the outbox does not have it
)

// judge compares a message with the outbox. Before the source has a key, a message that is not in
// the outbox but has one of the source's ids counts as forgotten.
//
// The decision, in this order:
//
//   - an id that is not one of the source's: strange;
//   - the bytes of the row of that version: own, unless the id is a second one without a signature,
//     or the message is a copy of the acknowledged one: strange;
//   - a valid signature, or no key yet: forgotten;
//   - anything else: strange.
//
// It costs a query, and a message of the stream when the sequence is not the acknowledged one.
func (b *Outbox) judge(ctx context.Context, m *Message) (v verdict, version uint64, err error) {
	version, ok := versionOf(b.o.Source, m)
	if !ok {
		return strange, 0, nil
	}
	key, err := b.signingKey(ctx)
	if err != nil {
		return strange, version, err
	}
	row, found, err := b.row(ctx, version)
	if err != nil {
		return strange, version, err
	}
	if found && string(row.Payload) == string(m.Data) {
		if !b.holds(key, &row, m) {
			return strange, version, nil
		}
		copied, err := b.copied(ctx, key, &row, m)
		if copied || err != nil {
			return strange, version, err
		}
		return own, version, nil
	}
	if key == nil || signed(key, b.o.Source, version, m) {
		return forgotten, version, nil
	}
	return strange, version, nil
}

// holds reports whether a message has the bytes of a row, with a signature or the plain id of its
// version: messages of the previous build are not signed, and have the plain id.
func (b *Outbox) holds(key []byte, row *store.OutboxRow, m *Message) bool {
	return string(row.Payload) == string(m.Data) &&
		(m.MsgID == b.o.Source.MsgID(row.Version) || signed(key, b.o.Source, row.Version, m))
}

// copied reports whether a message of a row is another writer's copy: the stream still has the row
// at the acknowledged sequence, whichever of the version's ids the two have. In a stream that was
// moved or filled again, the only copy may be at another sequence.
func (b *Outbox) copied(ctx context.Context, key []byte, row *store.OutboxRow,
	m *Message) (bool, error) {
	if row.StreamSequence == 0 || row.StreamSequence == m.Sequence {
		return false, nil
	}
	first, found, err := b.o.Stream.At(ctx, row.StreamSequence)
	return found && b.holds(key, row, &first), err
}

// Own reports whether a message that a subscription has delivered is the source's, and its version.
// after is the last version that was delivered before it, 0 when that is not known. A replica must
// not judge a message of another writer as the source's; CountForeign counts it. The next version
// with the source's signature costs no query. Any goroutine. An error means that the database or
// the stream cannot be read: the caller may ask again for the same message.
//
// The subscription asks for each message that it gets, so the usual case, the next version with a
// signature, must cost no query. A signature alone does not tell a copy of an older version, so
// without after every message is judged.
func (b *Outbox) Own(
	ctx context.Context, after uint64, m *Message,
) (mine bool, version uint64, err error) {
	if version, ok := versionOf(b.o.Source, m); ok && after > 0 && version == after+1 {
		key, err := b.signingKey(ctx)
		if err != nil {
			return false, version, err
		}
		if signed(key, b.o.Source, version, m) {
			return true, version, nil
		}
	}
	v, version, err := b.judge(ctx, m)
	return v != strange, version, err
}

// foreignQuiet is how long other writers must be quiet before the log names them again.
const foreignQuiet = time.Minute

// foreignAlarm is the alarm of foreign messages. They change nothing: the source's next messages
// are published behind them.
const foreignAlarm = "another hand writes to the stream: its messages are passed over"

// CountForeign counts a message of another writer, once however often it is met, and raises the
// alarm once per burst. Messages come in the order of the stream. Any goroutine.
//
// It takes a mutex and, once per burst, writes a line. The id comes from another writer: only its
// first 64 bytes are logged.
func (b *Outbox) CountForeign(m *Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Sequence <= b.foreignTo {
		return
	}
	b.foreignTo = m.Sequence
	b.foreignCount.Add(1)
	now := b.o.Now()
	if b.foreignAt.IsZero() || now.Sub(b.foreignAt) >= foreignQuiet {
		b.alarms.Add(1)
		id := []byte(m.MsgID)
		b.o.Logger.Error("outbox alarm", "source", string(b.o.Source), "alarm", foreignAlarm,
			"sequence", m.Sequence, "id", string(id[:min(len(id), 64)]))
	}
	b.foreignAt = now
}

// foreignRecently reports whether a message of another writer was met less than foreignQuiet ago.
//
// While it is true, Step publishes one row at a time.
func (b *Outbox) foreignRecently() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.foreignAt.IsZero() && b.o.Now().Sub(b.foreignAt) < foreignQuiet
}

// counted returns the stream sequence up to which foreign messages have been counted.
func (b *Outbox) counted() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.foreignTo
}

// streamEnds notes the end of the stream. counted was read before that end was. An end below
// counted is that of another stream: none of its messages has been counted.
func (b *Outbox) streamEnds(counted, sequence uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sequence < counted {
		b.foreignTo = min(b.foreignTo, sequence)
	}
}

// Foreign returns how many messages of other writers were met since the start.
func (b *Outbox) Foreign() uint64 { return b.foreignCount.Load() }

// CompareNow makes Run compare the stream with the outbox now, even when no row waits: a replica
// has met something unexpected on the stream. Any goroutine may call it; it does not wait.
//
// The next Step compares even when the last one was without an error.
func (b *Outbox) CompareNow() {
	b.compareAsked.Store(true)
	b.Wake()
}
