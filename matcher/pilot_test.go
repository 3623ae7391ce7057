package matcher

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	commandsFlag = flag.Int("commands", 50_000, "commands in each random run of the engine")
	seedFlag     = flag.Uint64("seed", 0, "seed of the random runs; 0 draws one and prints it")
)

// runLength returns how many commands a random run has: fewer with -short, unless a number is set.
func runLength() int {
	if testing.Short() && *commandsFlag == 50_000 {
		return 10_000
	}
	return *commandsFlag
}

// seeded returns the run's source of randomness and prints its seed.
func seeded(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("reproduce with -seed=%d -commands=%d", seed, runLength())
	return rand.New(rand.NewPCG(seed, 0))
}

// wordBytes is how many bytes of a tape make one command.
const wordBytes = 8

// pilot turns a tape of bytes into commands that keep a small exchange busy:
// every type, mostly sensible, aimed at orders and accounts that exist.
type pilot struct {
	now    int64
	newer  bool      // after the upgrade no record of version 1 follows one of version 2
	policy int64     // the version of the last policy
	parts  []Command // of a change of limits, to come
	recent []Event   // of orders that came onto the book, the youngest last
}

func newPilot() *pilot { return &pilot{now: noon} }

// crowded is a genesis record with limits that a run meets now and then.
func crowded() *Genesis {
	g := testGenesis()
	g.Limits.MaxOrderQty = 60
	g.Limits.MaxOrderNotional = 6_000 * unit
	g.Limits.MaxPositionQty = 220
	g.Limits.MaxConcentrationNotional = 20_000 * unit
	g.Limits.CreditLimit = 24_000 * unit
	g.Limits.PriceCollarBps = 1_000
	g.Limits.MaxAccounts, g.Limits.MaxSecurities = 12, 8
	g.Limits.MaxOpenOrders, g.Limits.RetainedOrders = 48, 24
	g.Limits.IdempotencyCapacity = 40
	g.Limits.MaxContracts = 300
	return g
}

// command reads one word of the tape.
func (p *pilot) command(w []byte) Command {
	p.now += int64(w[7] % 8)
	if len(p.parts) > 0 && w[0] < 250 {
		c := p.parts[0]
		p.parts = p.parts[1:]
		c.EventTimeMillis = p.now
		return c
	}
	account := 1 + uint32(w[1]%8)*uint32(w[1]%3+1)/2 // mostly 1 to 4
	if w[1] < 200 {
		account = 1 + uint32(w[1]%3)
	}
	c := NewCommand(OrderNew)
	c.AccountID, c.Side = account, Side(w[2]&1)
	c.SecurityID = 1 + uint32(w[2]>>1&1)
	if w[2] > 240 {
		c.SecurityID = uint32(w[2] >> 1 & 7)
	}
	c.Qty = int32(w[4]%40) + 1
	if w[4] > 245 {
		c.Qty = int32(w[4]) - 250
	} else if w[4] > 240 {
		c.Qty = 60 + int32(w[4]&1)
	}
	c.LimitPx = (100 + int64(w[3]%9) - 4) * unit
	if w[3] > 240 {
		c.LimitPx = (100+int64(w[3]%64)-32)*unit + int64(w[3]%3)*500
	}
	switch t := w[0]; {
	case t < 120:
		p.order(&c, w)
	case t < 150:
		c.Type = OrderCancel
		p.aim(&c, w)
	case t < 180:
		c.Type = OrderReplace
		p.aim(&c, w)
		c.PriceTicks = int64(max(w[5], 215) - 215)
		c.Flags = []uint16{0, 0, 0, 0, 0, FlagPostOnly, FlagIOC, FlagFOK}[w[6]%8]
	case t < 200:
		c.Type = TradeNew
		c.PriceTicks = int64(max(w[5], 215) - 215)
		if w[6] > 250 {
			c.OrderRef = uint32(w[5] % 24)
		}
	case t < 210:
		p.booking(&c, w)
	case t < 228:
		c.Type, c.PriceTicks = PriceTick, c.LimitPx
		if w[6] > 245 {
			c.PriceTicks = int64(w[5]) - 3
		}
	case t < 234:
		c.Type, c.Qty = ForceFill, c.Qty%8
		p.aim(&c, w)
		c.LimitPx = (100 + int64(w[3]%9) - 4) * unit
	case t < 238:
		c.Type, c.Side = AccountControl, Side(oneIf(w[3] > 30))|Side(w[4]&4)
	case t < 242:
		c.Type, c.Side = SecurityControl, Side(w[3]%16)
		if w[3] > 30 {
			c.Side = SecurityEnabled
		}
	case t < 244:
		c.Type, c.Side = RestrictionControl, Side(oneIf(w[3] < 50))
	case t < 246:
		c.Type, c.Side = PolicyControl, Side(oneIf(w[3] < 20))
		p.policy += int64(w[6]%16) - 1
		c.PriceTicks, c.LimitPx = p.policy, int64(w[5]%4)*8_000*unit
		c.Qty = int32(w[4]%3) * 120
	case t < 248:
		c = NewSymbolRegister("S" + string(rune('0'+w[3]%12)))
		return c
	case t < 249:
		return NewRiskExtract(int64(w[3]), uint32(w[4]))
	case t < 250:
		c.Type = SnapshotMark
	case t < 251 && p.newer: // records of version 1 cannot have the type
		p.limits(account, w)
		c, p.parts = p.parts[0], p.parts[1:]
	case t < 252 && p.newer && w[5] < 128:
		c = NewCapacityControl(Capacities{OrderRoom: OrderRoom{Open: 40 + int(w[2]%21),
			Retained: 16 + int(w[3]%25), Keys: 32 + int(w[4]%25)}})
	case t < 252:
		p.now += int64(w[3]) * 200 // prices age
	case t < 253:
		p.now -= int64(w[3]) * 100 // and times go back
	default:
		p.order(&c, w)
	}
	c.EventTimeMillis = p.now
	p.newer = p.newer || w[7] == 255 && w[6] >= 224
	c.Version = OldestVersion
	if p.newer {
		c.Version = RecordVersion + uint16(w[7]&1)
	} else if c.Type == AccountControl || c.Type == SecurityControl {
		c.Side &^= KeepEnabled | KeepHalted // no record of version 1 has them
	}
	return c
}

// limits makes a change of some limits, to values that a run meets. Now and then a part of it is
// missing, comes twice or is wrong; what has not come yet gives way to the next change.
func (p *pilot) limits(account uint32, w []byte) {
	p.policy += int64(w[6] % 16)
	c := LimitsChange{Version: p.policy, ForAccount: w[4]&1 == 0, Set: LimitSet(w[3]&127 | 1)}
	if c.ForAccount {
		c.AccountID, c.Remove = account, LimitSet(w[5]&127)
		c.Set &^= c.Remove
		if c.Set|c.Remove == 0 {
			c.Remove = 1
		}
	}
	least := RiskLimits{10, 1_000 * unit, 40, 4_000 * unit, 4_000 * unit, 2_000, 0}
	for id := range c.Values {
		if c.Set.Has(LimitID(id)) {
			c.Values[id] = least[id] * (1 + int64(w[2]%7))
		}
	}
	if c.Set.Has(LimitCollar) {
		c.Values[LimitCollar] = int64(w[2]%3) * 500
	}
	p.parts = c.AppendTo(nil)
	at := int(w[7]) % len(p.parts)
	switch wrong := &p.parts[at]; w[7] / 8 {
	case 0:
		wrong.Qty += int32(w[2])
	case 1:
		wrong.LimitPx = -int64(w[2] % 2)
	case 2:
		wrong.SecurityID = uint32(w[2] % 9)
	case 3:
		wrong.AccountID += uint32(w[2] % 3)
	case 4:
		wrong.OrderRef = uint32(w[2] % 3)
	case 5:
		wrong.PriceTicks += int64(w[2] % 3)
	case 6:
		wrong.Side ^= 1
	case 7:
		wrong.Flags = FlagIOC
	case 8:
		p.parts = append(p.parts, p.parts[at:]...)
	case 9, 10:
		p.parts = p.parts[:at+1]
	}
}

// order makes an ORDER_NEW with a time in force, sometimes with a key or a verdict.
func (p *pilot) order(c *Command, w []byte) {
	c.Flags = []uint16{0, 0, 0, 0, 0, 0, 0, 0, FlagIOC, FlagIOC, FlagFOK, FlagFOK, FlagPostOnly,
		FlagPostOnly,
		FlagIOC | FlagFOK, FlagShadow}[w[6]%16]
	if w[6] > 230 {
		c.LimitPx = 0
	}
	c.PriceTicks = int64(max(w[5], 215) - 215)
	if w[5] < 6 {
		c.OrderRef = uint32(w[3] % 24)
	}
}

// aim points a command at an order that came onto the book recently and may still be there, mostly
// as its owner, half the time at its own price.
func (p *pilot) aim(c *Command, w []byte) {
	if len(p.recent) == 0 || w[1] > 250 {
		c.OrderRef = uint32(w[6])
		return
	}
	o := &p.recent[int(w[6])%len(p.recent)]
	c.OrderRef = o.OrderRef
	if w[1] < 245 {
		c.AccountID, c.SecurityID, c.Side = o.AccountID, o.SecurityID, o.Side
	}
	if w[5]&1 == 0 {
		c.LimitPx = o.Px
	}
}

// saw gives the pilot the events of its command.
func (p *pilot) saw(events []Event) {
	for i := range events {
		if events[i].Kind == EventRested || events[i].Flags&EventRests != 0 {
			if p.recent = append(p.recent, events[i]); len(p.recent) > 24 {
				p.recent = p.recent[1:]
			}
		}
	}
}
