package verify

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// line is a command or a fill as the journal has it: 64 bytes, little endian. Offsets of the
// fields:
//
//	     command                     fill
//	 0   block length u16            trade sequence u64
//	 2   template u16                .
//	 4   schema u16, version u16     .
//	 8   input sequence u64          input sequence u64
//	16   event time i64              time i64
//	24   limit price i64             price i64
//	32   price ticks i64             order reference u32, account u32
//	40   order reference u32         security u32
//	44   account u32                 quantity i32
//	48   security u32                counter reference u32
//	52   quantity i32                side u8, unused u8, flags u16
//	56   leader epoch u32            era u16, era of the counter u16
//	60   type, side u8, flags u16    unused u32
//
// The structs are matcher.Command and matcher.Fill.
type line []byte

func (l line) u16(at int) uint16 { return binary.LittleEndian.Uint16(l[at:]) }

func (l line) u32(at int) uint32 { return binary.LittleEndian.Uint32(l[at:]) }

func (l line) u64(at int) uint64 { return binary.LittleEndian.Uint64(l[at:]) }

func (l line) i64(at int) int64 { return int64(l.u64(at)) }

// record is a record that checkRecord has accepted, so its methods need no bounds.
type record []byte

// line is the command or the fill, behind the byte of the kind.
func (r record) line() line { return line(r[1:offsetOutcome]) }

// outcome is what follows the line in a command's record; a fill has none.
func (r record) outcome() Outcome {
	return Outcome{OrderRef: binary.BigEndian.Uint32(r[offsetOutcome:]),
		Status: r[offsetOutcome+4], Reason: r[offsetOutcome+5]}
}

// clientID is the client order id of a command, empty without one.
func (r record) clientID() []byte { return r[commandBytes:] }

// inputSeq is the command that the record is of. Both kinds of lines have it at the same place.
func (r record) inputSeq() uint64 { return r.line().u64(8) }

// kind is the record's kind in a proof.
func (r record) kind() string {
	if r[0] == KindFill {
		return "fill"
	}
	return "command"
}

// commandType is the type of a command; 0 for templates without types.
func (r record) commandType() uint8 {
	if r.line().u16(2) != templateCommand {
		return 0
	}
	return r.line()[60]
}

// names reports that id is an id of the record: trd-N of a fill; of a command its sequence, and
// ord-N of an order, SW-N or SWPT-N of a contract.
//
// The record has the lower 32 bits of an order's number, which has 48. A command makes one order at
// most, so the upper bits are zero as long as the sequence has no more than 32 bits.
func (r record) names(id string) bool {
	number := func(prefix string) (uint64, bool) {
		digits, ok := strings.CutPrefix(id, prefix)
		n, err := strconv.ParseUint(digits, 10, 64)
		return n, ok && err == nil && strconv.FormatUint(n, 10) == digits
	}
	if r[0] == KindFill {
		n, ok := number("trd-")
		return ok && n == r.line().u64(0)
	}
	if n, ok := number(""); ok {
		return n == r.inputSeq()
	}
	o := r.outcome()
	n, ok := number("ord-")
	prefix := ""
	switch r.commandType() {
	case typeOrderNew:
		if r.inputSeq() <= math.MaxUint32 && n > math.MaxUint32 || n > maxOrderNumber {
			return false
		}
		return ok && n != 0 && uint32(n) == o.OrderRef && o.Reason != reasonDuplicate
	case typeSwap:
		prefix = "SW-"
	case typeSwaption:
		prefix = "SWPT-"
	default:
		return false
	}
	n, ok = number(prefix)
	return ok && n == r.inputSeq() && o.Status != statusRejected
}

// maxOrderNumber is the largest number of an order. It is that of package matcher.
const maxOrderNumber = 1<<48 - 1

// id is the id that the record is called by when it was asked for by its sequence. A refused
// booking has no contract, and the order of a DUPLICATE is that of another record: both have only
// their sequence. So has an order whose number may have upper bits, which the record has not.
func (r record) id() string {
	if r[0] == KindFill {
		return "trd-" + strconv.FormatUint(r.line().u64(0), 10)
	}
	o := r.outcome()
	switch {
	case r.commandType() == typeOrderNew && o.OrderRef != 0 && o.Reason != reasonDuplicate &&
		r.inputSeq() <= math.MaxUint32:
		return "ord-" + strconv.FormatUint(uint64(o.OrderRef), 10)
	case r.commandType() == typeSwap && o.Status != statusRejected:
		return "SW-" + strconv.FormatUint(r.inputSeq(), 10)
	case r.commandType() == typeSwaption && o.Status != statusRejected:
		return "SWPT-" + strconv.FormatUint(r.inputSeq(), 10)
	}
	return strconv.FormatUint(r.inputSeq(), 10)
}
