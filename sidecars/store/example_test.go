package store_test

import (
	"context"
	"fmt"
	"os"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// A follower writes its rows and its cursor in one transaction, so that a batch that is written
// twice counts once.
func Example() {
	dir, err := os.MkdirTemp("", "store-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	date, err := store.ParseDate("2026-11-24")
	if err != nil {
		fmt.Println(err)
		return
	}
	rows := []store.Trade{{
		ID: matcher.TradeID(1), Seq: 1, AccountID: 22214, Security: "IBM", Side: matcher.Buy,
		Quantity: 100,
		Price:    101_250_000, SettlementDate: date, ExecutedAt: 1_795_000_000_000,
		OrderID: "ord-7", Sequence: 12,
	}}
	ctx := context.Background()
	for range 2 {
		err = db.Write(ctx, func(tx *store.Tx) error {
			inserted, err := tx.InsertTrades(rows)
			if err != nil {
				return err
			}
			fmt.Println("inserted", inserted)
			return tx.SetCursor("projection", rows[len(rows)-1].Seq)
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	err = db.Read(ctx, func(tx *store.Tx) error {
		filter := store.TradeFilter{Accounts: []uint32{22214}, Limit: 10}
		return tx.Trades(filter, func(t *store.Trade) error {
			fmt.Println(t.ID, t.Security, t.Quantity, t.Status, t.SettlementDate)
			return nil
		})
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// inserted 1
	// inserted 0
	// trd-1 IBM 100 Processing 2026-11-24
}
