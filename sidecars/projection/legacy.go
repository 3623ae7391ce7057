package projection

import (
	"context"
	"errors"
	"fmt"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// BookLegacy books the trade of one message of trades.booking; see BookBatch. booked is false for a
// duplicate. An ErrMalformed or ErrForeignID is permanent; after any other error the outcome is
// unknown, and the message must be delivered again.
func (p *Projection) BookLegacy(ctx context.Context, body []byte) (booked bool, err error) {
	n, refused, err := p.BookBatch(ctx, [][]byte{body})
	if refused != nil {
		return false, refused[0]
	}
	return n == 1, err
}

// BookBatch books the trades of messages of trades.booking in one transaction and returns how many
// of them were new.
//
//   - Shape: a body is one Trade JSON with id, accountId, security, side, quantity, price and
//     timestamp. orderId is stored; status, settlementDate and updatedAt are checked and computed
//     anew. No other member is allowed.
//   - Ids: ext- and a name is a booking from outside, without a tradeSeq. trd-N is a trade of the
//     journal, with N as its tradeSeq if it has one: the journal's own path books it, so the
//     message changes nothing. An N above the durable head belongs to a trade that the engine has
//     yet to make: ErrForeignID.
//   - Errors: refused is nil, or as long as bodies. It then has an ErrMalformed or ErrForeignID for
//     each message to terminate, whatever err is. After an err the other messages must be delivered
//     again.
//   - Cost: one transaction, none when there is no booking from outside. Any goroutine may call it.
//
// Bodies are read before the transaction begins, with a reader of the pool, so none is read twice
// when the database asks for a retry.
func (p *Projection) BookBatch(ctx context.Context, bodies [][]byte) (booked int,
	refused []error, err error) {
	rows := make([]store.Trade, 0, len(bodies))
	known := 0
	m := p.messages.Get().(*message)
	for i, body := range bodies {
		err := m.read(body)
		if err == nil && m.trade.Seq > 0 {
			if err = p.issued(m.trade.Seq); err == nil {
				known++
				continue
			}
		}
		if err != nil {
			if refused == nil {
				refused = make([]error, len(bodies))
			}
			refused[i] = err
			p.refuse(err)
			continue
		}
		rows = append(rows, m.trade)
	}
	p.messages.Put(m)
	p.legacyDuplicates.Add(uint64(known))
	if len(rows) == 0 {
		return 0, refused, nil
	}
	readable := len(rows)
	now := p.o.Now().UnixMilli()
	for i := range rows {
		row := &rows[i]
		row.Status, row.SettlementDate = store.Processing, p.o.SettlementDate(row.ExecutedAt)
		row.BookedAt, row.UpdatedAt = now, now
	}
	err = p.o.DB.Write(ctx, func(tx *store.Tx) (err error) {
		booked, err = bookExternal(tx, rows)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			p.failed.Add(1)
		}
		return 0, refused, fmt.Errorf("projection: book messages=%d: %w", readable, err)
	}
	p.legacyBooked.Add(uint64(booked))
	p.legacyDuplicates.Add(uint64(readable - booked))
	return booked, refused, nil
}

// issued returns ErrForeignID for a trade sequence that the journal has not given to a trade.
//
// Without it a message could take the id of a trade that the engine makes later.
func (p *Projection) issued(tradeSeq uint64) error {
	if head := p.o.Issued(); tradeSeq > head {
		return fmt.Errorf("projection: id=%s last trade=%d: %w", matcher.TradeID(tradeSeq), head,
			ErrForeignID)
	}
	return nil
}

// refuse counts a message that must be terminated. The caller, which gets err, logs it: err names
// the field, or the id, and has nothing else of the body, which comes from outside.
func (p *Projection) refuse(err error) {
	if errors.Is(err, ErrForeignID) {
		p.legacyForeign.Add(1)
	} else {
		p.legacyMalformed.Add(1)
	}
}

// cursorExternal is locked by a transaction that numbers bookings from outside.
//
// Its value stays 0: only the lock on its row is used.
const cursorExternal = "bookings.external"

// bookExternal inserts bookings from outside that are not there, in the order of rows: of two
// messages with one id the first is booked. Their trade sequences only order them, above every
// history. The lock keeps two consumers, such as the old and the new leader, from giving one number
// twice: the second row would count as a duplicate.
//
// A row that is there already leaves a hole in the numbers, which nothing reads as a sequence
// without holes.
func bookExternal(tx *store.Tx, rows []store.Trade) (booked int, err error) {
	if _, err := tx.HoldCursor(cursorExternal); err != nil {
		return 0, err
	}
	next := store.FirstExternal
	err = tx.Query("select max(trade_seq) from trades where trade_seq >= $1 and trade_seq < $2",
		func(r *store.Row) error {
			if !r.Null(0) {
				next = uint64(r.Int64(0)) + 1
			}
			return nil
		}, store.FirstExternal, store.FirstVoid)
	if err != nil {
		return 0, err
	}
	for i := range rows {
		rows[i].Seq = next + uint64(i)
	}
	return tx.InsertTrades(rows)
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
