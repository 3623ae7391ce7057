package installation

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/httpapi/client"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/prices"
)

// say publishes on a subject; no receiver acknowledges.
func (p *otherProgram) say(subject, body string) {
	p.t.Helper()
	must.OK(p.t, p.broker.Notify(subject, []byte(body)))
}

// TestPublishedPricesMoveTheMarket publishes prices as another program does.
func TestPublishedPricesMoveTheMarket(t *testing.T) {
	nats := brokertest.External(t)
	in := install(t, t.TempDir(), "nats.url", nats.URL())
	other := newOtherProgram(t, nats.URL())
	apptest.Until(t, "the feed listens", func() (bool, any) {
		err := other.broker.Notify("pricing.ABT", []byte(`{"ticker":"ABT","price":1}`))
		return in.Beside.Load().prices.Sequenced.Load() > 0, err
	})
	book := func(security string) (client.Trade, error) {
		return in.orders.BookMarketTrade(t.Context(), &client.TradeRequest{
			AccountID: 1, Security: security, Side: client.Buy, Quantity: 10,
		})
	}
	if _, err := book("MSFT"); reasonOf(err) != "PRICE_MISSING" {
		t.Errorf("a trade without a price: %v", err)
	}
	for i, price := range []string{"187.25", "187.251", "0.5"} {
		other.say("pricing.AAPL", `{"ticker":"AAPL","price":`+price+`,"exchange":"X","volume":[1,2]}`)
		apptest.Until(t, "the price is "+price, func() (bool, any) {
			trade, err := book("AAPL")
			return err == nil && trade.Price.String() == price, fmt.Sprint(i, trade.Price, err)
		})
	}
	other.say("pricing.BRK.B", `{"ticker":"BRK.B","price":450}`)
	apptest.Until(t, "the price of a ticker with a dot is there", func() (bool, any) {
		trade, err := book("BRK.B")
		return err == nil && trade.Price == client.Units(450), err
	})
	// A price of an hour ago is known and too old; a price of the future counts as one of now.
	other.say("pricing.MSFT", fmt.Sprintf(`{"ticker":"MSFT","price":"400","asOf":%q}`,
		time.Now().Add(-time.Hour).Format(time.RFC3339)))
	apptest.Until(t, "an old price is there", func() (bool, any) {
		_, err := book("MSFT")
		return reasonOf(err) == "PRICE_STALE", err
	})
	other.say("pricing.MSFT", `{"ticker":"MSFT","price":401,"asOf":"2099-01-01T00:00:00Z"}`)
	id, _ := in.Core.Gate.Security([]byte("MSFT"))
	apptest.Until(t, "a price of the future is there, as one of now", func() (bool, any) {
		px, at, ok := in.Core.Gate.Price(id)
		if ok && px == 401_000_000 && at > time.Now().UnixMilli() {
			t.Fatalf("the price is of %s", time.UnixMilli(at))
		}
		return ok && px == 401_000_000, px
	})
	if trade, err := book("MSFT"); err != nil || trade.Price != client.Units(401) {
		t.Errorf("a trade at the price of the future: %+v, %v", trade, err)
	}

	// A price older than the market price is recorded and counted, and changes nothing.
	before := in.Core.Journal.Answered()
	other.say("pricing.MSFT", `{"ticker":"MSFT","price":5,"asOf":"2020-01-01T00:00:00Z"}`)
	in.awaitMetrics(`svc_price_feed_total{outcome="late"} 1`, `svc_price_ticks_late_total 1`)
	if px, _, _ := in.Core.Gate.Price(id); px != 401_000_000 ||
		in.Core.Journal.Answered() != before+1 {
		t.Errorf("the market price is %d, %d commands came", px, in.Core.Journal.Answered()-before)
	}
	if trade, err := book("MSFT"); err != nil || trade.Price != client.Units(401) {
		t.Errorf("a trade after an older price: %+v, %v", trade, err)
	}

	// An unusable price is counted and changes nothing.
	head := in.Core.Journal.Answered()
	malformed := []string{
		`{"ticker":"MSFT"}`, `{"price":1}`, `{"ticker":"MSFT","price":0}`, `{"ticker":"MSFT","price":-1}`,
		`{"ticker":"MSFT","price":1.0000001}`, `{"ticker":"AAPL","price":1}`,
		`{"ticker":"MSFT","price":1,"asOf":"noon"}`,
		`{"ticker":"MSFT","price":1,"price":2}`, `MSFT 1`, ``,
	}
	for _, body := range malformed {
		other.say("pricing.MSFT", body)
	}
	other.say("pricing.MSFT.X", `{"ticker":"MSFT","price":1}`)
	other.say("pricing.NOSUCH", `{"ticker":"NOSUCH","price":1}`)
	in.awaitMetrics(fmt.Sprintf(`svc_price_feed_total{outcome="malformed"} %d`, len(malformed)+1),
		`svc_price_feed_total{outcome="unknown"} 1`, `svc_price_feed_total{outcome="dropped"} 0`)
	if n := in.Core.Journal.Answered(); n != head {
		t.Errorf("%d commands came of messages that mean nothing", n-head)
	}

	// The feed survives a restart of the broker.
	nats.Restart()
	apptest.Until(t, "the price after the restart is there", func() (bool, any) {
		// lost while the broker is down
		_ = other.broker.Notify("pricing.MSFT", []byte(`{"ticker":"MSFT","price":402}`))
		trade, err := book("MSFT")
		return err == nil && trade.Price == client.Units(402), err
	})
}

// reasonOf is the RiskReason of a refusal, "" for any other error.
func reasonOf(err error) string {
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Reason
	}
	return ""
}

// TestPriceFeedOutlivesALostLeadership refuses the feed's commands, as a member does that no longer
// leads, and then accepts them: the feed goes on.
func TestPriceFeedOutlivesALostLeadership(t *testing.T) {
	k := feedCore(t, t.TempDir())
	defer func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	}()
	proposals := must.Get(k.CommandRing())(t)
	refusing := must.Get(desk.New(proposals, 1))(t)
	feed := prices.New(k.Gate, k.Desk, func() bool { return true })
	feed.Desk = refusing
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }()
	for n := range uint64(3) {
		feed.Take("pricing.AAPL", []byte(`{"ticker":"AAPL","price":150}`))
		apptest.Until(t, "the price is handed in", func() (bool, any) {
			return !proposals.Empty(), len(ended)
		})
		lo, hi := proposals.Ready(1)
		refusing.Refuse(proposals.At(lo).InputSeq)
		proposals.Release(hi)
		apptest.Until(t, "the price is dropped", func() (bool, any) {
			return feed.Dropped.Load() == n+1, len(ended)
		})
	}
	cancel()
	if err := <-ended; err != nil || feed.Sequenced.Load() != 0 {
		t.Errorf("ended with %v, %d sequenced", err, feed.Sequenced.Load())
	}
}

// TestPriceOfATickerWithoutItsFirstControl: between a ticker's registration and its first control
// the gate has its number, and the engine does not trade it. Its price is counted as unknown, and
// the feed goes on.
func TestPriceOfATickerWithoutItsFirstControl(t *testing.T) {
	k := feedCore(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	feed := prices.New(k.Gate, k.Desk, func() bool { return true })
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }()
	submitOne(t, k, matcher.NewSymbolRegister("FRESH"))
	for n := range uint64(2) {
		feed.Take("pricing.FRESH", []byte(`{"ticker":"FRESH","price":150}`))
		feed.Take("pricing.AAPL", []byte(`{"ticker":"AAPL","price":150}`))
		apptest.Until(t, "both prices are counted", func() (bool, any) {
			return feed.Unknown.Load() == n+1 && feed.Sequenced.Load() == n+1, len(ended)
		})
	}
	id, _ := k.Gate.Security([]byte("FRESH"))
	control := matcher.NewCommand(matcher.SecurityControl)
	control.SecurityID, control.Side, control.PriceTicks = id, matcher.SecurityEnabled, 1
	submitOne(t, k, control)
	feed.Take("pricing.FRESH", []byte(`{"ticker":"FRESH","price":150}`))
	apptest.Until(t, "the price is taken", func() (bool, any) {
		return feed.Sequenced.Load() == 3, feed.Unknown.Load()
	})
	cancel()
	must.OK(t, <-ended)
	must.OK(t, k.Stop())
}

// TestPriceOfTheFirstMoment: the time 1970-01-01T00:00:00Z is a time like any other, not that of a
// message without one.
func TestPriceOfTheFirstMoment(t *testing.T) {
	k := feedCore(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	feed := prices.New(k.Gate, k.Desk, func() bool { return true })
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }()
	const first = `"asOf":"1970-01-01T00:00:00Z"}`
	feed.Take("pricing.AAPL", []byte(`{"ticker":"AAPL","price":150,`+first))
	apptest.Until(t, "the price is counted", func() (bool, any) {
		return feed.Sequenced.Load() == 1, len(ended)
	})
	id, _ := k.Gate.Security([]byte("AAPL"))
	if px, at, ok := k.Gate.Price(id); !ok || px != 150_000_000 || at != 0 {
		t.Errorf("the price is %d at %d, %v", px, at, ok)
	}
	feed.Take("pricing.AAPL", []byte(`{"ticker":"AAPL","price":151}`))
	feed.Take("pricing.AAPL", []byte(`{"ticker":"AAPL","price":152,`+first))
	apptest.Until(t, "both prices are counted", func() (bool, any) {
		return feed.Sequenced.Load()+feed.Late.Load() == 3, len(ended)
	})
	if px, _, _ := k.Gate.Price(id); px != 151_000_000 || feed.Late.Load() != 1 {
		t.Errorf("the price is %d, %d are late", px, feed.Late.Load())
	}
	cancel()
	must.OK(t, <-ended)
	must.OK(t, k.Stop())
}

// submitOne sequences a command and waits until it is durable.
func submitOne(t *testing.T, k *engine.Engine, c matcher.Command) {
	t.Helper()
	ticket := must.Get(k.Desk.Acquire(1))(t)
	defer ticket.Release()
	*ticket.Command(0) = c
	must.OK(t, ticket.Submit())
	must.OK(t, ticket.Wait(0))
}
