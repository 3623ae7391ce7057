package replay

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/httpapi"
	httpclient "posttrade/httpapi/client"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/session"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/perf/orderflow"
	"posttrade/ring/must"
)

// house is an engine with every way in, and one admission for all of them.
type house struct {
	t                   *testing.T
	core                *engine.Engine
	decider             admission.Decider
	socket, address     string
	full, ahead, failed atomic.Bool
}

func newHouse(t *testing.T, settings []string) *house {
	h := &house{t: t}
	dir := t.TempDir()
	c := apptest.Settled(t, append([]string{"data.dir", dir, "risk.seed.accounts", "1,2,3",
		"risk.seed.securities", "AAPL,MSFT", "risk.max-order-quantity", "1000",
		"risk.entitlement.enforced", "false", "journal.durability", "os"}, settings...)...)
	secret := []byte(strings.Repeat("s", 32))
	verifier, err := gate.NewVerifier(secret, "", 0, time.Now)
	must.OK(t, err)
	clock := func() int64 { return time.Now().UnixMilli() }
	o := installation.EngineOptions(c)
	sockets, err := os.MkdirTemp("", "pts") // a socket's path is short
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(sockets) })
	h.socket = filepath.Join(sockets, "s")
	o.Session = func(k *engine.Engine) (*session.Server, error) {
		h.decider = installation.AdmissionOf(c, k)
		h.decider.StorageFull, h.decider.Held = h.full.Load, h.ahead.Load
		h.decider.Failed = func() error {
			if h.failed.Load() {
				return errors.New("a disk that is broken")
			}
			return nil
		}
		return session.Open(session.Options{Decider: h.decider, Socket: h.socket, Desk: k.Desk,
			Verifier: verifier, Clock: clock, Durable: k.Watermark.Durable, Idle: o.Idle,
			Seen: func() uint64 { return k.Stage.Applied() }})
	}
	if h.core, err = engine.Open(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.core.Stop(); err != nil {
			t.Error(err)
		}
	})
	h.serve(httpapi.NewOrderMatcher(httpapi.Deps{Decider: h.decider, Desk: h.core.Desk,
		Blotter: h.core.Blotter, Verifier: verifier, Durable: &h.core.Watermark,
		Seen: h.core.Stage.Applied, Clock: clock}))
	return h
}

func (h *house) serve(m *httpapi.OrderMatcher) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(h.t)
	h.address = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- m.Serve(ln) }()
	h.t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := errors.Join(m.Shutdown(ctx), <-served); err != nil {
			h.t.Error(err)
		}
	})
}

func (h *house) kill(on bool, version int64) error {
	return desk.SubmitUntil(context.Background(), h.core.Desk, 1,
		func(_ int, c *matcher.Command) error {
			*c = matcher.NewCommand(matcher.PolicyControl)
			if c.PriceTicks = version; on {
				c.Side = 1
			}
			return nil
		}, func(*desk.Answer) error { return nil })
}

func (h *house) sources(ready bool) error {
	if ready {
		h.core.Gate.SetReady()
		return nil
	}
	return h.core.Gate.SetSource(gate.AccountSource, gate.Bootstrapping, 0, 0, 0, "away")
}

func (h *house) journal(state string) error {
	h.full.Store(state == "full")
	h.failed.Store(state == "failed")
	h.ahead.Store(state == "ahead")
	return nil
}

// waysIn are the ways in to an engine.
var waysIn = map[string]func(*house) (venue, func(*orderflow.Step) (outcomeOf, error)){
	"http": func(h *house) (venue, func(*orderflow.Step) (outcomeOf, error)) {
		v := h.http()
		return v, v.book
	},
	"http-batch": func(h *house) (venue, func(*orderflow.Step) (outcomeOf, error)) {
		v := h.http()
		return batches{v}, v.book
	},
	"replay": func(h *house) (venue, func(*orderflow.Step) (outcomeOf, error)) {
		return &coreVenue{core: h.core, decider: &h.decider}, nil
	},
	"session": func(h *house) (venue, func(*orderflow.Step) (outcomeOf, error)) {
		c := must.Get(client.Dial(context.Background(), h.socket, "", client.Options{}))(h.t)
		h.t.Cleanup(func() { c.Close() })
		v := &sessionVenue{Client: c}
		return v, v.book
	},
}

// overHTTP is an httpVenue that books swaps too.
type overHTTP struct{ *httpVenue }

func (h *house) http() overHTTP {
	open := must.Get(httpVenues("http://"+h.address, ""))(h.t)
	v := must.Get(open())(h.t)
	h.t.Cleanup(func() { v.close() })
	return overHTTP{v.(*httpVenue)}
}

func (v overHTTP) book(s *orderflow.Step) (outcomeOf, error) {
	booked, err := v.client.Swap(v.ctx, &httpclient.SwapRequest{ClientOrderID: s.ClientOrderID,
		AccountID: s.AccountID, PayReceive: "Receive", Notional: s.Quantity,
		FixedRate: httpclient.Price(s.LimitPx), EffectiveDate: "2026-03-02",
		MaturityDate: "2031-03-02", Conventions: "USD-SOFR-1Y-ACT360"})
	return v.decided(booked.ContractID, booked.Sequence, err)
}

// batches sends every order as a batch.
type batches struct{ overHTTP }

func (v batches) create(steps []orderflow.Step, results []outcomeOf) error {
	return v.createBatch(steps, results)
}

// inWords is an outcome in the words of a scenario.
func inWords(o outcomeOf, err error) string {
	var p *httpclient.Problem
	switch {
	case errors.As(err, &p):
		if text, ok := map[string]string{"NOT_READY": "not ready", "STORAGE_FULL": "closed",
			"HISTORY_AHEAD": "closed", "JOURNAL_FAILED": "closed"}[p.Code]; ok {
			return text
		}
		return err.Error()
	case err != nil:
		for _, v := range []admission.Verdict{admission.Full, admission.Held, admission.Failed} {
			if strings.HasSuffix(err.Error(), v.String()) {
				return "closed"
			}
		}
		return strings.TrimPrefix(err.Error(), errBusy.Error()+": ")
	case o.reason == matcher.Duplicate.String(), o.reason == string(httpapi.CodeTermsDiffer):
		return "conflict: other terms"
	case o.verdict == gone:
		return "conflict: the order has ended"
	case o.verdict == refused:
		return "refused " + o.reason
	}
	return "accepted"
}

// sessionVenue sends over a session.
type sessionVenue struct {
	*client.Client
	venue // not the calls that no scenario makes
}

func (v *sessionVenue) number(security string) uint32 {
	id, _ := v.Security(context.Background(), security)
	return id
}

// ask flushes n commands with the correlations 0 to n-1 and reads their answers.
func (v *sessionVenue) ask(n int, results []outcomeOf) error {
	v.Flush()
	var failure error
	for answers := 0; answers < n; {
		r, err := v.Next()
		if err != nil {
			return err
		}
		if r.Kind != wire.Answer {
			continue
		}
		answers++
		o := &results[r.Correlation]
		if r.OrderRef != 0 {
			o.orderID = matcher.OrderID(uint64(r.Era)<<32 | uint64(r.OrderRef))
		}
		switch r.Code {
		case wire.NotReady:
			failure = errors.New(admission.NotReady.String())
		case wire.Unavailable:
			failure = errors.New(admission.Full.String())
		case wire.Conflict:
			if o.verdict, o.reason = gone, string(httpapi.CodeTermsDiffer); r.Reason == matcher.Invalid {
				o.reason = terminal
			}
		default:
			if r.Status == matcher.StatusRejected && r.Reason != matcher.Accepted {
				o.verdict, o.reason = refused, r.Reason.String()
			}
		}
	}
	return failure
}

func (v *sessionVenue) one(err error) (outcomeOf, error) {
	if err != nil {
		return outcomeOf{}, err
	}
	var results [1]outcomeOf
	err = v.ask(1, results[:])
	return results[0], err
}

func (v *sessionVenue) create(steps []orderflow.Step, results []outcomeOf) error {
	for i := range steps {
		s := &steps[i]
		o := client.NewOrder{Account: s.AccountID, Security: v.number(s.Security), Side: s.Side,
			Qty: s.Quantity, Flags: [...]uint16{0, matcher.FlagIOC, matcher.FlagFOK,
				matcher.FlagPostOnly}[s.TimeInForce]}
		if s.Type == orderflow.Limit {
			o.LimitPx = s.LimitPx
		}
		if err := v.Order(uint64(i), &o, s.ClientOrderID); err != nil {
			return err
		}
	}
	return v.ask(len(steps), results)
}

func (v *sessionVenue) cancel(id string) (outcomeOf, error) {
	return v.one(v.Client.Cancel(0, 1, refOf(id)))
}

func (v *sessionVenue) replace(id string, s *orderflow.Step) (outcomeOf, error) {
	return v.one(v.Client.Replace(0, s.AccountID, refOf(id), s.Quantity, s.LimitPx, s.ClientOrderID))
}

func (v *sessionVenue) trade(s *orderflow.Step) (outcomeOf, error) {
	return v.one(v.Trade(0, s.AccountID, v.number(s.Security), s.Side, s.Quantity, s.ClientOrderID))
}

func (v *sessionVenue) book(s *orderflow.Step) (outcomeOf, error) {
	terms := matcher.ContractTerms{AccountID: s.AccountID, Side: matcher.Buy, Notional: s.Quantity,
		FixedRate: s.LimitPx, Effective: 20514, Maturity: 22340}
	c := terms.Command()
	return v.one(v.Send(0, &c, s.ClientOrderID))
}

func refOf(id string) uint32 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(id, "ord-"), 10, 64)
	return uint32(n)
}
