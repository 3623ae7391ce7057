package feed

import (
	"math"
	"strconv"
	"strings"
)

// Position is a place in the stream: behind the event N of the command InputSeq. N is 0 before its
// first event. The zero Position is the beginning of the history. It means the same on every member
// and after every restart.
type Position struct {
	InputSeq uint64
	N        uint32
}

// whole is the N behind every event of a command. No command has as many events.
const whole = math.MaxInt32

// After is the position behind everything of a command.
func After(inputSeq uint64) Position { return Position{InputSeq: inputSeq, N: whole} }

// before reports that p is before q.
func (p Position) before(q Position) bool {
	return p.InputSeq < q.InputSeq || p.InputSeq == q.InputSeq && p.N < q.N
}

// ParseID reads the id of an event: <inputSeq>.<n>, or <inputSeq>.s of a snapshot, without a sign
// or leading zeros. ok is false for any other text.
func ParseID(id string) (p Position, snapshot, ok bool) {
	seq, n, found := strings.Cut(id, ".")
	if !found {
		return p, false, false
	}
	if p.InputSeq, ok = digits(seq, 63); !ok {
		return p, false, false
	}
	if n == "s" {
		p.N = whole
		return p, true, true
	}
	number, ok := digits(n, 31)
	p.N = uint32(number)
	return p, false, ok
}

// digits reads a number of so many bits without sign or leading zeros.
func digits(text string, bits int) (uint64, bool) {
	if text == "" || text[0] == '+' || text[0] == '-' || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, bits)
	return n, err == nil
}

// AppendID appends the id of an event, or of the place behind a whole command. ParseID reads it
// back. A client that goes on later sends the last id that it has got.
func AppendID(b []byte, p Position) []byte {
	b = strconv.AppendUint(b, p.InputSeq, 10)
	if p.N == whole {
		return append(b, ".s"...)
	}
	return strconv.AppendUint(append(b, '.'), uint64(p.N), 10)
}
