package verify

import (
	"encoding/binary"
	"fmt"
)

// The kinds of records: their first byte.
const (
	KindCommand = 1
	KindFill    = 2
)

// LeafCommands is how many commands a full leaf covers. It is part of the format: another number
// gives another tree.
const LeafCommands = 256

// The sizes of records and leaves, in bytes. A command's record is kind, line, outcome (8), client
// order id; a fill's is kind and line. The numbers that are added here are big endian, the lines as
// the journal has them are little endian.
const (
	lineBytes     = 64 // a command or a fill as the journal has it
	commandBytes  = 1 + lineBytes + 8
	fillBytes     = 1 + lineBytes
	LeafBytes     = 48
	maxClientID   = 64
	MaxRecord     = commandBytes + maxClientID
	offsetOutcome = 1 + lineBytes
)

// Outcome is what a command's record says of its decision, in 8 bytes with the length of the id.
type Outcome struct {
	// OrderRef is that of the order that the command made or names, 0 for none: the lower 32 bits of
	// the order's number.
	OrderRef uint32
	// Status is the matcher.OrderStatus of that order after the command, 2 for a market trade; 4,
	// REJECTED, when the command was refused.
	Status uint8
	// Reason is the matcher.RiskReason for which it was refused, or its order cancelled by another
	// than its owner; else 0.
	Reason uint8
}

// AppendCommand appends the record of a command and its decision.
//
// The client order id is 0 to 64 bytes, behind its length.
func AppendCommand(b []byte, command *[lineBytes]byte, o Outcome, clientID []byte) []byte {
	b = append(append(b, KindCommand), command[:]...)
	b = binary.BigEndian.AppendUint32(b, o.OrderRef)
	b = append(b, o.Status, o.Reason)
	b = binary.BigEndian.AppendUint16(b, uint16(len(clientID)))
	return append(b, clientID...)
}

// AppendFill appends the record of one side of an execution.
func AppendFill(b []byte, fill *[lineBytes]byte) []byte {
	return append(append(b, KindFill), fill[:]...)
}

// Leaf is what a leaf of the big tree says: 48 bytes.
type Leaf struct {
	First, Count uint64 // the first command and how many; the genesis record is 0, 1
	Root         Hash   // of the small tree over its records
}

// Append appends the leaf's 48 bytes.
func (l *Leaf) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, l.First)
	b = binary.BigEndian.AppendUint64(b, l.Count)
	return append(b, l.Root[:]...)
}

// ParseLeaf reads the data of the leaf of an index. There is only one first command and one number
// that it can have.
func ParseLeaf(index uint64, data []byte) (l Leaf, err error) {
	if len(data) != LeafBytes {
		return l, fmt.Errorf("a leaf of %d bytes, want %d", len(data), LeafBytes)
	}
	l.First, l.Count = binary.BigEndian.Uint64(data), binary.BigEndian.Uint64(data[8:])
	copy(l.Root[:], data[16:])
	if first, count := LeafRange(index); l.First != first || l.Count != count {
		return l, fmt.Errorf("leaf %d covers %d commands from %d on, want %d from %d on", index, l.Count,
			l.First, count, first)
	}
	return l, nil
}

// LeafRange is the first command of a leaf and how many commands it covers. Leaf 0 is the genesis
// record: sequence 0, count 1.
func LeafRange(index uint64) (first, count uint64) {
	if index == 0 {
		return 0, 1
	}
	return (index-1)*LeafCommands + 1, LeafCommands
}

// LeafOf is the index of the leaf that covers a command.
func LeafOf(inputSeq uint64) uint64 {
	if inputSeq == 0 {
		return 0
	}
	return (inputSeq-1)/LeafCommands + 1
}

// checkRecord returns what is wrong with the form of a record: its kind and its length. After it,
// every offset that package verify reads is inside the record.
func checkRecord(record []byte) error {
	switch {
	case len(record) == 0:
		return fmt.Errorf("the record is empty")
	case record[0] == KindFill && len(record) == fillBytes:
		return nil
	case record[0] == KindCommand && len(record) >= commandBytes:
		n := int(binary.BigEndian.Uint16(record[commandBytes-2:]))
		if n > maxClientID || len(record) != commandBytes+n {
			return fmt.Errorf("the record has %d bytes behind a client order id of %d",
				len(record)-commandBytes, n)
		}
		return nil
	}
	return fmt.Errorf("the record has kind %d and %d bytes", record[0], len(record))
}
