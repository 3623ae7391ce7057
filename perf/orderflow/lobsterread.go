package orderflow

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"posttrade/matcher"
)

// readMessage parses "34200.004241176,1,16113575,18,5853300,1": time, type, order id, size, price,
// direction.
func (l *Lobster) readMessage() (message, error) {
	line, err := l.messages.next()
	if err != nil {
		return message{}, err
	}
	cell := strings.Split(line, ",")
	if len(cell) != 6 && len(cell) != 7 { // newer files may carry the participant
		return message{}, l.messages.errorf("%d columns, want 6", len(cell))
	}
	var m message
	if m.nanos, err = parseSeconds(cell[0]); err != nil {
		return message{}, l.messages.errorf("time %q", cell[0])
	}
	if m.kind, err = strconv.Atoi(cell[1]); err != nil || m.kind < lobsterAdd || m.kind > lobsterHalt {
		return message{}, l.messages.errorf("type %q", cell[1])
	}
	if m.id, err = strconv.ParseUint(cell[2], 10, 64); err != nil {
		return message{}, l.messages.errorf("order id %q", cell[2])
	}
	if m.visible() {
		if m.qty, err = parsePositive(cell[3], maxQty); err != nil {
			return message{}, l.messages.errorf("size %q", cell[3])
		}
		if m.px, err = parsePositive(cell[4], maxLobsterPx); err != nil {
			return message{}, l.messages.errorf("price %q", cell[4])
		}
		m.px *= lobsterToPx
	}
	switch cell[5] {
	case "1":
		m.side = matcher.Buy
	case "-1":
		m.side = matcher.Sell
	default:
		return message{}, l.messages.errorf("direction %q", cell[5])
	}
	return m, nil
}

// visible reports whether the message changes an order that the book shows. Others may have any
// size and price, such as the codes of a halt.
func (m *message) visible() bool { return m.kind <= lobsterExecution }

// message is one line of a message file. Of a message that moves no visible order qty and px are 0.
type message struct {
	// nanos is since midnight.
	nanos int64
	// kind is one of the message types.
	kind int
	// id is the exchange's reference of the order.
	id  uint64
	qty int64
	// px is x 1e6. side is that of the resting order, also in an execution.
	px   int64
	side matcher.Side
}

// The message types of LOBSTER.
const (
	lobsterAdd           = 1
	lobsterPartialCancel = 2
	lobsterDelete        = 3
	lobsterExecution     = 4
	lobsterHidden        = 5
	lobsterAuction       = 6
	lobsterHalt          = 7
)

// lobsterToPx turns LOBSTER's price (dollars x 10,000) into a price x 1e6.
const lobsterToPx = 100

// The limits of what the files may have.
const (
	// maxQty is the largest quantity of an order at the venue.
	maxQty = 1<<31 - 1
	// maxLevelQty bounds a level: a few hundred of the largest orders.
	maxLevelQty = 1 << 40
	// maxLobsterPx is below LOBSTER's placeholder for an empty level.
	maxLobsterPx = 9_999_999_998
	emptyAsk     = "9999999999"
	emptyBid     = "-9999999999"
)

// readRow parses ask price, ask size, bid price, bid size, ... into l.row, and keeps the row
// before. Each row has new slices, because an event hands them out.
func (l *Lobster) readRow() error {
	line, err := l.rows.next()
	if err == io.EOF {
		return l.rows.errorf("fewer rows than messages")
	}
	if err != nil {
		return err
	}
	cell := strings.Split(line, ",")
	if l.columns == 0 && len(cell)%4 == 0 {
		l.columns = len(cell)
	}
	if len(cell) != l.columns {
		return l.rows.errorf("%d columns, want %s", len(cell), map[bool]string{true: "a multiple of 4",
			false: strconv.Itoa(l.columns)}[l.columns == 0])
	}
	l.previous, l.row = l.row, Depth{}
	for i := 0; i < len(cell); i += 4 {
		if l.row.Asks, err = l.appendLevel(l.row.Asks, cell[i], cell[i+1], emptyAsk,
			matcher.Sell); err != nil {
			return err
		}
		if l.row.Bids, err = l.appendLevel(l.row.Bids, cell[i+2], cell[i+3], emptyBid,
			matcher.Buy); err != nil {
			return err
		}
	}
	return nil
}

// appendLevel parses one level. Empty levels are skipped. A level that is not worse than the one
// before it is an error.
func (l *Lobster) appendLevel(levels []Level, px, qty, empty string,
	side matcher.Side) ([]Level, error) {
	if px == empty && qty == "0" {
		return levels, nil
	}
	var level Level
	var err error
	if level.Px, err = parsePositive(px, maxLobsterPx); err != nil {
		return nil, l.rows.errorf("price %q", px)
	}
	level.Px *= lobsterToPx
	if level.Qty, err = parsePositive(qty, maxLevelQty); err != nil {
		return nil, l.rows.errorf("size %q", qty)
	}
	if n := len(levels); n > 0 && !better(side, levels[n-1].Px, level.Px) {
		return nil, l.rows.errorf("price %q is not worse than the level before it", px)
	}
	return append(levels, level), nil
}

// parseSeconds reads seconds with up to nine decimals into nanoseconds.
func parseSeconds(s string) (int64, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseUint(whole, 10, 32)
	if err != nil || len(fraction) > 9 {
		return 0, errNumber
	}
	nanos, err := strconv.ParseUint((fraction + "000000000")[:9], 10, 32)
	if err != nil {
		return 0, errNumber
	}
	return int64(seconds)*1e9 + int64(nanos), nil
}

// errNumber is the error of every number here; the caller adds file, line and text.
var errNumber = errors.New("not a number in range")

// parsePositive reads a whole number from 1 to limit.
func parsePositive(s string, limit int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > limit {
		return 0, errNumber
	}
	return n, nil
}

// lineReader reads lines and counts them, for error messages. file is the word that they use for
// it.
type lineReader struct {
	file  string
	lines *bufio.Scanner
	line  int
}

// maxLine bounds a line in bytes: a row of 200 levels fits many times. A longer line is an error.
const maxLine = 1 << 16

func newLineReader(file string, r io.Reader) *lineReader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	return &lineReader{file: file, lines: s}
}

// next returns the next line without its end, or io.EOF.
func (r *lineReader) next() (string, error) {
	r.line++
	if r.lines.Scan() {
		return strings.TrimSuffix(r.lines.Text(), "\r"), nil
	}
	if err := r.lines.Err(); err != nil {
		return "", r.errorf("%v", err)
	}
	return "", io.EOF
}

// errorf is an error about the line that was read last.
func (r *lineReader) errorf(format string, args ...any) error {
	return fmt.Errorf("orderflow: %s file line %d: %s", r.file, r.line, fmt.Sprintf(format, args...))
}
