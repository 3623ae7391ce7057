package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A column of a table that is kept. Its kind says how its values are read and written in both
// databases.
type keptColumn struct {
	name string
	kind keptKind
}

type keptKind byte

const (
	keptInt keptKind = iota
	keptText
	keptBool
	keptDate
)

type keptTable struct {
	name    string
	columns []keptColumn
	order   string
	limit   string // the column that a restore to an earlier trade limits; "": none
}

// keptTables are the tables whose rows no journal gives again. Everything else in the database is
// made from the journal: trades, cursors, what reconciliation knows. The outbox is not kept: a
// restored source begins a new epoch, and replicas take its snapshot.
var keptTables = []keptTable{
	{name: "sources", order: "source",
		columns: []keptColumn{{"source", keptText}, {"epoch", keptInt}, {"version", keptInt}}},
	{name: "source_keys", order: "source",
		columns: []keptColumn{{"source", keptText}, {"signing_key", keptText}}},
	{name: "accounts", order: "id",
		columns: []keptColumn{{"id", keptInt}, {"display_name", keptText}, {"enabled", keptBool},
			{"version", keptInt}, {"enabled_version", keptInt}}},
	{name: "stocks", order: "ticker",
		columns: []keptColumn{{"ticker", keptText}, {"company_name", keptText}, {"enabled", keptBool},
			{"halted", keptBool}, {"version", keptInt}, {"enabled_version", keptInt},
			{"halted_version", keptInt}}},
	{name: "settlement_forces", order: "trade_seq", limit: "trade_seq",
		columns: []keptColumn{{"trade_seq", keptInt}, {"forced_at", keptInt}}},
	{name: "eod_price_sets", order: "session_date, version",
		columns: []keptColumn{{"session_date", keptDate}, {"version", keptInt}, {"marks", keptInt},
			{"sha256", keptText}, {"published_at", keptInt}}},
	{name: "eod_prices", order: "session_date, version, security",
		columns: []keptColumn{{"session_date", keptDate}, {"version", keptInt}, {"security", keptText},
			{"price", keptInt}, {"quality", keptText}}},
}

func (k *keptTable) names() string {
	var names []string
	for _, c := range k.columns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// keptHead opens the rows of a table; keptEnd is the last line.
type keptHead struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
}

type keptEnd struct {
	End int `json:"rows"` // in all
}

// ErrKept reports lines that WriteKept has not written, or not all that it has written.
var ErrKept = errors.New("not the rows of a backup")

// WriteKept writes the rows that no journal gives again as lines of JSON: for each table its name
// and columns, then an array for each row; last how many rows there were.
func (t *Tx) WriteKept(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	rows := 0
	for i := range keptTables {
		k := &keptTables[i]
		head := keptHead{Table: k.name, Columns: strings.Split(k.names(), ", ")}
		if err := enc.Encode(head); err != nil {
			return err
		}
		values := make([]any, len(k.columns))
		err := t.Query("select "+k.names()+" from "+k.name+" order by "+k.order, func(r *Row) error {
			for c, column := range k.columns {
				values[c] = column.kind.read(r, c)
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

func (k keptKind) read(r *Row, i int) any {
	switch k {
	case keptText:
		return r.Text(i)
	case keptBool:
		return r.Bool(i)
	case keptDate:
		return r.Date(i).String()
	}
	return r.Int64(i)
}

// argument reads a value of a line.
func (k keptKind) argument(value json.RawMessage) (any, error) {
	switch k {
	case keptText:
		var s *string
		if err := json.Unmarshal(value, &s); err != nil || s == nil {
			return nil, ErrKept
		}
		return *s, nil
	case keptBool:
		var b *bool
		if err := json.Unmarshal(value, &b); err != nil || b == nil {
			return nil, ErrKept
		}
		return *b, nil
	case keptDate:
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, ErrKept
		}
		return ParseDate(s)
	}
	var n *int64
	if err := json.Unmarshal(value, &n); err != nil || n == nil {
		return nil, ErrKept
	}
	return *n, nil
}

// ReadKept puts the rows of WriteKept into a database that has no control source yet, and leaves
// out what is about trades behind the last one. loaded is false, and nothing is changed, when there
// is a source already: the database is older than the restore, or has been restored by itself.
func (t *Tx) ReadKept(r io.Reader, lastTrade uint64) (loaded bool, err error) {
	err = t.Query("select 1 from sources union all select 1 from accounts union all "+
		"select 1 from stocks limit 1", func(*Row) error { loaded = true; return nil })
	if err != nil || loaded {
		return false, err
	}
	in := keptReader{t: t, lastTrade: int64(lastTrade)}
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && in.ended:
			return true, t.beginOutboxes()
		case err != nil && !errors.Is(err, io.EOF):
			return false, err
		case err != nil || in.ended:
			return false, fmt.Errorf("store: line %d: %w", in.line+1, ErrKept)
		}
		in.line++
		if err := in.take(line); err != nil {
			return false, fmt.Errorf("store: line %d: %w", in.line, err)
		}
	}
}

// beginOutboxes notes the last version of each source as one that no stream will have: what a
// source publishes next follows it.
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
	table     *keptTable
	line      int
	rows      int
	ended     bool
}

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

func (in *keptReader) row(line []byte) error {
	var values []json.RawMessage
	if err := json.Unmarshal(line, &values); err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	if in.table == nil || len(values) != len(in.table.columns) {
		return ErrKept
	}
	in.rows++
	args, marks := make([]any, len(values)), make([]string, len(values))
	for i, c := range in.table.columns {
		var err error
		if args[i], err = c.kind.argument(values[i]); err != nil {
			return fmt.Errorf("table %s column %s: %w", in.table.name, c.name, err)
		}
		if n, ok := args[i].(int64); ok && c.name == in.table.limit && n > in.lastTrade {
			return nil
		}
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	_, err := in.t.Exec("insert into "+in.table.name+" ("+in.table.names()+") values ("+
		strings.Join(marks, ", ")+")", args...)
	return err
}

// SettleForced settles the trades that were settled by hand before their rows were made again.
func (t *Tx) SettleForced(nowMillis int64) (rows int64, err error) {
	return t.Exec("update trades set status = 'Settled', updated_at = "+
		"case when updated_at > $1 then updated_at else $1 end "+
		"where status = 'Processing' and trade_seq in (select trade_seq from settlement_forces)",
		nowMillis)
}
