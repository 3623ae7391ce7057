package quorum

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"posttrade/journal"
	"posttrade/matcher"
)

// An entry of the agreed log is one of these kinds; the number is stored.
const (
	entryGenesis  = 1 // the text of the genesis record; the first one counts
	entryLead     = 2 // the leader from here on, and where its services listen
	entryCommands = 3 // commands, in order
)

// entryVersion is the format of every kind. A member meets another version when it is older than
// the leader: it stops, and the operator upgrades it.
const entryVersion = 1

// The limits of one entry: small enough that a follower answers soon, large enough that many
// commands share its sync.
const (
	maxCommands = 4096
	maxIDs      = maxCommands * (journal.MaxClientID + 4)
)

// commandsHeader is the bytes of a commands entry before its client ids. The entry, little endian:
//
//	0    kind u8 = 3, version u8 = 1, two zero bytes
//	4    commands u32
//	8    author u64
//	16   number u64
//	24   bytes of client ids u32
//	28   client ids; zeros up to a multiple of 8; the commands, 64 bytes each
const commandsHeader = 28

// ErrEntry reports an entry of the log that cannot be read.
var ErrEntry = errors.New("unreadable entry")

// author names one run of one member's process. Only that process knows which callers wait for the
// commands that it has put into the log. It is drawn at random when the process opens the node.
type author uint64

// commandsEntry is a decoded commands entry. ids lies in the encoded entry; commands is a copy.
type commandsEntry struct {
	// Together with number it says which proposal of which process this is.
	author   author
	number   uint64 // of the author's entries, ascending from 1
	count    int
	ids      []byte // pairs of: uvarint distance from the pair before, length u8, text
	commands []matcher.Command
}

// appendCommands encodes an entry of the commands of two pieces, which are one run of a ring that
// wraps around. id returns the client id of a command, nil for none. The commands are copied as
// they are: their InputSeq is the submitter's correlation id, which has a meaning for the author
// alone.
//
// The bytes: the header (commandsHeader), the client ids, zeros up to a multiple of 8, the 64-byte
// commands. One allocation.
func appendCommands(b []byte, by author, number uint64, first, second []matcher.Command,
	id func(ref uint64) []byte) []byte {
	count := len(first) + len(second)
	b = slices.Grow(b, commandsHeader+count*(matcher.CommandBytes+8))
	b = append(b, entryCommands, entryVersion, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(count))
	b = binary.LittleEndian.AppendUint64(b, uint64(by))
	b = binary.LittleEndian.AppendUint64(b, number)
	b = append(b, 0, 0, 0, 0)
	last := 0
	b, last = appendIDs(b, first, 0, last, id)
	b, _ = appendIDs(b, second, len(first), last, id)
	binary.LittleEndian.PutUint32(b[commandsHeader-4:], uint32(len(b)-commandsHeader))
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	b = append(b, recordBytes(first)...)
	return append(b, recordBytes(second)...)
}

// appendIDs appends the client ids of commands. The first command is the at-th of the entry. last
// is the place of the previous id, and the return value is the place of the last id here.
func appendIDs(b []byte, commands []matcher.Command, at, last int,
	id func(ref uint64) []byte) ([]byte, int) {
	for i := range commands {
		if text := id(commands[i].InputSeq); len(text) > 0 {
			b = binary.AppendUvarint(b, uint64(at+i-last))
			b = append(b, byte(len(text)))
			b = append(b, text...)
			last = at + i
		}
	}
	return b, last
}

// recordBytes is the memory of commands: their wire form on a little-endian machine.
func recordBytes(commands []matcher.Command) []byte {
	if len(commands) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&commands[0])), len(commands)*matcher.CommandBytes)
}

// decodeCommands reads a commands entry. It checks every record, so that an older member stops at a
// record that it does not know, and does not decide it differently. Errors are ErrEntry. Sizes are
// compared with what is there before anything is allocated.
func decodeCommands(b []byte) (e commandsEntry, err error) {
	if len(b) < commandsHeader || b[2] != 0 || b[3] != 0 {
		return e, fmt.Errorf("commands bytes=%d: %w", len(b), ErrEntry)
	}
	e.count = int(binary.LittleEndian.Uint32(b[4:]))
	e.author, e.number = author(binary.LittleEndian.Uint64(b[8:])), binary.LittleEndian.Uint64(b[16:])
	ids := int(binary.LittleEndian.Uint32(b[24:]))
	records := (commandsHeader + ids + 7) &^ 7
	if e.count < 1 || e.count > maxCommands || ids > maxIDs ||
		len(b) != records+e.count*matcher.CommandBytes {
		return e, fmt.Errorf("commands bytes=%d count=%d ids=%d: %w", len(b), e.count, ids, ErrEntry)
	}
	e.ids = b[commandsHeader : commandsHeader+ids]
	if err := checkIDs(e.ids, e.count); err != nil {
		return e, err
	}
	// A copy: the library shares the entry's memory, which need not be aligned.
	e.commands = make([]matcher.Command, e.count)
	copy(recordBytes(e.commands), b[records:])
	for i := range e.commands {
		if err := e.commands[i].Verify(); err != nil {
			return e, fmt.Errorf("command %d of %d: %w: %w", i, e.count, ErrEntry, err)
		}
	}
	return e, nil
}

// checkIDs reads the client ids once, so that nextID need not check for damage.
func checkIDs(b []byte, count int) error {
	at, first := uint64(0), true
	for len(b) > 0 {
		distance, n := binary.Uvarint(b)
		if n <= 0 || n == len(b) || distance >= uint64(count) || (distance == 0 && !first) {
			return fmt.Errorf("client ids: %w", ErrEntry)
		}
		size := int(b[n])
		at, first = at+distance, false
		if at >= uint64(count) || size == 0 || size > journal.MaxClientID || n+1+size > len(b) {
			return fmt.Errorf("client id of command %d: %w", at, ErrEntry)
		}
		b = b[n+1+size:]
	}
	return nil
}

// nextID removes the first client id from ids that checkIDs has accepted. distance is in commands
// from the one before, from 0 for the first.
func nextID(b []byte) (distance int, id, rest []byte) {
	d, n := binary.Uvarint(b)
	end := n + 1 + int(b[n])
	return int(d), b[n+1 : end : end], b[end:]
}

// leaderEntry is what a new leader puts into the log first: when it and everything before it are
// applied, the leader knows all that was ever agreed.
type leaderEntry struct {
	Author   author            `json:"author"`
	Member   string            `json:"member"`
	ID       string            `json:"id"`
	Services map[string]string `json:"services"` // where each service of the member listens
}

// append encodes the entry: kind, version, JSON.
func (l leaderEntry) append(b []byte) ([]byte, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("lead: %w", err)
	}
	return append(append(b, entryLead, entryVersion), text...), nil
}

func decodeLeaderEntry(b []byte) (l leaderEntry, err error) {
	if err := json.Unmarshal(b[2:], &l); err != nil {
		return l, fmt.Errorf("lead: %w: %w", ErrEntry, err)
	}
	return l, nil
}

// appendGenesis encodes the entry of a genesis text.
func appendGenesis(b, text []byte) []byte {
	return append(append(b, entryGenesis, entryVersion), text...)
}

// kindOf is the kind of an entry. ErrEntry for an entry of another version: this member is older
// than the leader.
func kindOf(b []byte) (byte, error) {
	if len(b) < 2 {
		return 0, fmt.Errorf("bytes=%d: %w", len(b), ErrEntry)
	}
	if b[1] != entryVersion {
		return 0, fmt.Errorf("kind=%d version=%d, this member knows %d, upgrade it: %w", b[0], b[1],
			entryVersion, ErrEntry)
	}
	return b[0], nil
}
