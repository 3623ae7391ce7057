package orderflow

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// LobsterOptions name the accounts of a LOBSTER replay. The two accounts must differ, otherwise
// self-trade prevention would rightly prevent the executions.
type LobsterOptions struct {
	// Security is the ticker sent to the venue; the files' own is in their names.
	Security string
	// Maker is the account of every resting order.
	Maker uint32
	// Taker is the account of every execution's aggressor.
	Taker uint32
	// Prefix opens every client order id, so that a file can be replayed twice. What follows is "o"
	// and LOBSTER's id, "seed" and a number, or "x" and the event's number.
	Prefix string
}

// Event is one LOBSTER message as orders. It belongs to the Lobster, whose next call overwrites it.
type Event struct {
	// Number is that of the message, from 1; the first one is the seed of the book.
	Number int
	// Nanos is since midnight, as published.
	Nanos int64
	// Steps are in the order in which they must be sent; often one, none for a hidden execution.
	Steps []Step
	// Edge is the number of first steps that come from rule 4, from the book file.
	Edge int
	// Want is the published book after the steps: the best Levels of each side, fewer if there are no
	// more.
	Want Depth
}

// LobsterStats counts what a translation did, in addition to the events. The smaller SeedLevels,
// EdgeSeeds and EdgeRemovals are against Events, the more of the books is the venue's own work.
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
	options LobsterOptions
	// messages and rows are read in step: row k is the book after message k.
	messages *lineReader
	rows     *lineReader
	// columns is the number of columns of a row, four for each level; fixed by the first row.
	columns int
	// book is what the venue has, as far as the translation believes.
	book ladder
	// byID has the orders that messages added and may name again, by LOBSTER's id.
	byID map[uint64]*resting
	// row is the last row read, previous the one before.
	row      Depth
	previous Depth
	stats    LobsterStats
	// event is what Next returns; its Steps are used again.
	event Event
	// seeds is the number of seeds issued so far: part of a seed's client order id.
	seeds int
}

// NewLobster returns a translator of the two files, which it reads as it goes and does not close.
// Without a security and two different accounts it is an error.
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
// <TICKER>_<date>..._message_<levels>.csv and the same with orderbook. No pair, or several, is an
// error: which day was meant could not be known.
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
//
// An error names the file and its line: a line that is malformed, files of different lengths, or a
// message that no book could have had (an order added twice, an execution away from the touch). The
// translation cannot go on after it.
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
