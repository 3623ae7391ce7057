package store

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A keptColumn is a column of a table that is kept. Its kind says how its values are read and
// written in both databases.
type keptColumn struct {
	name string
	kind keptKind
	null bool // it may be null
}

// keptKind is the type of a column's values. The zero value is a whole number, so that the many
// number columns below need no kind.
type keptKind byte

const (
	keptInt keptKind = iota
	keptText
	keptBool
	keptDate
)

// keptTable is one table of the list, or a part of its rows.
type keptTable struct {
	name    string
	columns []keptColumn
	// order is the SQL order of the rows, a unique key: two backups of the same rows are the same
	// bytes.
	order string
	where string // which rows are kept; "": all
	// limit is the column that a restore to an earlier trade limits, below FirstExternal; "": none.
	limit string
	// ofSet: a row belongs to the set of closing marks that its first two columns name.
	ofSet bool
	// what an insert does with a row that is there already; "": it fails
	conflict string
}

// Rows that a process may have written before the kept ones come back stay as they are.
const stays = " on conflict do nothing"

// keptTables are the rows that no journal gives again. Everything else in the database is made from
// the journal: the trades of the journal, cursors, what reconciliation knows. The outbox is not
// kept: a restored source begins a new epoch, and replicas take its snapshot. Neither are rows of a
// history that was given up (void-...). A test knows which tables are not here, and why.
var keptTables = []keptTable{
	{name: "sources", order: "source",
		columns: append(columnsOf(keptText, "source"), columnsOf(keptInt, "epoch", "version")...)},
	{name: "source_keys", order: "source", columns: columnsOf(keptText, "source", "signing_key")},
	{name: "accounts", order: "id",
		columns: []keptColumn{{name: "id"}, {name: "display_name", kind: keptText},
			{name: "enabled", kind: keptBool}, {name: "version"}, {name: "enabled_version"}}},
	{name: "stocks", order: "ticker",
		columns: []keptColumn{{name: "ticker", kind: keptText}, {name: "company_name", kind: keptText},
			{name: "enabled", kind: keptBool}, {name: "halted", kind: keptBool}, {name: "version"},
			{name: "enabled_version"}, {name: "halted_version"}}},
	{name: "settlement_forces", order: "trade_seq", limit: "trade_seq",
		where:   fmt.Sprintf("trade_seq < %d", FirstVoid),
		columns: columnsOf(keptInt, "trade_seq", "forced_at")},
	{name: "settlement_rules", order: "n", limit: "first_seq",
		columns: []keptColumn{{name: "n"}, {name: "rules", kind: keptText}, {name: "first_seq"},
			{name: "booked_from"}, {name: "forces_from"}}},
	{name: "eod_price_sets", order: "session_date, version", conflict: stays,
		columns: []keptColumn{{name: "session_date", kind: keptDate}, {name: "version"},
			{name: "marks"}, {name: "sha256", kind: keptText}, {name: "published_at"}}},
	{name: "eod_prices", order: "session_date, version, security", conflict: stays, ofSet: true,
		columns: []keptColumn{{name: "session_date", kind: keptDate}, {name: "version"},
			{name: "security", kind: keptText}, {name: "price"}, {name: "quality", kind: keptText}}},

	// The bookings from outside, and the statement that they are matched with.
	{name: "trades", order: "trade_seq", conflict: stays,
		where: fmt.Sprintf("trade_seq >= %d and trade_seq < %d and id like '%s%%'", FirstExternal,
			FirstVoid, externalPrefix),
		columns: []keptColumn{{name: "id", kind: keptText}, {name: "trade_seq"}, {name: "account_id"},
			{name: "security", kind: keptText}, {name: "side", kind: keptText}, {name: "quantity"},
			{name: "price"}, {name: "status", kind: keptText}, {name: "settlement_date", kind: keptDate},
			{name: "executed_at"}, {name: "booked_at"}, {name: "updated_at"},
			{name: "order_id", kind: keptText, null: true}, {name: "sequence", null: true}}},
	{name: "recon_statement", order: "id", conflict: stays,
		columns: []keptColumn{{name: "id", kind: keptText}, {name: "account_id"},
			{name: "security", kind: keptText}, {name: "side", kind: keptText}, {name: "quantity"},
			{name: "price"}, {name: "executed_at"}, {name: "loaded_at"}}},

	// What repairs did, and the trades that an older build booked by message.
	{name: "recon_repairs", order: "repair", conflict: stays, limit: "from_seq",
		columns: []keptColumn{{name: "repair"}, {name: "from_seq"}, {name: "to_seq"},
			{name: "subject", kind: keptText}, {name: "address", kind: keptText},
			{name: "reason", kind: keptText}, {name: "begun_at"}, {name: "ended_at", null: true},
			{name: "checked"}, {name: "repaired"}}},
	{name: "recon_repaired_rows", order: "repair, trade_seq, n", conflict: stays,
		limit: "trade_seq",
		columns: []keptColumn{{name: "repair"}, {name: "trade_seq"}, {name: "n"},
			{name: "fields", kind: keptText}, {name: "id", kind: keptText, null: true},
			{name: "row_seq", null: true}, {name: "account_id", null: true},
			{name: "security", kind: keptText, null: true}, {name: "side", kind: keptText, null: true},
			{name: "quantity", null: true}, {name: "price", null: true},
			{name: "status", kind: keptText, null: true},
			{name: "settlement_date", kind: keptText, null: true}, {name: "executed_at", null: true},
			{name: "booked_at", null: true}, {name: "updated_at", null: true},
			{name: "order_id", kind: keptText, null: true}, {name: "sequence", null: true}}},
	{name: "trades_by_message", order: "trade_seq", conflict: stays, limit: "trade_seq",
		columns: columnsOf(keptInt, "trade_seq")},

	// Operators' acts that wait to be put on record, and the cursors that number acts and repairs.
	{name: "operator_acts", order: "act", conflict: stays,
		columns: []keptColumn{{name: "act"}, {name: "kind", kind: keptText},
			{name: "subject", kind: keptText}, {name: "address", kind: keptText},
			{name: "reason", kind: keptText}, {name: "object", kind: keptText},
			{name: "old", kind: keptText}, {name: "new", kind: keptText}, {name: "made_at"},
			{name: "sought_from", null: true}}},
	{name: "cursors", order: "name", where: "name in ('recon.repair', '" + cursorActs + "')",
		conflict: " on conflict (name) do update set value = case when excluded.value > " +
			"cursors.value then excluded.value else cursors.value end",
		columns: []keptColumn{{name: "name", kind: keptText}, {name: "value"}}},
}

// columnsOf are columns of one kind.
func columnsOf(kind keptKind, names ...string) (list []keptColumn) {
	for _, name := range names {
		list = append(list, keptColumn{name: name, kind: kind})
	}
	return list
}

// names are the columns as a list for SQL, and as the head line states them.
func (k *keptTable) names() string {
	var names []string
	for _, c := range k.columns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// selected is the query of the rows that are kept. A date is read as its text: one that was edited
// by hand must not end a backup.
func (k *keptTable) selected() string {
	var list []string
	for _, c := range k.columns {
		if c.kind == keptDate {
			list = append(list, "cast("+c.name+" as text)")
		} else {
			list = append(list, c.name)
		}
	}
	sql := "select " + strings.Join(list, ", ") + " from " + k.name
	if k.where != "" {
		sql += " where " + k.where
	}
	return sql + " order by " + k.order
}

// inserted is the statement that inserts rows with so many values in all.
//
// values is a multiple of the number of columns. The text depends on that number only, so a full
// keptBatch uses one prepared statement.
func (k *keptTable) inserted(values int) string {
	var b strings.Builder
	b.WriteString("insert into " + k.name + " (" + k.names() + ") values ")
	for i := range values {
		switch {
		case i == 0:
			b.WriteByte('(')
		case i%len(k.columns) == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i+1)
	}
	b.WriteByte(')')
	b.WriteString(k.conflict)
	return b.String()
}

// read returns the value of column i for JSON. NULL in a column that may not be null reads as the
// zero value of its kind.
func (c *keptColumn) read(r *Row, i int) any {
	if c.null && r.Null(i) {
		return nil
	}
	switch c.kind {
	case keptText, keptDate:
		return r.Text(i)
	case keptBool:
		return r.Bool(i)
	}
	return r.Int64(i)
}

// argument reads a value of a line.
//
// A date that is none is stored as its text in SQLite, where an operator's edit may have left it. A
// date column of PostgreSQL cannot hold it, so there it is an error and the restore ends.
func (c *keptColumn) argument(d Dialect, value json.RawMessage) (any, error) {
	if string(value) == "null" {
		if !c.null {
			return nil, ErrKept
		}
		return nil, nil
	}
	switch c.kind {
	case keptText:
		return valueOf[string](value)
	case keptBool:
		return valueOf[bool](value)
	case keptDate:
		text, err := valueOf[string](value)
		if err != nil {
			return nil, err
		}
		day, err := ParseDate(text.(string))
		if err != nil && d == SQLite {
			return text, nil // as it was
		}
		return day, err
	}
	return valueOf[int64](value)
}

// valueOf reads a JSON value of exactly this type; a number with a fraction is no int64.
func valueOf[T any](value json.RawMessage) (any, error) {
	var v T
	if json.Unmarshal(value, &v) != nil {
		return nil, ErrKept
	}
	return v, nil
}
