package orderflow

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"posttrade/matcher"
)

// SyntheticOptions describe a synthetic flow. The same options give the same flow.
type SyntheticOptions struct {
	// Seed decides every draw; the other fields decide what the draws mean.
	Seed uint64
	// Steps is the number of steps; 0 = endless.
	Steps int64
	// Accounts are one or more; each trades both ways, and so may meet itself: the venue then prevents
	// the trade.
	Accounts []uint32
	// Securities are one or more; the first are the busiest.
	Securities []string
	// Prefix opens every client order id, which goes on with the order's number in base 36.
	Prefix string
	// MidPx is the start of every price walk, x 1e6; 0 = 100. It must be a multiple of TickPx and a
	// thousand of them at least, so that no price of the walk comes near zero.
	MidPx int64
	// TickPx is the distance between two prices, x 1e6; 0 = 0.01.
	TickPx int64
	// Live is the largest number of live orders, as far as the flow knows; 0 = 4096.
	Live int
}

// Synthetic generates a flow: half are new orders near a price that wanders, forty in a hundred are
// cancels of live orders, mostly young ones, and one in ten crosses the spread (IOC limits and
// market orders).
//
// Both sides are equally likely for every account, so positions and cash wander around zero and no
// limit is used up. Prices stay within a fifth of their start, inside the price collar. Memory is
// the table of live orders. Only the venue knows whether an order was filled before its cancel, so
// a cancel may name an order that is gone.
//
// It is a StepReader, for one goroutine. It allocates the text of an id for each step and nothing
// else that grows.
type Synthetic struct {
	options SyntheticOptions
	rng     *rand.Rand
	// mids has a price for each security, x 1e6.
	mids []int64
	// live has the numbers of orders that may still rest, oldest first; live[head:] are in use.
	live []int64
	head int
	// number is that of the last new order; the first one is 1.
	number int64
	// steps is how many steps Next has made.
	steps int64
}

// NewSynthetic returns the flow that the options describe. An error says which numbers make no
// flow; it does not check accounts and tickers, which the venue knows.
func NewSynthetic(o SyntheticOptions) (*Synthetic, error) {
	if len(o.Accounts) == 0 || len(o.Securities) == 0 {
		return nil, fmt.Errorf("orderflow: synthetic flow needs accounts and securities, got %d and %d",
			len(o.Accounts), len(o.Securities))
	}
	if o.MidPx == 0 {
		o.MidPx = 100 * matcher.PriceScale
	}
	if o.TickPx == 0 {
		o.TickPx = matcher.PriceScale / 100
	}
	if o.Live == 0 {
		o.Live = 4096
	}
	if o.MidPx < 1000*o.TickPx || o.MidPx%o.TickPx != 0 || o.TickPx < 0 || o.Live < 1 || o.Steps < 0 {
		return nil, fmt.Errorf("orderflow: synthetic flow: mid %d, tick %d, live %d, steps %d", o.MidPx,
			o.TickPx, o.Live, o.Steps)
	}
	s := &Synthetic{
		options: o, rng: rand.New(rand.NewPCG(o.Seed, 0x706f7374)),
		mids: make([]int64, len(o.Securities)), live: make([]int64, 0, 2*o.Live),
	}
	for i := range s.mids {
		s.mids[i] = o.MidPx
	}
	return s, nil
}

// Next makes the next step, or returns io.EOF after the last one. While no order is alive a cancel
// is not possible, so the first steps are new orders; with a full table every step cancels.
func (s *Synthetic) Next(step *Step) error {
	if s.options.Steps > 0 && s.steps == s.options.Steps {
		return io.EOF
	}
	s.steps++
	alive := len(s.live) - s.head
	switch draw := s.rng.IntN(100); {
	case alive > 0 && draw < 40, alive == s.options.Live:
		s.cancel(step, alive)
	case draw < 90:
		s.passive(step)
	default:
		s.marketable(step)
	}
	return nil
}

// security picks a security, the first most often, and moves its price: up or down a tick once in
// forty steps each, within a fifth of where it began.
func (s *Synthetic) security() (at int, mid int64) {
	n := len(s.mids)
	at = min(s.rng.IntN(n), s.rng.IntN(n))
	o := &s.options
	switch s.rng.IntN(40) {
	case 0:
		s.mids[at] += o.TickPx
	case 1:
		s.mids[at] -= o.TickPx
	}
	s.mids[at] = min(max(s.mids[at], o.MidPx-o.MidPx/5), o.MidPx+o.MidPx/5)
	return at, s.mids[at] / o.TickPx * o.TickPx
}

// order sets the fields that every new order has: 10 to 100 shares in tens, on either side. It
// returns the price around which the order goes.
func (s *Synthetic) order(step *Step) (mid int64) {
	at, mid := s.security()
	s.number++
	*step = Step{
		Action: New, ClientOrderID: s.clientID(s.number), Security: s.options.Securities[at],
		AccountID: s.options.Accounts[s.rng.IntN(len(s.options.Accounts))],
		Side:      matcher.Side(s.rng.IntN(2)), Quantity: int32(1+s.rng.IntN(10)) * 10,
	}
	return mid
}

// clientID names an order by its number, so that a cancel can name it without a table of names.
func (s *Synthetic) clientID(number int64) string {
	return s.options.Prefix + strconv.FormatInt(number, 36)
}

// passive makes an order 1 to 20 ticks from the mid, near it more often, on its own side: it rests
// unless the mid has moved past orders of the other side. It is noted as live.
func (s *Synthetic) passive(step *Step) {
	mid := s.order(step)
	offset := int64(1+min(s.rng.IntN(20), s.rng.IntN(20))) * s.options.TickPx
	if step.Side == matcher.Buy {
		offset = -offset
	}
	step.LimitPx = mid + offset
	if len(s.live) == cap(s.live) { // twice Live: at least half of it is before head
		s.live = s.live[:copy(s.live, s.live[s.head:])]
		s.head = 0
	}
	s.live = append(s.live, s.number)
}

// marketable makes an order that crosses the spread: three IOC limits for one market order.
func (s *Synthetic) marketable(step *Step) {
	mid := s.order(step)
	step.TimeInForce = IOC
	if s.rng.IntN(4) == 0 {
		step.Type = Market
		return
	}
	reach := 5 * s.options.TickPx
	if step.Side == matcher.Sell {
		reach = -reach
	}
	step.LimitPx = mid + reach
}

// cancel names one of the youngest hundred orders, or the oldest when the table is full, and drops
// it from the table.
func (s *Synthetic) cancel(step *Step, alive int) {
	at := s.head
	if alive < s.options.Live {
		at = len(s.live) - 1 - s.rng.IntN(min(alive, 100))
	}
	*step = Step{Action: Cancel, Ref: s.clientID(s.live[at])}
	if at == s.head {
		s.head++
		return
	}
	s.live = append(s.live[:at], s.live[at+1:]...)
}
