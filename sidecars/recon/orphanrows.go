package recon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"posttrade/sidecars/store"
)

// maxOrphanIDs is how many ids a result lists.
//
// The table has all of them; Breaks pages through it.
const maxOrphanIDs = 500

const (
	columnsOrphan = 11
	insertOrphans = "insert into recon_orphans (id, trade_seq, " + tradeColumns + ", sweep) values "
	keepOrphans   = " on conflict (id) do nothing"
	renewOrphans  = " on conflict (id) do update set trade_seq = excluded.trade_seq, account_id = " +
		"excluded.account_id, " +
		"security = excluded.security, side = excluded.side, quantity = excluded.quantity, price = " +
		"excluded.price, " +
		"executed_at = excluded.executed_at, last_seen_at = excluded.last_seen_at, sweep = excluded.sweep"
)

// amend reads the books, and what look needs, in one snapshot. Then it writes them, with the
// changes of edit, in one transaction. look may be nil; when it reports that no edit is needed,
// amend ends. When another transaction changed the books meanwhile, amend tries once more. Both
// functions may run more than once.
//
// The caller must not hold mu.
func (r *Recon) amend(ctx context.Context, look func(tx *store.Tx) (needed bool, err error),
	edit func(tx *store.Tx, b *books) error,
) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := again(func() (_ progress, err error) {
		was, needed := books{}, true
		err = r.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
			if was, err = readBooks(tx); err != nil || look == nil {
				return err
			}
			needed, err = look(tx)
			return err
		})
		if err != nil || !needed {
			return progress{}, err
		}
		is := was
		return progress{}, r.commit(ctx, was, &is, edit)
	})
	return err
}

// note writes the orphans of a chunk: it adds new ones and renews known ones.
//
// Two statements tell the new from the known: the first inserts and counts, the second renews. In
// one statement "on conflict do update" would count both.
func (s *scan) note(tx *store.Tx, b *books) error {
	now := s.r.nowMillis()
	row := func(i int, args []any) []any {
		o := &s.strays[i]
		return append(appendTrade(append(args, o.id, o.seq), &o.row), now, now, s.number)
	}
	added, err := insertRows(tx, insertOrphans, keepOrphans, columnsOrphan, len(s.strays), row)
	if err != nil {
		return err
	}
	b.orphans += uint64(added)
	if added == int64(len(s.strays)) {
		return nil
	}
	_, err = insertRows(tx, insertOrphans, renewOrphans, columnsOrphan, len(s.strays), row)
	return err
}

// end stores the result together with the time of the sweep.
//
// It reads the ids of all orphans, which are few in a database that works.
func (s *scan) end(ctx context.Context, indexed uint64) (SweepResult, error) {
	result := SweepResult{
		SweptMillis: s.r.nowMillis(), LocalTradeCount: s.local, FullHistoryTradeCount: indexed,
	}
	err := s.r.amend(ctx, nil, func(tx *store.Tx, b *books) error {
		var lowest lowestIDs
		err := tx.Query("select id from recon_orphans", func(r *store.Row) error {
			lowest.offer(r.Text(0))
			return nil
		})
		if err != nil {
			return err
		}
		result.OrphanIDs = lowest.take()
		result.OrphanCount = b.orphans
		result.Truncated = b.orphans > uint64(len(result.OrphanIDs))
		b.orphansSweptMillis = result.SweptMillis
		return writeResult(tx, &result)
	})
	return result, err
}

// lowestIDs keeps the first maxOrphanIDs of the ids offered, in byte order.
//
// It keeps at most four times as many, and sorts when they are reached.
type lowestIDs struct{ ids []string }

func (l *lowestIDs) offer(id string) {
	if l.ids = append(l.ids, strings.Clone(id)); len(l.ids) >= 4*maxOrphanIDs {
		l.take()
	}
}

func (l *lowestIDs) take() []string {
	slices.Sort(l.ids)
	l.ids = l.ids[:min(len(l.ids), maxOrphanIDs)]
	return l.ids
}

// writeResult replaces the only row of recon_orphan_sweep.
func writeResult(tx *store.Tx, s *SweepResult) error {
	ids, err := json.Marshal(append([]string{}, s.OrphanIDs...))
	if err != nil {
		return fmt.Errorf("render orphan ids: %w", err)
	}
	_, err = tx.Exec("insert into recon_orphan_sweep (id, swept_at, local_trades, history_trades, "+
		"orphans, orphan_ids, "+
		"truncated) values (1, $1, $2, $3, $4, $5, $6) on conflict (id) do update set swept_at = "+
		"excluded.swept_at, "+
		"local_trades = excluded.local_trades, history_trades = excluded.history_trades, orphans = "+
		"excluded.orphans, "+
		"orphan_ids = excluded.orphan_ids, truncated = excluded.truncated",
		s.SweptMillis, s.LocalTradeCount, s.FullHistoryTradeCount, s.OrphanCount, string(ids),
		flag(s.Truncated))
	return err
}

// errResult reports a stored result that cannot be read.
var errResult = errors.New("the stored result of the orphan sweep cannot be read")

// LastOrphanSweep returns the result of the last complete orphan sweep; false
// before the first.
func (r *Recon) LastOrphanSweep(ctx context.Context) (result SweepResult, found bool, err error) {
	err = r.o.DB.Read(ctx, func(tx *store.Tx) error {
		result, found = SweepResult{}, false
		return tx.Query("select swept_at, local_trades, history_trades, orphans, truncated, orphan_ids "+
			"from recon_orphan_sweep where id = 1", func(row *store.Row) error {
			found = true
			result = SweepResult{
				SweptMillis: row.Int64(0), LocalTradeCount: uint64(row.Int64(1)),
				FullHistoryTradeCount: uint64(row.Int64(2)), OrphanCount: uint64(row.Int64(3)),
				Truncated: row.Int64(4) != 0,
			}
			if err := json.Unmarshal([]byte(row.Text(5)), &result.OrphanIDs); err != nil {
				return fmt.Errorf("%w: %w", errResult, err)
			}
			return nil
		})
	})
	if err != nil {
		return SweepResult{}, false, fmt.Errorf("recon: read last orphan sweep: %w", err)
	}
	return result, found, nil
}

// recheckOrphans closes the orphans whose row is gone, or has a fill now: the history may have
// reached a row that was inserted ahead of it.
//
// It looks at bounds.orphans of them per sweep, by id, and begins again behind the last. Bookings
// from outside are never orphans. r.sweep is held.
func (r *Recon) recheckOrphans(ctx context.Context, head uint64) error {
	var healed []string
	seen, last, from := 0, "", ">"
	if r.recheck.orphanAfter == "" {
		from = ">=" // an id may be empty
	}
	look := func(tx *store.Tx) (bool, error) {
		healed, seen, last = nil, 0, ""
		err := tx.Query(
			"select o.id, t.trade_seq from recon_orphans o left join trades t on t.id = o.id "+
				"where o.id "+from+" $1 order by o.id limit $2", func(row *store.Row) error {
				id := row.Text(0)
				seen, last = seen+1, id
				if seq := uint64(row.Int64(1)); row.Null(1) || seq <= head && ownID(id, seq) {
					healed = append(healed, id)
				}
				return nil
			}, r.recheck.orphanAfter, r.bounds.orphans)
		return len(healed) > 0, err
	}
	err := r.amend(ctx, look, func(tx *store.Tx, b *books) error {
		for _, id := range healed {
			n, err := tx.Exec("delete from recon_orphans where id = $1", id)
			if err != nil {
				return err
			}
			b.orphans -= uint64(n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if r.recheck.orphanAfter = last; seen < r.bounds.orphans {
		r.recheck.orphanAfter = ""
	}
	return nil
}
