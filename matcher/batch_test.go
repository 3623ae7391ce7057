package matcher

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"posttrade/ring/must"
)

// decideAll decides commands in batches of a size, 0 for one by one. It returns every event and the
// snapshot after them.
func decideAll(t rapid.TB, g *Genesis, commands []Command, size int) (events []Event,
	snapshot []byte) {
	t.Helper()
	e := must.Get(New(g))(t)
	defer e.Close()
	out := NewOutlet(8, func(said []Event) { events = append(events, said...) })
	for len(commands) > 0 {
		n := min(max(size, 1), len(commands))
		if size == 0 {
			e.Apply(&commands[0], out)
		} else {
			e.ApplyBatch(commands[:n], out)
		}
		out.Flush()
		if err := e.check(); err != nil {
			t.Fatalf("after sequence %d: %v", e.AppliedSeq(), err)
		}
		commands = commands[n:]
	}
	var b bytes.Buffer
	must.OK(t, e.WriteSnapshot(&b))
	return events, b.Bytes()
}

// sameInBatches asserts that the result does not depend on whether the engine looks at commands
// ahead of their turn.
func sameInBatches(t rapid.TB, g *Genesis, commands []Command) {
	t.Helper()
	want, state := decideAll(t, g, commands, 0)
	for _, size := range []int{1, 3, nearAhead, nearAhead + 1, farAhead + 1, len(commands)} {
		events, snapshot := decideAll(t, g, commands, size)
		if len(events) != len(want) {
			t.Fatalf("batches of %d: %d events, want %d", size, len(events), len(want))
		}
		for i := range events {
			if events[i] != want[i] {
				t.Fatalf("batches of %d, event %d:\n got %q\nwant %q",
					size, i, describe(events[i:i+1]), describe(want[i:i+1]))
			}
		}
		if !bytes.Equal(snapshot, state) {
			t.Fatalf("batches of %d: another snapshot", size)
		}
	}
}

// in is a command for another security than AAA.
func in(security uint32, c Command) Command { c.SecurityID = security; return c }

// What lookAhead finds out about a command must still hold at its turn, whatever the commands
// before it do.
func TestBatchDecidesAsOneByOne(t *testing.T) {
	for _, test := range []struct {
		name     string
		commands []Command
		last     string // the last event
	}{
		{"an account opened before its first order", []Command{
			control(AccountControl, 7, 0, 1), buy(7, 5, 10),
		}, "accepted ref=1 acct=7 buy 5 @10 rests"},
		{"an account disabled before its order", []Command{
			control(AccountControl, 1, 0, 0), buy(1, 5, 10),
		}, "rejected ref=1 acct=1 buy 5 @10 REJECTED ACCOUNT_DISABLED"},
		{"a security registered before its first order", []Command{
			NewSymbolRegister("NEW"), control(SecurityControl, 0, 6, SecurityEnabled), in(6, buy(1, 5, 10)),
		}, "accepted ref=1 acct=1 sec=6 buy 5 @10 rests"},
		{"the level of a price emptied before the next order at it", []Command{
			buy(1, 5, 10), cancel(1, 1), buy(1, 6, 10), cancel(1, 2), buy(1, 7, 10),
		}, "accepted ref=3 acct=1 buy 7 @10 rests"},
		{"the page of a price given to another security", []Command{
			buy(1, 5, 10), control(PolicyControl, 0, 0, 0), control(PolicyControl, 0, 0, 0),
			control(PolicyControl, 0, 0, 0),
			control(PolicyControl, 0, 0, 0), cancel(1, 1), in(bbb, buy(1, 6, 10)), buy(1, 7, 10),
			in(bbb, sell(2, 6, 10)),
		}, "filled ref=2 acct=1 sec=2 buy 6 @10 trade=2 counter=4 pos=6 avg=10 FILLED"},
		{"the page of a price given to another price", []Command{
			buy(1, 5, 10), control(PolicyControl, 0, 0, 0), control(PolicyControl, 0, 0, 0),
			control(PolicyControl, 0, 0, 0),
			control(PolicyControl, 0, 0, 0), cancel(1, 1), buy(1, 6, 20), buy(1, 7, 10), sell(2, 6, 20),
		}, "filled ref=2 acct=1 buy 6 @20 trade=2 counter=4 pos=6 avg=20 FILLED"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sameInBatches(t, testGenesis(), test.commands)
			events, _ := decideAll(t, testGenesis(), test.commands, len(test.commands))
			if got := describe(events[len(events)-1:])[0]; got != test.last {
				t.Errorf("the last event is %q, want %q", got, test.last)
			}
		})
	}
}

// Sparse prices and short-lived orders: pages are taken, freed and reused all the time.
func TestBatchDecidesAsOneByOneAtRandom(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var commands []Command
		orders := uint32(0)
		owners := []uint32{0}
		for range rapid.IntRange(1, 120).Draw(r, "commands") {
			account := rapid.SampledFrom([]uint32{1, 2, 3, 4, 5, 6}).Draw(r, "account")
			security := rapid.Uint32Range(1, 4).Draw(r, "security")
			side := rapid.SampledFrom([]Side{Buy, Sell}).Draw(r, "side")
			px := rapid.SampledFrom([]int64{1, 2, 3, 70, 71, 5000, 5001, 300_000}).Draw(r, "price")
			ref := rapid.Uint32Range(0, orders).Draw(r, "ref")
			qty := rapid.Int32Range(1, 4).Draw(r, "qty")
			switch kind := rapid.IntRange(0, 19).Draw(r, "kind"); {
			case kind < 9:
				c := in(security, limit(account, side, qty, px))
				c.Flags = rapid.SampledFrom([]uint16{0, 0, 0, FlagIOC, FlagFOK, FlagPostOnly}).Draw(r, "flags")
				commands = append(commands, c)
				orders++
				owners = append(owners, account)
			case kind < 16:
				commands = append(commands, cancel(owners[ref], ref))
			case kind < 18:
				commands = append(commands, in(security, replace(owners[ref], side, ref, qty, px)))
			case kind < 19:
				commands = append(commands, control(AccountControl, account, 0, Side(qty&1)))
			default:
				commands = append(commands, in(security, trade(account, side, qty)))
			}
		}
		g := testGenesis()
		g.Limits.PriceCollarBps = 0
		sameInBatches(r, g, commands)
	})
}
