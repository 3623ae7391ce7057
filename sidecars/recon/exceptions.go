package recon

import (
	"strconv"
	"strings"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Gaps are disjoint. So only one gap that begins before lo can reach it: the last one. The
// condition fromGap selects the gaps that end at $1 or later, by the primary key.
const (
	fromGap    = "lo >= coalesce((select max(lo) from recon_gaps where lo <= $1), 0) and hi >= $1"
	selectGaps = "select lo, hi, first_seen_at, counted from recon_gaps where " + fromGap

	tradeColumns = "account_id, security, side, quantity, price, executed_at, first_seen_at, " +
		"last_seen_at"
	selectDiffers = "select trade_seq, fields, " + tradeColumns +
		" from recon_mismatches where trade_seq >= $1"
	insertGaps     = "insert into recon_gaps (lo, hi, first_seen_at, counted) values "
	insertDiffers  = "insert into recon_mismatches (trade_seq, fields, " + tradeColumns + ") values "
	columnsGap     = 4
	columnsDiffers = 10
)

func scanGap(r *store.Row) gap {
	return gap{span{uint64(r.Int64(0)), uint64(r.Int64(1))}, r.Int64(2), r.Int64(3) != 0}
}

// scanTrade reads the first six of tradeColumns, from column i on.
func scanTrade(r *store.Row, i int) Trade {
	return Trade{
		AccountID: uint32(r.Int64(i)), Security: r.Text(i + 1), Side: matcher.Side(r.Int64(i + 2)),
		Quantity: r.Int64(i + 3), Price: r.Int64(i + 4), TimeMillis: r.Int64(i + 5),
	}
}

func scanMismatch(r *store.Row) mismatch {
	return mismatch{
		seq: uint64(r.Int64(0)), fields: fieldSet(r.Int64(1)), row: scanTrade(r, 2),
		firstSeen: r.Int64(8), lastMillis: r.Int64(9),
	}
}

// readExceptions reads every gap that overlaps or touches s and every mismatch in it.
//
// Neighbours that only touch s are needed as well: a new gap may join one of them.
func readExceptions(tx *store.Tx, s span) (e exceptions, err error) {
	err = tx.Query(selectGaps+" and lo <= $2 order by lo", func(r *store.Row) error {
		e.gaps = append(e.gaps, scanGap(r))
		return nil
	}, max(s.lo, 1)-1, s.hi+1)
	if err != nil {
		return e, err
	}
	err = tx.Query(selectDiffers+" and trade_seq <= $2 order by trade_seq", func(r *store.Row) error {
		e.mismatches = append(e.mismatches, scanMismatch(r))
		return nil
	}, s.lo, s.hi)
	return e, err
}

// writeExceptions replaces was by is, and writes only the differences. Both describe the same range
// of entries completely.
//
// A judgement mostly changes one end of a list. Only the middle that differs is deleted and
// inserted, so a chunk that confirms what is known writes nothing.
func writeExceptions(tx *store.Tx, was, is exceptions) error {
	oldGaps, newGaps := middle(was.gaps, is.gaps)
	if n := len(oldGaps); n > 0 {
		_, err := tx.Exec("delete from recon_gaps where lo >= $1 and lo <= $2",
			oldGaps[0].lo, oldGaps[n-1].lo)
		if err != nil {
			return err
		}
	}
	_, err := insertRows(tx, insertGaps, "", columnsGap, len(newGaps), func(i int, args []any) []any {
		g := &newGaps[i]
		return append(args, g.lo, g.hi, g.firstSeen, flag(g.counted))
	})
	if err != nil {
		return err
	}
	oldOnes, newOnes := middle(was.mismatches, is.mismatches)
	if n := len(oldOnes); n > 0 {
		_, err := tx.Exec("delete from recon_mismatches where trade_seq >= $1 and trade_seq <= $2",
			oldOnes[0].seq, oldOnes[n-1].seq)
		if err != nil {
			return err
		}
	}
	_, err = insertRows(tx, insertDiffers, "", columnsDiffers, len(newOnes),
		func(i int, args []any) []any {
			m := &newOnes[i]
			return append(appendTrade(append(args, m.seq, int64(m.fields)), &m.row), m.firstSeen,
				m.lastMillis)
		})
	return err
}

// appendTrade appends the first six of tradeColumns.
func appendTrade(args []any, t *Trade) []any {
	return append(args, t.AccountID, t.Security, int64(t.Side), t.Quantity, t.Price, t.TimeMillis)
}

// flag is a boolean in a column of numbers.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// middle removes the elements that two lists have in common at both ends.
func middle[T comparable](was, is []T) (old, fresh []T) {
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		was, is = was[1:], is[1:]
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	return was, is
}

// rowsPerInsert is how many rows one statement writes. A statement writes either this many or one,
// so that each table has only two statements to prepare.
const rowsPerInsert = 64

// insertRows writes n rows of the given number of columns, several per statement, and returns how
// many rows the statements touched.
//
// head is the statement up to its values, tail what follows them. row appends the arguments of row
// i.
func insertRows(tx *store.Tx, head, tail string, columns, n int,
	row func(i int, args []any) []any) (touched int64, err error) {
	var args []any
	for at := 0; at < n; {
		step := rowsPerInsert
		if n-at < step {
			step = 1
		}
		args = args[:0]
		for i := range step {
			args = row(at+i, args)
		}
		m, err := tx.Exec(head+placeholders(columns, step)+tail, args...)
		if err != nil {
			return touched, err
		}
		touched += m
		at += step
	}
	return touched, nil
}

// placeholders is "($1, $2), ($3, $4)" for two columns and two rows.
func placeholders(columns, rows int) string {
	var b strings.Builder
	for i := range columns * rows {
		switch {
		case i == 0:
			b.WriteString("($")
		case i%columns == 0:
			b.WriteString("), ($")
		default:
			b.WriteString(", $")
		}
		b.WriteString(strconv.Itoa(i + 1))
	}
	b.WriteString(")")
	return b.String()
}

// nextOpen lists the next open ranges of entries after after, ascending, at most limit: gaps and
// mismatches, with near ones joined. last says that there are no more.
//
// The result is cut to the part that both lists cover, so that the caller can continue behind its
// last span without passing over an entry.
func nextOpen(tx *store.Tx, after uint64, limit int, near uint64) (spans []span,
	last bool, err error) {
	more := 0
	err = tx.Query("select lo, hi from recon_gaps where "+fromGap+" order by lo limit $2",
		func(r *store.Row) error {
			spans, more = append(spans, span{max(uint64(r.Int64(0)), after+1), uint64(r.Int64(1))}), more+1
			return nil
		}, after+1, limit)
	if err != nil {
		return nil, false, err
	}
	fullGaps, gaps := more == limit, len(spans)
	more = 0
	err = tx.Query(
		"select trade_seq from recon_mismatches where trade_seq > $1 order by trade_seq limit $2",
		func(r *store.Row) error {
			seq := uint64(r.Int64(0))
			spans, more = append(spans, span{seq, seq}), more+1
			return nil
		}, after, limit)
	if err != nil {
		return nil, false, err
	}
	// Where one list was cut off, the other may hold entries beyond its end: these wait.
	until := ^uint64(0)
	if fullGaps {
		until = min(until, spans[gaps-1].lo)
	}
	if more == limit {
		until = min(until, spans[len(spans)-1].lo)
	}
	spans, last = joinNear(ascending(spans), until, near), until == ^uint64(0)
	if len(spans) > limit {
		spans, last = spans[:limit], false
	}
	return spans, last, nil
}

// joinNear joins spans that are at most near apart: comparing a few matched entries again costs
// less than another range. It leaves out spans that begin after until.
func joinNear(spans []span, until, near uint64) (out []span) {
	for _, s := range spans {
		if s.lo > until {
			break
		}
		if n := len(out); n > 0 && s.lo-out[n-1].hi <= near {
			out[n-1].hi = max(out[n-1].hi, s.hi)
			continue
		}
		out = append(out, s)
	}
	return out
}
