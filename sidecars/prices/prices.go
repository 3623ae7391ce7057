package prices

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/strictjson"
	"posttrade/matcher/timetext"
)

// PricingSubject is the subject of prices, pricing.<TICKER> of each.
//
// A ticker may have dots, as BRK.B has, and is then more than one token of the subject.
const PricingSubject = "pricing.>"

// Feed sequences the prices that other programs publish on the message broker,
// {"ticker","price","asOf"?}, in the same way as POST /prices.
//
// No caller waits for an answer. A message that cannot be used is counted and dropped, and so is
// one for which the feed has no room, because a later price replaces it, or that comes while
// nothing can be sequenced. A price that is older than the market price is sequenced, counted late,
// and changes nothing.
//
// The counters are what Collect states; any goroutine reads them. Take and Run count.
type Feed struct {
	gate *gate.Gate
	Desk *desk.Desk
	open func() bool
	now  func() time.Time
	// ticks are between the broker's goroutine and Run's.
	ticks chan feedTick

	Sequenced, Late, Malformed, Unknown, Dropped atomic.Uint64
}

// feedTick is one price that waits for the engine.
//
// px is x 1e6; asOfMillis is the event time of the price.
type feedTick struct {
	securityID uint32
	px         int64
	asOfMillis int64
}

// feedBacklog is how many prices may wait for the engine.
//
// The channel holds them in memory from the start: 8,192 of 24 bytes. When it is full, the newest
// price is the one that is dropped.
const feedBacklog = 8192

// New returns a feed that passes prices to d while open says that anything can be sequenced, and
// drops them otherwise. Run starts it.
func New(g *gate.Gate, d *desk.Desk, open func() bool) *Feed {
	return &Feed{gate: g, Desk: d, open: open, now: time.Now,
		ticks: make(chan feedTick, feedBacklog)}
}

// Take receives every message of PricingSubject from the broker. It never waits.
//
// The ticker of the subject and that of the message must be equal. data is not kept.
func (f *Feed) Take(subject string, data []byte) {
	ticker, px, asOf, dated, err := readPrice(data)
	if err != nil || strings.TrimPrefix(subject, "pricing.") != ticker {
		f.Malformed.Add(1)
		return
	}
	id, ok := f.gate.Security([]byte(ticker))
	if !ok {
		f.Unknown.Add(1)
		return
	}
	now := f.now().UnixMilli()
	if !dated || asOf > now { // a price from the future would stay fresh for too long
		asOf = f.gate.Now(id, now)
	}
	select {
	case f.ticks <- feedTick{id, px, asOf}:
	default:
		f.Dropped.Add(1)
	}
}

var (
	errPrice = errors.New("price is not above 0")
	errTime  = errors.New("not an RFC 3339 time")
)

// readPrice reads {"ticker","price","asOf"?}. It ignores other fields. dated is false when asOf is
// absent.
//
// px is x 1e6, read from a decimal without a float. asOf is RFC 3339.
func readPrice(data []byte) (ticker string, px, asOfMillis int64, dated bool, err error) {
	r := strictjson.NewReader(data)
	for key := range r.Members {
		switch string(key) {
		case "ticker":
			ticker = string(r.String())
		case "price":
			if px = r.Decimal(); px <= 0 {
				r.Fail(errPrice)
			}
		case "asOf":
			if asOfMillis, _, dated = timetext.Parse(r.String()); !dated {
				r.Fail(errTime)
			}
		default:
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return "", 0, 0, false, err
	}
	if ticker == "" || px == 0 {
		return "", 0, 0, false, errPrice
	}
	return ticker, px, asOfMillis, dated, nil
}

// Run sequences the prices that Take has queued, as many at a time as there are, until ctx ends.
//
// One batch is under way at a time, so prices of one ticker reach the engine in the order of
// arrival.
func (f *Feed) Run(ctx context.Context) error {
	batch := make([]feedTick, 0, desk.MaxBatch)
	for {
		select {
		case <-ctx.Done():
			return nil
		case tick := <-f.ticks:
			batch = append(batch[:0], tick)
		}
		for more := true; more && len(batch) < cap(batch); {
			select {
			case tick := <-f.ticks:
				batch = append(batch, tick)
			default:
				more = false
			}
		}
		if err := f.sequence(ctx, batch); err != nil {
			return err
		}
	}
}

// sequence passes a batch to the engine and waits until it is durable.
//
// nil also stands for a batch that was given up: nothing can be sequenced, the leadership is lost
// or the engine stops.
func (f *Feed) sequence(ctx context.Context, batch []feedTick) error {
	if !f.open() {
		f.Dropped.Add(uint64(len(batch)))
		return nil
	}
	err := desk.SubmitUntil(ctx, f.Desk, len(batch), func(i int, c *matcher.Command) error {
		*c = matcher.NewCommand(matcher.PriceTick)
		c.EventTimeMillis, c.SecurityID, c.PriceTicks =
			batch[i].asOfMillis, batch[i].securityID, batch[i].px
		return nil
	}, f.count)
	// The leadership is lost, and may come back: later prices replace these.
	if errors.Is(err, desk.ErrRefused) {
		f.Dropped.Add(uint64(len(batch)))
		return nil
	}
	if errors.Is(err, desk.ErrClosed) || errors.Is(err, desk.ErrFailed) || ctx.Err() != nil {
		return nil // the engine is stopping: no price is needed any more
	}
	return err
}

// count counts the answer to one price.
//
// The gate has a ticker's number from its registration on; until its first control the engine does
// not trade it. The price is above 0, so any other refusal is a bug.
func (f *Feed) count(a *desk.Answer) error {
	switch {
	case a.Refused() && a.Reason == matcher.UnknownSecurity:
		f.Unknown.Add(1)
	case a.Kind != matcher.EventApplied:
		return fmt.Errorf("prices: sequence %d was refused: %v", a.InputSeq, a.Reason)
	case a.Late:
		f.Late.Add(1)
	default:
		f.Sequenced.Add(1)
	}
	return nil
}
