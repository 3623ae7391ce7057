package blotter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// smallGenesis has limits so small that the tests reach every one of them.
func smallGenesis() *matcher.Genesis {
	return &matcher.Genesis{
		Format: matcher.GenesisFormat,
		TickPx: 1000,
		Accounts: []matcher.GenesisAccount{{ID: 7, Enabled: true}, {ID: 3, Enabled: true},
			{ID: 900_001, Enabled: true}},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true},
			{Ticker: "CCC", Enabled: true, Halted: true},
		},
		Limits: matcher.Limits{
			MaxOrderQty: 1_000, MaxOrderNotional: 1e15, MaxPositionQty: 1_000_000,
			MaxConcentrationNotional: 1e17, CreditLimit: 1e17, PriceMaxAgeMillis: 10_000,
			IdempotencyCapacity: 24, MaxAccounts: 6, MaxSecurities: 6, MaxContracts: 40,
			MaxOpenOrders: 60, RetainedOrders: 20,
		},
	}
}

// source drives a real engine with random commands and returns its events.
type source struct {
	rng    *rand.Rand
	engine *matcher.Engine
	out    *matcher.Outlet
	events []matcher.Event // of the last command
	time   int64
	issued uint32 // order references so far
	number uint64 // of the last order
	spread int64  // range of prices, in ticks
	policy int64  // the version of the last policy, which mostly rises
}

func newSource(t testing.TB, g *matcher.Genesis, seed uint64) *source {
	t.Helper()
	t.Logf("seed %d", seed)
	engine := must.Get(matcher.New(g))(t)
	t.Cleanup(func() { engine.Close() })
	s := &source{rng: rand.New(rand.NewPCG(seed, 1)), engine: engine, time: 1_700_000_000_000,
		spread: 40}
	s.out = matcher.NewOutlet(8,
		func(events []matcher.Event) { s.events = append(s.events, events...) })
	return s
}

// apply decides one command and returns its events.
func (s *source) apply(c matcher.Command) []matcher.Event {
	s.events = s.events[:0]
	s.engine.Apply(&c, s.out)
	s.out.Flush()
	for i := range s.events {
		if e := &s.events[i]; e.Kind == matcher.EventAccepted || e.Kind == matcher.EventRejected {
			if number := e.Order(); number > s.number {
				s.number, s.issued = number, uint32(number)
			}
		}
	}
	return s.events
}

// step decides one random command.
func (s *source) step() []matcher.Event { return s.apply(s.command()) }

func (s *source) pick(of ...uint32) uint32 { return of[s.rng.IntN(len(of))] }

func (s *source) account() uint32 { return s.pick(7, 7, 3, 3, 900_001, 900_001, 12, 13, 14, 15) }

func (s *source) security() uint32 { return s.pick(1, 1, 1, 1, 2, 2, 2, 3, 4, 5, 6, 7) }

func (s *source) px() int64 { return 1000 * (10_000 + s.rng.Int64N(s.spread)) }

// key is 0 or one of a few keys, so that duplicates occur.
func (s *source) key() int64 {
	if s.rng.IntN(2) == 0 {
		return 0
	}
	return 1 + s.rng.Int64N(80)
}

func (s *source) command() matcher.Command {
	s.time += s.rng.Int64N(50)
	c := s.draw()
	if c.TemplateID == matcher.TemplateCommand {
		c.EventTimeMillis = s.time
		if c.Type == matcher.PriceTick { // older or newer than what trades: both come late
			c.EventTimeMillis += s.time%7*1000 - 3000
		}
	}
	return c
}

func (s *source) draw() matcher.Command {
	of := func(t matcher.CommandType) matcher.Command {
		c := matcher.NewCommand(t)
		c.AccountID, c.SecurityID = s.account(), s.security()
		c.Side = matcher.Side(s.rng.IntN(2))
		return c
	}
	switch n := s.rng.IntN(100); {
	case n < 50:
		c := of(matcher.OrderNew)
		c.Qty, c.LimitPx, c.PriceTicks = 1+s.rng.Int32N(50), s.px(), s.key()
		c.Flags = []uint16{0, 0, 0, 0, matcher.FlagIOC, matcher.FlagFOK,
			matcher.FlagPostOnly}[s.rng.IntN(7)]
		switch s.rng.IntN(20) {
		case 0:
			c.LimitPx = 0
		case 1:
			c.Qty = 2000
		case 2:
			c.OrderRef = uint32(matcher.PriceCollar)
		}
		return c
	case n < 80:
		c := of(matcher.OrderCancel)
		if n >= 68 {
			c = of(matcher.OrderReplace)
			c.Qty, c.LimitPx, c.PriceTicks = 1+s.rng.Int32N(60), s.px(), s.key()
		}
		c.OrderRef = s.issued + 1 - min(s.issued, uint32(s.rng.IntN(40)))
		if o, ok := s.engine.Order(c.OrderRef); ok && s.rng.IntN(20) > 0 {
			c.AccountID, c.SecurityID, c.Side = o.AccountID, o.SecurityID, o.Side
			if s.rng.IntN(3) == 0 {
				c.LimitPx = o.LimitPx
			}
		}
		return c
	case n < 83:
		c := of(matcher.ForceFill)
		c.OrderRef = s.issued - min(s.issued, uint32(s.rng.IntN(40)))
		c.Qty, c.LimitPx = 1+s.rng.Int32N(20), s.px()
		if o, ok := s.engine.Order(c.OrderRef); ok {
			c.AccountID = o.AccountID
		}
		return c
	case n < 85:
		c := of(matcher.TradeNew)
		c.Qty, c.PriceTicks = 1+s.rng.Int32N(50), s.key()
		return c
	case n < 87:
		return s.booking()
	case n < 91:
		c := of(matcher.PriceTick)
		c.PriceTicks = s.px()
		return c
	case n < 93:
		c := of(matcher.AccountControl)
		c.Side, c.PriceTicks = matcher.Side(1-s.rng.IntN(5)/4), s.rng.Int64N(1000)
		c.OrderRef = uint32(c.PriceTicks % 3) // two epochs, and by hand
		return c
	case n < 96:
		c := of(matcher.SecurityControl)
		c.Side, c.PriceTicks = matcher.Side(s.pick(0, 1, 1, 1, 1, 3)), s.rng.Int64N(1000)
		c.OrderRef = uint32(c.PriceTicks % 3)
		return c
	case n < 97:
		c := of(matcher.RestrictionControl)
		c.Side, c.PriceTicks = matcher.Side(s.rng.IntN(6)/5), s.rng.Int64N(1000)
		return c
	case n < 98 && s.rng.IntN(2) == 0:
		s.policy += 1 + s.rng.Int64N(2)
		change := matcher.LimitsChange{Version: s.policy, ForAccount: s.rng.IntN(2) == 0,
			Set: 1 << matcher.LimitPosition}
		change.Values[matcher.LimitPosition] = 1_000_000 + s.rng.Int64N(9)
		if change.ForAccount {
			change.AccountID = s.account()
		}
		return change.AppendTo(nil)[0]
	case n < 98:
		c := of(matcher.PolicyControl)
		s.policy += s.rng.Int64N(4)
		c.Side, c.PriceTicks = matcher.Side(s.rng.IntN(6)/5), s.policy
		c.Qty, c.LimitPx = s.rng.Int32N(2)*1_000_000, s.rng.Int64N(2)*1e17
		return c
	case n < 99:
		return matcher.NewSymbolRegister(fmt.Sprintf("SYM%d", s.rng.IntN(4)))
	default:
		if s.rng.IntN(2) == 0 {
			return matcher.NewCommand(matcher.SnapshotMark)
		}
		return matcher.NewRiskExtract(19_000, 1)
	}
}

// booking is an OTC booking, mostly a valid one.
func (s *source) booking() matcher.Command {
	effective := uint16(s.rng.IntN(1000))
	terms := matcher.ContractTerms{
		AccountID: s.account(), Side: matcher.Side(s.rng.IntN(2)), Notional: s.rng.Int32N(1e6),
		FixedRate: s.rng.Int64N(100_000) - 50_000, Effective: effective,
		Maturity:   effective + uint16(s.rng.IntN(50)),
		Convention: s.rng.Uint32N(6), Swaption: s.rng.IntN(2) == 0, Expiry: uint16(s.rng.IntN(200)),
		Style: matcher.ExerciseStyle(s.rng.IntN(4)),
	}
	c := terms.Command()
	c.PriceTicks = s.key()
	return c
}

// clientID is the id that the order of a command carries in these tests: of
// every length, and never the same twice, unless it is very short.
func clientID(inputSeq uint64) []byte {
	id := bytes.Repeat(binary.BigEndian.AppendUint64(nil, inputSeq*0x9e3779b97f4a7c15), 8)
	return id[:inputSeq%(MaxClientID+1)]
}

// observe feeds the events of one command to views.
func observe(v *Views, events []matcher.Event) {
	for i := range events {
		v.Observe(&events[i], clientID(events[i].InputSeq))
	}
}

func newTestViews(t testing.TB, g *matcher.Genesis) *Views {
	t.Helper()
	v := must.Get(NewViews(g))(t)
	t.Cleanup(func() { v.Close() })
	return v
}

func imageOf(t testing.TB, v *Views) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := v.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo says %d, %v after %d bytes", n, err, b.Len())
	}
	return b.Bytes()
}
