package installation

import (
	"context"
	"encoding/json"

	"posttrade/app/engine"
	"posttrade/journal/acts"
	"posttrade/matcher"
	"posttrade/matcher/note"
)

// forcesOnRecord reads which trades operators have settled by hand, from the acts in the journal. A
// database that was lost gets them again. Bookings from outside are not in the journal, so their
// acts are left out.
func forcesOnRecord(k *engine.Engine) func(ctx context.Context,
	each func(tradeSeq uint64, atMillis int64) error) error {
	read := acts.New(k.Journal, k.Gate.Ticker)
	return func(ctx context.Context, each func(tradeSeq uint64, atMillis int64) error) error {
		return read.Read(ctx, acts.Query{Kind: note.Settlement}, func(r *acts.Record) error {
			var object struct {
				TradeID string `json:"tradeId"`
			}
			if err := json.Unmarshal(r.Object, &object); err != nil {
				return err
			}
			if tradeSeq, ok := matcher.ParseTradeID(object.TradeID); ok {
				return each(tradeSeq, r.Millis)
			}
			return nil
		})
	}
}
