package leaf

import (
	"crypto/sha256"
	"encoding/binary"

	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// Where the parts of a record stand in Builder.buf: behind the prefix of a leaf hash and the salt.
const (
	saltAt   = 1
	recordAt = saltAt + verify.SaltBytes
)

// Builder turns events into the records of a leaf and their hashes. One goroutine owns it.
//
// Key and Full must be set, and StartAt or Resume called, before the first Take. It keeps the
// hashes of one leaf, and no records.
type Builder struct {
	// Key is the evidence key of the journal: the salts follow from it.
	Key verify.Key
	// Full is given the data of every leaf that is full; the memory is valid until it returns.
	Full func(data []byte) error
	// Seen, if set, is given every record with its salt and its number in the leaf, in the order in
	// which they are hashed: a command's last. The memory is valid until it returns.
	Seen func(inputSeq, index uint64, salt [verify.SaltBytes]byte, record []byte)
	// Whole, if set, is given the hashes of a leaf that is full.
	Whole func(hashes []verify.Hash)

	first uint64 // the first command of the leaf
	next  uint64 // the command that is due
	// hashes are those of the records so far. The place of the command under way is empty until its
	// end.
	hashes []verify.Hash

	// Of the command under way. The event's memory goes to the next event, so the command is copied.
	command [matcher.CommandBytes]byte
	// outcome is what its events have said so far.
	outcome verify.Outcome
	// traces: its later events say what becomes of its order.
	traces bool
	at     int // index of its record
	// number is the number of the next record within the command: 0 is its own, fills begin at 1.
	number uint32
	// salts are those of two records in turn: one hash gives both halves.
	salts [2][verify.SaltBytes]byte
	own   salted // salt of its record
	// buf holds what is hashed, in one piece: the prefix, the salt, the record.
	buf [recordAt + verify.MaxRecord]byte
	// leafData is the memory of what Full gets.
	leafData [verify.LeafBytes]byte
}

// salted is the salt of a record
type salted = [verify.SaltBytes]byte

// StartAt makes the command behind inputSeq the first one; inputSeq is the end of a leaf.
func (l *Builder) StartAt(inputSeq uint64) {
	l.first, l.next, l.hashes = inputSeq+1, inputSeq+1, l.hashes[:0]
}

// Take adds the events of whole commands, in order; id is the client order id of a command.
//
// id is asked once a command, at its last event. The error is that of Full.
func (l *Builder) Take(ev *matcher.Event, id func(inputSeq uint64) []byte) error {
	if ev.Flags&matcher.EventFirst != 0 {
		l.begin(ev)
	} else {
		l.follow(ev)
	}
	if ev.Flags&matcher.EventLast == 0 {
		return nil
	}
	l.end(id(ev.InputSeq))
	if l.next = ev.InputSeq + 1; l.next-l.first < verify.LeafCommands {
		return nil
	}
	if l.Whole != nil {
		l.Whole(l.hashes)
	}
	leaf := verify.Leaf{First: l.first, Count: verify.LeafCommands, Root: verify.Root(l.hashes)}
	if err := l.Full(leaf.Append(l.leafData[:0])); err != nil {
		return err
	}
	l.StartAt(ev.InputSeq)
	return nil
}

// begin starts a command. Its record is hashed when its decision is known, but stands before its
// fills, so its place in the list is kept free.
func (l *Builder) begin(ev *matcher.Event) {
	l.command = *ev.Cmd().Bytes()
	l.outcome = verify.Outcome{}
	named := names(ev.Cmd())
	if named {
		l.outcome.OrderRef = ev.OrderRef
	}
	l.traces = named || ev.Kind == matcher.EventBooked
	switch ev.Kind {
	case matcher.EventRejected:
		l.outcome.Status, l.outcome.Reason = uint8(matcher.StatusRejected), uint8(ev.Reason)
	default:
		l.outcome.Status = uint8(ev.Status)
		l.outcome.Reason = uint8(ev.Reason)
	}
	l.at, l.number = len(l.hashes), 1
	l.hashes = append(l.hashes, verify.Hash{})
	l.salts[0], l.salts[1] = l.Key.Salts(ev.InputSeq, 0)
	l.own = l.salts[0]
}

// names reports a command whose decision is about one order.
func names(c *matcher.Command) bool {
	if c.TemplateID != matcher.TemplateCommand {
		return false
	}
	switch c.Type {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.ForceFill:
		return true
	}
	return false
}

// follow takes a later event: what became of the command's order, and executed fills.
func (l *Builder) follow(ev *matcher.Event) {
	if l.traces && ev.OrderRef == l.outcome.OrderRef {
		l.outcome.Status = uint8(ev.Status)
		if ev.Kind == matcher.EventCanceled {
			l.outcome.Reason = uint8(ev.Reason)
		}
	}
	if ev.Kind != matcher.EventFilled {
		return
	}
	if l.number%2 == 0 {
		l.salts[0], l.salts[1] = l.Key.Salts(ev.InputSeq, l.number/2)
	}
	fill := ev.Fill()
	record := verify.AppendFill(l.buf[recordAt:recordAt], fill.Bytes())
	h := l.hash(&l.salts[l.number%2], record)
	l.report(ev.InputSeq, len(l.hashes), &l.salts[l.number%2], record)
	l.hashes = append(l.hashes, h)
	l.number++
}

// end hashes the record of the command, and puts it into the place that begin has kept.
func (l *Builder) end(id []byte) {
	record := verify.AppendCommand(l.buf[recordAt:recordAt], &l.command, l.outcome, id)
	l.hashes[l.at] = l.hash(&l.own, record)
	l.report(binary.LittleEndian.Uint64(l.command[8:]), l.at, &l.own, record)
}

// hash is the hash of a record that stands at its place in buf: SHA-256 of 0, salt and record. The
// 0 is that of a leaf in RFC 6962.
func (l *Builder) hash(salt *salted, record []byte) verify.Hash {
	l.buf[0] = 0
	copy(l.buf[saltAt:], salt[:])
	return sha256.Sum256(l.buf[:recordAt+len(record)])
}

// report gives a record to Seen, if it is set.
func (l *Builder) report(inputSeq uint64, index int, salt *salted, record []byte) {
	if l.Seen != nil {
		l.Seen(inputSeq, uint64(index), *salt, record)
	}
}

// Root is the root of the small tree over the records so far.
func (l *Builder) Root() verify.Hash {
	return verify.Root(l.Hashes())
}

// Head is the last command that has been taken.
func (l *Builder) Head() uint64 { return l.next - 1 }

// Hashes are those of the records of the open leaf so far. The caller may change them.
func (l *Builder) Hashes() []verify.Hash { return append([]verify.Hash(nil), l.hashes...) }

// Resume makes the command next the one that is due, in a leaf of which the records before it have
// the given hashes.
//
// hashes are copied. A verifier of an export uses it to begin in the middle of a leaf.
func (l *Builder) Resume(next uint64, hashes []verify.Hash) {
	l.first, _ = verify.LeafRange(verify.LeafOf(next))
	l.next, l.hashes = next, append(l.hashes[:0], hashes...)
}
