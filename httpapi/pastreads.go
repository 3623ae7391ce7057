package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"posttrade/journal/asof"
	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/sidecars/store"
)

// listPastAccounts is GET /as-of/{inputSeq}/accounts: GET /account/ of the account-service without
// the names, which no sequence decides.
func (x *exchange) listPastAccounts() problem {
	if p := x.noParameters(); p.status != 0 {
		return p
	}
	b := append(x.begin(), '[')
	for i, a := range x.views.Accounts() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendAccountID(b, a.ID), '}')
	}
	return x.send(200, append(b, ']'))
}

// pastControls is a gate.Snapshot without the states of the sources, which no sequence decides.
//
// Its members have the names and the order of the present's, so that a program reads both alike.
type pastControls struct {
	KillSwitch    bool                   `json:"killSwitch"`
	PolicyVersion int64                  `json:"policyVersion"`
	Limits        gate.LimitValues       `json:"limits"`
	Accounts      []gate.AccountControl  `json:"accounts"`
	Securities    []gate.SecurityControl `json:"securities"`
}

// showPastControls is GET /as-of/{inputSeq}/risk/control/snapshot.
func (x *exchange) showPastControls(moment *asof.Moment) problem {
	if p := x.noParameters(); p.status != 0 {
		return p
	}
	b, err := json.Marshal(controlsOf(moment))
	if err != nil {
		panic("httpapi: the controls do not marshal: " + err.Error()) // plain types: a bug
	}
	return x.send(200, append(x.begin(), b...))
}

// controlsOf is the gate's image as views and engine of a moment know it.
//
// Accounts are by id and securities by ticker. The caller holds the moment.
func controlsOf(moment *asof.Moment) pastControls {
	v, e := moment.Views(), moment.Engine()
	policy := v.Policy()
	c := pastControls{KillSwitch: policy.KillSwitch, PolicyVersion: policy.Version,
		Limits:   gate.LimitValues{Set: matcher.AllLimits, Values: e.RiskLimits()},
		Accounts: []gate.AccountControl{}, Securities: []gate.SecurityControl{}}
	own := map[uint32]*gate.LimitValues{}
	e.EachOwnLimits(func(o matcher.OwnLimits) bool {
		own[o.AccountID] = &gate.LimitValues{Set: o.Own, Values: o.Values}
		return true
	})
	for _, a := range v.Accounts() {
		c.Accounts = append(c.Accounts, gate.AccountControl{
			ID: a.ID, Enabled: a.Enabled, Version: a.Version, HeldBy: gate.Holder(a.ByHand),
			Limits: own[a.ID],
		})
	}
	for _, s := range v.Securities() {
		c.Securities = append(c.Securities, gate.SecurityControl{
			ID: s.ID, Ticker: s.Ticker, Enabled: s.Enabled, Halted: s.Halted, Restricted: s.Restricted,
			Version: s.Version, HeldBy: gate.Holder(s.EnabledByHand || s.HaltedByHand),
		})
	}
	slices.SortFunc(c.Securities, func(a, b gate.SecurityControl) int {
		return cmp.Compare(a.Ticker, b.Ticker)
	})
	return c
}

// listPastTrades is GET /as-of/{inputSeq}/trades: GET /trades of the trade-processor over the
// journal's own fills, without what no sequence decides.
//
// It walks the journal's fills up to the page's end, at a low priority: a filter that matches
// little reads much. A ticker that no security has matches no fill.
func (x *exchange) listPastTrades(ctx context.Context, moment *asof.Moment) problem {
	var (
		page     = newListQuery(cursorTrades)
		security uint32
		named    bool
	)
	if p := x.eachParameter(func(name string, value []byte) (ok bool) {
		if name == "security" {
			security, _ = x.m.Gate.Security(value)
			named = true
			return len(value) <= matcher.TickerBytes
		}
		return page.read(name, value)
	}); p.status != 0 {
		return p
	}
	fills, err := moment.Fills(ctx, page.after, page.limit+1, func(f *matcher.Fill) bool {
		return (!page.asked || f.AccountID == page.account) && (!named || f.SecurityID == security)
	})
	if err != nil {
		return x.m.failed(err)
	}
	next := uint64(0)
	if len(fills) > page.limit {
		fills = fills[:page.limit]
		next = fills[page.limit-1].TradeSeq
	}
	b := append(x.begin(), `{"items":[`...)
	b = appendEach(b, fills, x.appendPastTrade)
	return x.send(200, endList(b, cursorTrades, next))
}

// appendPastTrade appends the document of a fill as a trade.
//
// The ticker is the gate's present one; a ticker never changes its security.
func (x *exchange) appendPastTrade(b []byte, f *matcher.Fill) []byte {
	t := store.Trade{
		ID: matcher.TradeID(f.TradeSeq), Seq: f.TradeSeq, AccountID: f.AccountID,
		Security: x.m.Gate.Ticker(f.SecurityID), Side: f.Side, Quantity: int64(f.Qty), Price: f.Px,
		ExecutedAt: f.TimeMillis,
	}
	if f.OrderRef != 0 {
		t.OrderID = matcher.OrderID(f.Order())
	}
	return append(appendTradeOrigin(appendTradeTerms(b, &t), &t), '}')
}
