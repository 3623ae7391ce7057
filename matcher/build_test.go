package matcher

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"posttrade/ring"
	"posttrade/ring/must"
)

func TestNewRefusesAnUnusableGenesis(t *testing.T) {
	tests := []struct {
		name string
		edit func(*Genesis)
		want string
	}{
		{"format", func(g *Genesis) { g.Format = 2 }, "format=2"},
		{"no tick", func(g *Genesis) { g.TickPx = 0 }, "tickPx=0"},
		{"order quantity", func(g *Genesis) { g.Limits.MaxOrderQty = 1 << 31 }, "maxOrderQty=2147483648"},
		{"order notional", func(g *Genesis) { g.Limits.MaxOrderNotional = 0 }, "maxOrderNotional=0"},
		{"position", func(g *Genesis) { g.Limits.MaxPositionQty = -1 }, "maxPositionQty=-1"},
		{"concentration", func(g *Genesis) { g.Limits.MaxConcentrationNotional = 0 },
			"maxConcentrationNotional=0"},
		{"credit", func(g *Genesis) { g.Limits.CreditLimit = 0 }, "creditLimit=0"},
		{"age", func(g *Genesis) { g.Limits.PriceMaxAgeMillis = 0 }, "priceMaxAgeMillis=0"},
		{"collar", func(g *Genesis) { g.Limits.PriceCollarBps = -1 }, "priceCollarBps=-1"},
		{"keys", func(g *Genesis) { g.Limits.IdempotencyCapacity = 0 }, "idempotencyCapacity=0"},
		{"accounts", func(g *Genesis) { g.Limits.MaxAccounts = 0 }, "maxAccounts=0"},
		{"securities", func(g *Genesis) { g.Limits.MaxSecurities = 1<<20 + 1 }, "maxSecurities=1048577"},
		{"contracts", func(g *Genesis) { g.Limits.MaxContracts = 0 }, "maxContracts=0"},
		{"open orders", func(g *Genesis) { g.Limits.MaxOpenOrders = 0 }, "maxOpenOrders=0"},
		{"retained orders", func(g *Genesis) { g.Limits.RetainedOrders = -1 }, "retainedOrders=-1"},
		{"positions", func(g *Genesis) {
			g.Limits.MaxAccounts, g.Limits.MaxSecurities = 1<<15, 1<<14
		}, "maxAccounts x maxSecurities=536870912, allowed are 1 to 268435456"},
		{"orders", func(g *Genesis) {
			g.Limits.MaxOpenOrders, g.Limits.RetainedOrders = MaxOrders-1, 1
		}, "maxOpenOrders + retainedOrders"},
		{"more accounts than allowed", func(g *Genesis) { g.Limits.MaxAccounts = 3 }, "accounts=4"},
		{"more securities than allowed", func(g *Genesis) { g.Limits.MaxSecurities = 4 }, "securities=5"},
		{"an account twice", func(g *Genesis) { g.Accounts[1].ID = 1 }, "account 1 is there twice"},
		{"a security twice", func(g *Genesis) { g.Securities[1].Ticker = "AAA" },
			`security "AAA" is there twice`},
		{"no ticker", func(g *Genesis) { g.Securities[1].Ticker = "" }, `security ""`},
		{"a ticker of 33", func(g *Genesis) { g.Securities[1].Ticker = strings.Repeat("A", 33) },
			"ticker is not"},
		{"a ticker with a zero", func(g *Genesis) { g.Securities[1].Ticker = "A\x00" }, "ticker is not"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := testGenesis()
			tt.edit(g)
			e, err := New(g)
			if !errors.Is(err, ErrGenesis) || e != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// The default installation's reserves are address space, not memory.
func TestNewReservesWithoutTouching(t *testing.T) {
	g := testGenesis()
	g.Limits.MaxAccounts, g.Limits.MaxSecurities, g.Limits.MaxContracts = 4096, 4096, 1<<20
	g.Limits.MaxOpenOrders, g.Limits.RetainedOrders, g.Limits.IdempotencyCapacity = 1<<20, 1<<16, 1<<16
	e := must.Get(New(g))(t)
	defer e.Close()
	b := snapshotOf(t, e)
	if want := 52 + 36 + 4*28 + 5*52 + 5*(12+3) + 5*20 + 4; len(b) != want {
		t.Errorf("a fresh snapshot has %d bytes, want %d", len(b), want)
	}
}

// A caller may change its genesis record after New without an effect on the engine.
func TestNewCopiesTheGenesis(t *testing.T) {
	g := testGenesis()
	r := newRig(t, g)
	g.Accounts[0].ID, g.Securities[0].Ticker, g.Limits.MaxOrderQty = 99, "ZZZ", 1
	if kept := r.e.Genesis(); kept.Accounts[0].ID != 1 || kept.Securities[0].Ticker != "AAA" ||
		kept.Limits.MaxOrderQty == 1 {
		t.Errorf("the engine's genesis is now %+v", kept)
	}
}

// Every pair of account and security has its own row.
func TestPositionRowsAreDistinct(t *testing.T) {
	for accounts := 1; accounts <= 20; accounts++ {
		const securities = 3
		var a ring.Arena
		p := newPositions(&a, accounts, securities)
		seen := map[uint32]bool{}
		for account := range accounts {
			for security := uint32(1); security <= securities; security++ {
				row := p.at(account, security)
				if seen[row] || int(row) >= len(p.rows) || p.account(row) != account ||
					p.security(row) != security {
					t.Errorf("%d accounts: account %d, security %d has row %d, back %d, %d",
						accounts, account, security, row, p.account(row), p.security(row))
				}
				seen[row] = true
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMemoryThatCannotBeMappedIsAnError(t *testing.T) {
	var a ring.Arena
	if ring.Carve[account](&a, math.MaxInt) != nil || a.Err() == nil {
		t.Error("no error")
	}
	first := a.Err()
	if ring.Carve[account](&a, 1) != nil || a.Err() != first {
		t.Errorf("after a failure: %v, want %v", a.Err(), first)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestReplayRefusesWhatIsNotNext(t *testing.T) {
	r := newRig(t, testGenesis())
	command := func(sequence uint64) *Command {
		c := buy(1, 1, 100)
		c.InputSeq = sequence
		return &c
	}
	must.OK(t, r.e.Replay(command(1), r.out))
	before := r.e.StateHash()
	unknown := command(2)
	unknown.Type = 18
	template := command(2)
	template.TemplateID = 9
	for _, tt := range []struct {
		name string
		give *Command
		want error
		text string
	}{
		{"again", command(1), ErrSequence, "replay sequence=1 after 1"},
		{"a hole", command(3), ErrSequence, "replay sequence=3 after 1"},
		{"unknown type", unknown, ErrCommandType, "replay sequence=2: matcher: decode type=18"},
		{"unknown template", template, ErrTemplate, "replay sequence=2: matcher: decode template=9"},
	} {
		err := r.e.Replay(tt.give, r.out)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.text)
		}
	}
	if r.e.StateHash() != before {
		t.Error("a refused command has changed something")
	}
	batch := []Command{*command(2), *command(3), *unknown, *command(4)}
	if n, err := r.e.ReplayBatch(batch, r.out); n != 2 || !errors.Is(err, ErrCommandType) ||
		r.e.AppliedSeq() != 3 {
		t.Errorf("batch: %d, %v, applied %d", n, err, r.e.AppliedSeq())
	}
}

func TestApplyPanicsOnWhatIsNoCommand(t *testing.T) {
	r := newRig(t, testGenesis())
	for _, edit := range []func(*Command){
		func(c *Command) { c.Type = 99 },
		func(c *Command) { c.TemplateID = 99 },
	} {
		c := buy(1, 1, 100)
		edit(&c)
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "matcher: apply: matcher: decode") {
					t.Errorf("panic %q", text)
				}
			}()
			r.e.Apply(&c, r.out)
		}()
		if r.e.AppliedSeq() != 0 {
			t.Error("an unknown command took a sequence")
		}
	}
	r.e.orders.room = 0 // a pool that does not fit the limits
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "no room in the pool for order 1") {
			t.Errorf("panic %q", text)
		}
	}()
	c := buy(1, 1, 100)
	r.e.Apply(&c, r.out)
}
