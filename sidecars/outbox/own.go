package outbox

import (
	"context"
	"time"
)

// verdict is what a message on the stream is to its source.
type verdict uint8

const (
	strange   verdict = iota // another hand's
	own                      // the outbox has it under its version
	forgotten                // the source has signed it, and the outbox does not have it
)

// judge holds a message against the outbox. Before the source has a key what is
// not in the outbox is taken for forgotten by its id.
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
	authentic := signed(key, b.o.Source, version, m)
	if found && string(row.Payload) == string(m.Data) {
		// What the build before has published is not signed, and has the plain id.
		if !authentic && m.MsgID != b.o.Source.MsgID(version) {
			return strange, version, nil
		}
		copied, err := b.copied(ctx, row.StreamSequence, m)
		if copied || err != nil {
			return strange, version, err
		}
		return own, version, nil
	}
	if authentic || key == nil {
		return forgotten, version, nil
	}
	return strange, version, nil
}

// copied reports whether a message is another hand's copy of one that the stream
// still has where the source's acknowledgement said. A stream that was moved or
// filled again may have the only one elsewhere.
func (b *Outbox) copied(ctx context.Context, acknowledged uint64, m *Message) (bool, error) {
	if acknowledged == 0 || acknowledged == m.Sequence {
		return false, nil
	}
	first, found, err := b.o.Stream.At(ctx, acknowledged)
	return found && first.MsgID == m.MsgID && string(first.Data) == string(m.Data), err
}

// Own reports whether a message that a subscription has delivered is the source's,
// and its version; after is the last version that was delivered before it, 0 when
// that is not known. A message of another hand must not be judged as the source's
// word; Strange counts it. The next version with the source's signature costs no
// query. Any goroutine. An error is a database or a stream that cannot be asked:
// the same message may be asked for again.
func (b *Outbox) Own(
	ctx context.Context, after uint64, m *Message,
) (mine bool, version uint64, err error) {
	if version, ok := versionOf(b.o.Source, m); ok && (after == 0 || version == after+1) {
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

// strangeQuiet is how long other hands may go on before the log names them again.
const strangeQuiet = time.Minute

// otherHand is the alarm of foreign messages. They change nothing: what follows
// them goes out behind them.
const otherHand = "another hand writes to the stream: its messages are passed over"

// Strange counts a message of another hand, once however often it is met, and
// raises the alarm, once a burst. Messages come in the order of the stream. Any goroutine.
func (b *Outbox) Strange(m *Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Sequence <= b.strangeTo {
		return
	}
	b.strangeTo = m.Sequence
	b.strangers.Add(1)
	now := b.o.Now()
	if b.strangeAt.IsZero() || now.Sub(b.strangeAt) >= strangeQuiet {
		b.alarms.Add(1)
		id := []byte(m.MsgID)
		b.o.Logger.Error("outbox alarm", "source", string(b.o.Source), "alarm", otherHand,
			"sequence", m.Sequence, "id", string(id[:min(len(id), 64)]))
	}
	b.strangeAt = now
}

// otherHands reports whether a message of another hand was met not long ago.
func (b *Outbox) otherHands() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.strangeAt.IsZero() && b.o.Now().Sub(b.strangeAt) < strangeQuiet
}

// counted is up to where messages of other hands have been counted.
func (b *Outbox) counted() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.strangeTo
}

// streamEnds notes where the stream ends, which was asked for after counted was. An
// end before that is another stream's: none of its messages has been counted.
func (b *Outbox) streamEnds(counted, sequence uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sequence < counted {
		b.strangeTo = min(b.strangeTo, sequence)
	}
}

// Foreign counts the messages of other hands that were met since the start.
func (b *Outbox) Foreign() uint64 { return b.strangers.Load() }

// Doubt makes Run hold the stream against the outbox now, although nothing may wait
// to be published: a replica has met something on it. Any goroutine, no waiting.
func (b *Outbox) Doubt() {
	b.doubted.Store(true)
	b.Wake()
}
