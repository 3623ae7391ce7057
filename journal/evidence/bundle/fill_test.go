package bundle

import (
	"bytes"
	"errors"
	"testing"

	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestABatchHoldsFewFills: a batch ends when it holds many bytes of fills, also where each command
// has only as many as the engine might execute.
func TestABatchHoldsFewFills(t *testing.T) {
	engine := must.Get(matcher.New(&matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts:   []matcher.GenesisAccount{{ID: 1, Enabled: true}},
		Securities: []matcher.GenesisSecurity{{Ticker: "AAA", Enabled: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 10, MaxOrderNotional: 1e12, MaxPositionQty: 100,
			MaxConcentrationNotional: 1e15, CreditLimit: 1e15, PriceMaxAgeMillis: 1000,
			IdempotencyCapacity: 4, MaxAccounts: 4, MaxSecurities: 4, MaxContracts: 4,
			MaxOpenOrders: 4096, RetainedOrders: 4,
		}}))(t)
	defer func() { must.OK(t, engine.Close()) }()
	var plain recordBuffer
	var line [64]byte
	for i := range maxBatch {
		cmd := matcher.NewCommand(matcher.OrderNew)
		cmd.InputSeq, cmd.AccountID, cmd.SecurityID, cmd.Qty = uint64(i+1), 1, 1, 1
		plain.add(verify.AppendCommand(nil, cmd.Bytes(), verify.Outcome{}, nil))
		for range 2 * (i + 1) {
			plain.add(verify.AppendFill(nil, &line))
		}
	}
	c := &checker{engine: engine, records: must.Get(newRecordReader(bytes.NewReader(plain), 0))(t)}
	held := 0
	n, err := c.fill(maxBatch)
	for _, cmd := range c.batch {
		held += len(cmd.fills)
	}
	if last := 2 * maxBatch * (2 + 65); err != nil || n == 0 || held > maxFillBytes+last {
		t.Errorf("%d commands with %d bytes of fills, %v", n, held, err)
	}
	// The batch was not decided, so the next one begins with an engine that has no open order.
	var refusal *verify.Refusal
	if _, err := c.fill(maxBatch); !errors.As(err, &refusal) {
		t.Error(err)
	}
}
