package store

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// keptHead opens the rows of a table; keptEnd is the last line.
//
// The text that WriteKept writes and ReadKept reads, one JSON value a line:
//
//	{"table":"sources","columns":["source","epoch","version"]}
//	["account",1700000000000,42]
//	{"rows":1}
//
// Numbers are whole and may need all 63 bits; a date is the text yyyy-MM-dd; null is null.
type keptHead struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
}

type keptEnd struct {
	// End counts the rows of all tables. Without this line a text that was cut short at a line's end
	// would look whole.
	End int `json:"rows"` // in all
}

// ErrKept reports lines that WriteKept has not written, or not all that it has written.
//
// It also stands for a table or a column that this build does not know. Nothing is stored: the
// transaction of ReadKept is rolled back with it.
var ErrKept = errors.New("not the rows of a backup")

// WriteKept writes the rows that no journal gives again as lines of JSON: for each table its name
// and columns, then an array for each row; last how many rows there were.
//
// It runs in the snapshot of t, so the tables agree with each other. Memory does not grow with the
// rows. An error of w ends it and is returned as it is; w then holds an unfinished text, which
// ReadKept refuses.
func (t *Tx) WriteKept(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	rows := 0
	if err := t.Unlimited(); err != nil { // w may be a slow client
		return err
	}
	for i := range keptTables {
		k := &keptTables[i]
		head := keptHead{Table: k.name, Columns: strings.Split(k.names(), ", ")}
		if err := enc.Encode(head); err != nil {
			return err
		}
		values := make([]any, len(k.columns))
		err := t.Query(k.selected(), func(r *Row) error {
			for c, column := range k.columns {
				values[c] = column.read(r, c)
			}
			rows++
			return enc.Encode(values)
		})
		if err != nil {
			return err
		}
	}
	if err := enc.Encode(keptEnd{rows}); err != nil {
		return err
	}
	return out.Flush()
}

// CursorRestored is the last trade of the restore that the database began with: rows up to there
// are made again, and the settlement rules that it has are those by which they were dated.
const CursorRestored = "projection.restored"

// cursorKept is 63 bits of the hash of the text that ReadKept has read.
const cursorKept = "restored.rows"

// Kept is what ReadKept has found.
type Kept int

// The answers of ReadKept.
const (
	KeptRefused Kept = iota // the database has other rows already, and keeps them
	KeptNow                 // the rows were put back
	KeptBefore              // an earlier call has put these rows back
)

// ReadKept puts the rows of WriteKept into a database that has no control source yet, leaves out
// what is about trades behind the last one, and sets CursorRestored to it. When there is a source
// already it changes nothing: an earlier call has put these rows there (KeptBefore), or the
// database is older than the restore, has been restored by itself or from another backup, or was
// filled by another member before.
//
// Everything happens in the caller's transaction. Rows are inserted in the order of the text, which
// is that of keptTables: eod_price_sets comes before eod_prices, whose foreign key refers to it.
// The caller must run it before anything seeds the tables of a source, because a source that has a
// row ends it.
func (t *Tx) ReadKept(r io.Reader, lastTrade uint64) (Kept, error) {
	filled := false
	err := t.Query("select 1 from sources union all select 1 from accounts union all "+
		"select 1 from stocks limit 1", func(*Row) error { filled = true; return nil })
	if err != nil {
		return KeptRefused, err
	}
	sum := sha256.New()
	if filled {
		if _, err := io.Copy(sum, r); err != nil {
			return KeptRefused, err
		}
		return t.keptBefore(keptCursors(sum, lastTrade))
	}
	in := keptReader{t: t, lastTrade: int64(lastTrade), there: map[markSet]bool{}}
	if err := t.Query("select cast(session_date as text), version from eod_price_sets",
		func(r *Row) error { in.there[markSet{r.Text(0), r.Int64(1)}] = true; return nil },
	); err != nil {
		return KeptRefused, err
	}
	lines := bufio.NewReaderSize(io.TeeReader(r, sum), 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && in.ended:
			return KeptNow, errors.Join(t.beginOutboxes(), t.SetCursors(keptCursors(sum, lastTrade)...))
		case err != nil && !errors.Is(err, io.EOF):
			return KeptRefused, err
		case err != nil || in.ended:
			return KeptRefused, fmt.Errorf("store: line %d: %w", in.line+1, ErrKept)
		}
		in.line++
		if err := in.take(line); err != nil {
			return KeptRefused, fmt.Errorf("store: line %d: %w", in.line, err)
		}
	}
}

// keptCursors are what a database remembers of the rows that were put back.
func keptCursors(text hash.Hash, lastTrade uint64) []Cursor {
	return []Cursor{{CursorRestored, lastTrade},
		{cursorKept, binary.BigEndian.Uint64(text.Sum(nil)) >> 1}}
}

// keptBefore is KeptBefore when the database remembers these rows.
func (t *Tx) keptBefore(of []Cursor) (Kept, error) {
	for _, want := range of {
		if value, err := t.Cursor(want.Name); err != nil || value != want.Value {
			return KeptRefused, err
		}
	}
	return KeptBefore, nil
}

// beginOutboxes notes the last version of each source as one that no stream will have: what a
// source publishes next follows it.
//
// The rows are superseded, as OutboxRow describes it, with an empty payload. They are
// what Outbox compares the first new version with, so that no gap is reported.
func (t *Tx) beginOutboxes() error {
	_, err := t.Exec("insert into outbox (source, version, epoch, payload, created_at, " +
		"published_at) " +
		"select source, version, epoch, '', 0, 0 from sources where version > 0")
	return err
}

// keptReader is one ReadKept.
type keptReader struct {
	t         *Tx
	lastTrade int64
	// table is the one of the last head line; nil before the first.
	table *keptTable
	args  []any // of the rows of table that are not in the database yet
	line  int
	// rows counts the lines of rows, also those left out for lastTrade: the end line counts them too.
	rows int
	// there are the sets of closing marks that the database had before: they stay as they are, so
	// none of their marks is taken.
	there map[markSet]bool
	// ended is set by an end line with the right count. Any line behind it is ErrKept.
	ended bool
}

// markSet names a set of closing marks, by session date and version.
type markSet struct {
	session string
	version int64
}

// keptBatch is how many rows one statement inserts.
//
// With the 18 columns of recon_repaired_rows, the widest table, that is 576 parameters.
const keptBatch = 32

// flush puts the rows that were read into the database.
//
// It must run before the table changes, and before the end line is accepted.
func (in *keptReader) flush() error {
	if len(in.args) == 0 {
		return nil
	}
	_, err := in.t.Exec(in.table.inserted(len(in.args)), in.args...)
	in.args = in.args[:0]
	return err
}

// take reads one line: a row, the head of a table, or the end. A table must have exactly the
// columns that this build keeps, in the same order: values are matched by position.
func (in *keptReader) take(line []byte) error {
	if line[0] == '[' {
		return in.row(line)
	}
	var head struct {
		keptHead
		Rows *int `json:"rows"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	if err := in.flush(); err != nil {
		return err
	}
	if head.Rows != nil {
		if in.ended = *head.Rows == in.rows; !in.ended {
			return fmt.Errorf("%d rows, want %d: %w", in.rows, *head.Rows, ErrKept)
		}
		return nil
	}
	for i := range keptTables {
		if k := &keptTables[i]; k.name == head.Table && k.names() == strings.Join(head.Columns, ", ") {
			in.table = k
			return nil
		}
	}
	return fmt.Errorf("table %.60q %.200q is not known: %w", head.Table, head.Columns, ErrKept)
}

// row collects one row. A row behind lastTrade is dropped after its limit column has been read; the
// values before it are taken back out of args. Numbers from FirstExternal on are of bookings from
// outside, which are behind no trade of the journal.
func (in *keptReader) row(line []byte) error {
	var values []json.RawMessage
	if err := json.Unmarshal(line, &values); err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	if in.table == nil || len(values) != len(in.table.columns) {
		return ErrKept
	}
	in.rows++
	begin := len(in.args)
	for i := range in.table.columns {
		c := &in.table.columns[i]
		arg, err := c.argument(in.t.dialect, values[i])
		if err != nil {
			return fmt.Errorf("table %s column %s: %w", in.table.name, c.name, err)
		}
		in.args = append(in.args, arg)
		if n, ok := arg.(int64); ok && c.name == in.table.limit && n > in.lastTrade &&
			uint64(n) < FirstExternal {
			in.args = in.args[:begin]
			return nil
		}
	}
	if in.table.ofSet {
		session, err := valueOf[string](values[0])
		if err != nil {
			return err
		}
		if in.there[markSet{session.(string), in.args[begin+1].(int64)}] {
			in.args = in.args[:begin]
			return nil
		}
	}
	if len(in.args) == keptBatch*len(in.table.columns) {
		return in.flush()
	}
	return nil
}

// SettleForced settles those of the trades lo <= trade_seq <= hi that were settled by hand before
// their rows were made again.
//
// The journal gives the trades again as Processing. settlement_forces tells which of them an
// operator had settled. updated_at never moves backwards. It may run again: a settled row does not
// match.
func (t *Tx) SettleForced(lo, hi uint64, nowMillis int64) (rows int64, err error) {
	return t.Exec("update trades set status = 'Settled', updated_at = "+
		"case when updated_at > $1 then updated_at else $1 end "+
		"where status = 'Processing' and trade_seq in "+
		"(select trade_seq from settlement_forces where trade_seq between $2 and $3)",
		nowMillis, lo, hi)
}
