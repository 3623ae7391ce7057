package orderflow

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"posttrade/matcher"
)

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

// lobsterToPx turns LOBSTER's price x 10000 into a price x 1e6.
const lobsterToPx = 100

// message is one line of a message file.
type message struct {
	nanos int64 // since midnight
	kind  int
	id    uint64
	qty   int64
	px    int64 // x 1e6
	side  matcher.Side
}

// LobsterOptions name the accounts of a LOBSTER replay. The two accounts must differ, otherwise
// self-trade prevention would rightly prevent the executions.
type LobsterOptions struct {
	Security string // the ticker sent to the venue
	Maker    uint32 // account of every resting order
	Taker    uint32 // account of every execution's aggressor
	Prefix   string // opens every client order id, so that a file can be replayed twice
}

// Event is one LOBSTER message as orders.
type Event struct {
	Number int    // of the message, from 1; the first is the seed of the book
	Nanos  int64  // since midnight, as published
	Steps  []Step // in order; often one, none for a hidden execution
	Edge   int    // number of first steps that come from rule 4, from the book file
	Want   Depth  // the published book after them
}

// LobsterStats counts what a translation did, in addition to the events.
type LobsterStats struct {
	Events       int // read so far, the first included
	SeedLevels   int // levels of row 1 sent as seeds
	EdgeSeeds    int // quantities that came into sight from beyond the window (rule 4)
	EdgeRemovals int // quantities that vanished beyond the window (rule 4)
	Unknown      int // messages about ids that no message added (rule 3)
	OutOfTurn    int // executions of an order that was not the oldest at its price
	Silent       int // messages that move no visible order
}

// Lobster translates a message file and its book file, event by event, in memory that the resting
// orders bound.
type Lobster struct {
	options  LobsterOptions
	messages *lineReader
	rows     *lineReader
	columns  int // of a row, fixed by the first
	book     ladder
	byID     map[uint64]*resting
	row      Depth // the last row read
	previous Depth // the one before
	stats    LobsterStats
	event    Event
	seeds    int // issued so far: part of a seed's client order id
}

// NewLobster returns a translator of the two files.
func NewLobster(messages, book io.Reader, o LobsterOptions) (*Lobster, error) {
	if o.Security == "" || o.Maker == 0 || o.Taker == 0 || o.Maker == o.Taker {
		return nil, fmt.Errorf(
			"orderflow: lobster needs a security and two different accounts, got %q %d %d",
			o.Security, o.Maker, o.Taker)
	}
	return &Lobster{
		options: o, messages: newLineReader("message", messages), rows: newLineReader("orderbook", book),
		byID: map[uint64]*resting{},
	}, nil
}

// FindLobster returns the ticker and the two file names of the one LOBSTER pair in dir:
// <TICKER>_<date>..._message_<levels>.csv and the same with orderbook.
func FindLobster(dir fs.FS) (ticker, messageFile, bookFile string, err error) {
	found, err := fs.Glob(dir, "*_message_*.csv")
	if err != nil {
		return "", "", "", err
	}
	if len(found) != 1 {
		return "", "", "", fmt.Errorf("orderflow: %d files match *_message_*.csv, want 1", len(found))
	}
	messageFile = found[0]
	bookFile = strings.Replace(messageFile, "_message_", "_orderbook_", 1)
	if _, err := fs.Stat(dir, bookFile); err != nil {
		return "", "", "", fmt.Errorf("orderflow: %s has no %s beside it", messageFile, bookFile)
	}
	ticker, _, _ = strings.Cut(path.Base(messageFile), "_")
	return ticker, messageFile, bookFile, nil
}

// Stats returns the counts up to the last event.
func (l *Lobster) Stats() LobsterStats { return l.stats }

// Security returns the ticker of the options.
func (l *Lobster) Security() string { return l.options.Security }

// Levels returns how many levels a side the book file has; 0 before the first event.
func (l *Lobster) Levels() int { return l.columns / 4 }

// Next returns the next event, or io.EOF. The event is overwritten by the next call.
func (l *Lobster) Next() (*Event, error) {
	m, err := l.readMessage()
	if err == io.EOF {
		if _, more := l.rows.next(); more == nil {
			return nil, l.rows.errorf("more rows than messages")
		} else if more != io.EOF {
			return nil, more
		}
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	if err := l.readRow(); err != nil {
		return nil, err
	}
	l.stats.Events++
	l.event = Event{Number: l.stats.Events, Nanos: m.nanos, Steps: l.event.Steps[:0], Want: l.row}
	if l.stats.Events == 1 {
		if err := l.seedBook(m); err != nil {
			return nil, err
		}
		return &l.event, nil
	}
	l.openWindow(m)
	l.event.Edge = len(l.event.Steps)
	if err := l.translate(m); err != nil {
		return nil, err
	}
	return &l.event, nil
}

// readMessage parses "34200.004241176,1,16113575,18,5853300,1".
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

// visible reports whether the message changes an order that the book shows.
func (m *message) visible() bool { return m.kind <= lobsterExecution }

const (
	maxQty = 1<<31 - 1
	// maxLevelQty bounds a level: a few hundred of the largest orders.
	maxLevelQty = 1 << 40
	// maxLobsterPx is below LOBSTER's placeholder for an empty level.
	maxLobsterPx = 9_999_999_998
	emptyAsk     = "9999999999"
	emptyBid     = "-9999999999"
)

// readRow parses ask price, ask size, bid price, bid size, ... into l.row.
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

// appendLevel parses one level. Empty levels are skipped and must be the last ones.
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

var errNumber = errors.New("not a number in range")

func parsePositive(s string, limit int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > limit {
		return 0, errNumber
	}
	return n, nil
}

// lineReader reads lines and counts them, for error messages.
type lineReader struct {
	file  string
	lines *bufio.Scanner
	line  int
}

// maxLine bounds a line: a row of 200 levels fits many times.
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

func (r *lineReader) errorf(format string, args ...any) error {
	return fmt.Errorf("orderflow: %s file line %d: %s", r.file, r.line, fmt.Sprintf(format, args...))
}
