package projection

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// BookLegacy books the trade of one message of trades.booking; see BookBatch. booked is false for a
// duplicate. An ErrMalformed is permanent; after any other error the outcome is unknown, and the
// message must be delivered again.
func (p *Projection) BookLegacy(ctx context.Context, body []byte) (booked bool, err error) {
	n, malformed, err := p.BookBatch(ctx, [][]byte{body})
	if malformed != nil {
		return false, malformed[0]
	}
	return n == 1, err
}

// BookBatch books the trades of messages of trades.booking in one transaction and returns how many
// of them were new.
//
//   - Shape: a body is one Trade JSON with id, accountId, security, side, quantity, price and
//     timestamp. tradeSeq must be the id's number; orderId is stored; status, settlementDate and
//     updatedAt are checked and computed anew. No other member is allowed.
//   - Errors: malformed is nil, or as long as bodies. It then has an ErrMalformed for each message
//     to terminate, whatever err is. After an err the other messages must be delivered again.
//   - Cost: one transaction, none when no message can be read. Any goroutine may call it.
func (p *Projection) BookBatch(ctx context.Context, bodies [][]byte) (booked int,
	malformed []error, err error) {
	now := p.o.Now().UnixMilli()
	rows := make([]store.Trade, 0, len(bodies))
	m := p.messages.Get().(*message)
	for i, body := range bodies {
		if err := m.read(body); err != nil {
			if malformed == nil {
				malformed = make([]error, len(bodies))
			}
			malformed[i] = err
			p.legacyMalformed.Add(1)
			p.log.Warn("trade message is malformed and not booked", "error", err)
			continue
		}
		row := m.trade
		row.Status, row.SettlementDate = store.Processing, p.o.SettlementDate(row.ExecutedAt)
		row.BookedAt, row.UpdatedAt = now, now
		rows = append(rows, row)
	}
	p.messages.Put(m)
	readable := len(rows)
	if readable == 0 {
		return 0, malformed, nil
	}
	// All paths use one order, so that no two transactions wait for each other's rows. Of two messages
	// with one id the first is booked.
	slices.SortStableFunc(rows, func(a, b store.Trade) int { return cmp.Compare(a.Seq, b.Seq) })
	rows = slices.CompactFunc(rows, func(a, b store.Trade) bool { return a.Seq == b.Seq })
	err = p.o.DB.Write(ctx, func(tx *store.Tx) (err error) {
		booked, err = tx.InsertTrades(rows)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			p.failed.Add(1)
		}
		return 0, malformed, fmt.Errorf("projection: book messages=%d: %w", readable, err)
	}
	p.legacyBooked.Add(uint64(booked))
	p.legacyDuplicates.Add(uint64(readable - booked))
	return booked, malformed, nil
}

// sideOf reads Buy or Sell in any case. It knows ASCII only: by Unicode's case folding a long s
// equals the S of Sell.
func sideOf(s []byte) (matcher.Side, bool) {
	var word [4]byte
	if len(s) > len(word) {
		return 0, false
	}
	for i, c := range s {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		word[i] = c
	}
	switch string(word[:len(s)]) {
	case "buy":
		return matcher.Buy, true
	case "sell":
		return matcher.Sell, true
	}
	return 0, false
}
