package recon

import (
	"errors"
	"fmt"

	"posttrade/matcher"
)

// errHole reports a history that does not have all the fills of a range.
var errHole = errors.New("the history of fills has a hole")

// errEnough ends a walk over the journal's fills.
var errEnough = errors.New("enough fills")

// fillsPerPage is how many fills are read from the blotter at once.
const fillsPerPage = 4096

// entries is the history of fills in its three forms. It belongs to one goroutine
// at a time.
//
// The three hold the same fills: the blotter the newest, in memory; the journal all of them; the
// index all up to its last rebuild.
type entries struct {
	journal Journal
	blotter Blotter
	index   History
	room    []matcher.Fill // reused between pages of the blotter
}

// reader passes the fills from..to, in order and without a hole, to fn.
//
// fn gets the fills in any number of calls and must not keep the slice. An error of fn ends the
// reading and is returned. errHole when the history does not have them all.
type reader func(from, to uint64, fn func([]matcher.Fill) error) error

// fromJournal reads durable fills from the journal.
//
// The fills of the last block behind to are cut off.
func (e *entries) fromJournal(from, to uint64, fn func([]matcher.Fill) error) error {
	next := from
	err := e.journal.Fills(from, func(fills []matcher.Fill) error {
		if over := int64(next) + int64(len(fills)) - 1 - int64(to); over > 0 {
			fills = fills[:max(len(fills)-int(over), 0)]
		}
		if err := inOrder(fills, &next); err != nil {
			return err
		}
		if err := fn(fills); err != nil {
			return err
		}
		if next > to {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return reached(next, to)
}

// fromBlotter reads the fills that the blotter still holds from it. The others, evicted or never in
// it, come from the journal. to must be durable.
//
// The blotter may hold fills that are not durable; the bound on to keeps them out.
func (e *entries) fromBlotter(from, to uint64, fn func([]matcher.Fill) error) error {
	for next := from; next <= to; {
		limit := int(min(to-next+1, fillsPerPage))
		fills, _, _ := e.blotter.Page(next-1, limit, e.room[:0])
		e.room = fills[:0]
		if len(fills) == 0 || fills[0].TradeSeq != next {
			end := to
			if len(fills) > 0 {
				end = min(to, fills[0].TradeSeq-1)
			}
			if err := e.fromJournal(next, end, fn); err != nil {
				return err
			}
			next = end + 1
			continue
		}
		if err := inOrder(fills, &next); err != nil {
			return err
		}
		if err := fn(fills); err != nil {
			return err
		}
	}
	return nil
}

// fromHistory reads from the full-history index.
//
// to is at most the index's last trade sequence.
func (e *entries) fromHistory(from, to uint64, fn func([]matcher.Fill) error) error {
	next := from
	err := e.index.Range(from, to, func(fills []matcher.Fill) error {
		if err := inOrder(fills, &next); err != nil {
			return err
		}
		return fn(fills)
	})
	if err != nil {
		return err
	}
	return reached(next, to)
}

// inOrder checks that fills continue at next, and moves next past them.
func inOrder(fills []matcher.Fill, next *uint64) error {
	for i := range fills {
		if fills[i].TradeSeq != *next {
			return fmt.Errorf("tradeSeq=%d where %d was asked for: %w", fills[i].TradeSeq, *next, errHole)
		}
		*next++
	}
	return nil
}

// reached is the check of a reader's end: next is the first fill that did not come.
func reached(next, to uint64) error {
	if next <= to {
		return fmt.Errorf("it ends before tradeSeq=%d, %d was asked for: %w", next, to, errHole)
	}
	return nil
}

// maxTickers bounds the memory of tickers by security id.
const maxTickers = 1 << 20

// ticker looks the ticker of a security up once. The caller holds mu.
//
// "" is not kept: the name may come later. Then the row of the fill differs in its security until
// it does.
func (r *Recon) ticker(securityID uint32) string {
	if int(securityID) < len(r.tickers) && r.tickers[securityID] != "" {
		return r.tickers[securityID]
	}
	name := r.o.Ticker(securityID)
	if securityID < maxTickers && name != "" {
		if grow := int(securityID) + 1 - len(r.tickers); grow > 0 {
			r.tickers = append(r.tickers, make([]string, grow)...)
		}
		r.tickers[securityID] = name
	}
	return name
}
