package recon

import (
	"context"
	"fmt"

	"posttrade/sidecars/store"
)

// A booking from outside has no fill to be compared with. The statement of the party that made it
// confirms it: the line with the same id and the same terms.
const (
	sameTerms = "s.account_id = t.account_id and s.security = t.security and s.side = t.side and " +
		"s.quantity = t.quantity and s.price = t.price and s.executed_at = t.executed_at"
	ofOutside = "t.trade_seq >= $1 and t.trade_seq < $2 and t.id like 'ext-%'"

	lineColumns = "s.account_id, s.security, s.side = 'Sell', s.quantity, s.price, s.executed_at"

	selectOutside = "select t.trade_seq, t.id, t.booked_at, " +
		"t.account_id, t.security, t.side = 'Sell', t.quantity, t.price, t.executed_at, " +
		"s.id, " + lineColumns + ", s.loaded_at from trades t left join recon_statement s " +
		"on s.id = t.id where " + ofOutside + " and (s.id is null or not (" + sameTerms + ")) " +
		"and t.trade_seq > $3 order by t.trade_seq limit $4"

	selectLines = "select s.id, s.loaded_at, " + lineColumns + " from recon_statement s " +
		"where s.id > $1 and not exists (select 1 from trades t where t.id = s.id) " +
		"order by s.id limit $2"

	keepLine = "insert into recon_statement (id, account_id, security, side, quantity, price, " +
		"executed_at, loaded_at) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (id) do " +
		"update set " +
		"account_id = excluded.account_id, security = excluded.security, side = excluded.side, " +
		"quantity = excluded.quantity, price = excluded.price, executed_at = excluded.executed_at, " +
		"loaded_at = excluded.loaded_at"
)

// externals counts the bookings from outside, those that the statement confirms, and the lines of
// the statement without a booking.
//
// It costs three counts over the bookings and the statement, so only Status reads it.
type externals struct{ bookings, confirmed, absent uint64 }

func readExternals(tx *store.Tx) (e externals, err error) {
	for _, c := range []struct {
		sql  string
		into *uint64
	}{
		{"select count(*) from trades t where " + ofOutside, &e.bookings},
		{"select count(*) from recon_statement s join trades t on t.id = s.id where " + ofOutside +
			" and " + sameTerms, &e.confirmed},
	} {
		err := tx.Query(c.sql, func(r *store.Row) error { *c.into = uint64(r.Int64(0)); return nil },
			store.FirstExternal, store.FirstVoid)
		if err != nil {
			return e, err
		}
	}
	err = tx.Query("select count(*) from recon_statement s "+
		"where not exists (select 1 from trades t where t.id = s.id)",
		func(r *store.Row) error { e.absent = uint64(r.Int64(0)); return nil })
	return e, err
}

// outside lists the bookings that the statement does not confirm, by trade_seq, and behind them the
// lines of the statement without a booking, by id.
//
// Nothing is kept of these differences: one is seen last by this reading. It is seen first since
// both sides are there, or since the one side is.
//
// from.seq continues among the bookings, from.id among the lines.
func (l *list) outside(tx *store.Tx, from place) error {
	now := l.r.nowMillis()
	if from.id == "" {
		err := tx.Query(selectOutside, func(r *store.Row) error {
			row := tradeAt(r, 3)
			b := Break{Class: External, TradeID: r.Text(1), Projection: &row,
				FirstSeenMillis: r.Int64(2), LastSeenMillis: now}
			if !r.Null(9) {
				line := tradeAt(r, 10)
				b.Statement, b.Fields = &line, differing(&row, &line).names()
				b.FirstSeenMillis = max(b.FirstSeenMillis, r.Int64(16))
			}
			l.external[b.TradeID] = uint64(r.Int64(0))
			l.items = append(l.items, b)
			return nil
		}, store.FirstExternal, store.FirstVoid, from.seq, l.limit-len(l.items))
		if err != nil || len(l.items) == l.limit {
			return err
		}
	}
	return tx.Query(selectLines, func(r *store.Row) error {
		line := tradeAt(r, 2)
		l.items = append(l.items, Break{Class: External, TradeID: r.Text(0), Statement: &line,
			FirstSeenMillis: r.Int64(1), LastSeenMillis: now})
		return nil
	}, from.id, l.limit-len(l.items))
}

// tradeAt reads a trade from column i on, with the side as a boolean.
func tradeAt(r *store.Row, i int) Trade {
	t := Trade{AccountID: uint32(r.Int64(i)), Security: r.Text(i + 1), Quantity: r.Int64(i + 3),
		Price: r.Int64(i + 4), TimeMillis: r.Int64(i + 5)}
	if r.Bool(i + 2) {
		t.Side = 1
	}
	return t
}

// StatementLine is one booking as the party that made it states it.
type StatementLine struct {
	ID string // ext-...
	Trade
}

// Statement is how the lines that were taken compare with the bookings.
//
// Accepted is the sum of the other three. Missing counts lines without a booking.
type Statement struct {
	Accepted, Matched, Differing, Missing uint64
}

// TakeStatement keeps lines of a statement and compares them with the bookings. A line replaces an
// earlier one of the same id. All of them are kept, or none.
//
// An id that is not one of a booking from outside is ErrKey, and nothing is kept. Cost: two
// statements a line in one transaction; the caller bounds the number of lines. Lines of earlier
// statements stay.
func (r *Recon) TakeStatement(ctx context.Context, lines []StatementLine) (s Statement, err error) {
	if err := r.o.DB.Mine(ctx); err != nil {
		return s, fmt.Errorf("recon: take statement: %w", err)
	}
	now := r.nowMillis()
	err = r.o.DB.Write(ctx, func(tx *store.Tx) error {
		s = Statement{Accepted: uint64(len(lines))}
		for i := range lines {
			line := &lines[i]
			if !store.ExternalID(line.ID) {
				return fmt.Errorf("line %d: not an id from outside: %w", i, ErrKey)
			}
			side := "Buy"
			if line.Side == 1 {
				side = "Sell"
			}
			if _, err := tx.Exec(keepLine, line.ID, line.AccountID, line.Security, side, line.Quantity,
				line.Price, line.TimeMillis, now); err != nil {
				return err
			}
			row, found, err := tx.Trade(line.ID)
			switch {
			case err != nil:
				return err
			case !found:
				s.Missing++
			case tradeOf(&row) == line.Trade:
				s.Matched++
			default:
				s.Differing++
			}
		}
		return nil
	})
	if err != nil {
		return Statement{}, fmt.Errorf("recon: take statement lines=%d: %w", len(lines), err)
	}
	return s, nil
}
