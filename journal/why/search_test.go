package why

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/journal/asof"
	"posttrade/journal/asof/asoftest"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestEveryRoomIsExplainedByItsOwnRaise: a refusal names the raise of its own room, and none where
// no raise can change the room.
func TestEveryRoomIsExplainedByItsOwnRaise(t *testing.T) {
	b := newBook(t)
	room := testGenesis().Limits.Capacities()
	room.Accounts++
	accounts := b.do(matcher.NewCapacityControl(room)).InputSeq
	refused := func(next func(n int) matcher.Command) uint64 {
		for n := 1; ; n++ {
			if ev := b.do(next(n)); ev.Reason == matcher.Capacity {
				return ev.InputSeq
			}
		}
	}
	ofAccounts := refused(func(n int) matcher.Command {
		return control(matcher.AccountControl, uint32(n), 0, matcher.SecurityEnabled, 0)
	})
	room.Accounts, room.Contracts = room.Accounts+1, room.Contracts+1
	contracts := b.do(matcher.NewCapacityControl(room)).InputSeq
	ofContracts := refused(func(int) matcher.Command {
		return (&matcher.ContractTerms{AccountID: 1, Notional: 1, FixedRate: 40_000, Effective: 20_000,
			Maturity: 21_000}).Command()
	})
	room.Securities++
	securities := b.do(matcher.NewCapacityControl(room)).InputSeq
	ofSecurities := refused(func(n int) matcher.Command {
		return matcher.NewSymbolRegister(fmt.Sprintf("S%d", n))
	})
	ofSubjects := refused(func(n int) matcher.Command {
		return matcher.NewTokenRevoke(matcher.SubjectHash{int64(n), 1}, b.now)
	})
	x := b.explainer()
	for _, want := range []struct {
		rule, what string
		at         uint64
		by         []uint64
	}{
		{"risk.max-accounts", "accounts", ofAccounts, []uint64{accounts}},
		{"risk.max-contracts", "contracts", ofContracts, []uint64{contracts}},
		{"risk.max-securities", "securities", ofSecurities, []uint64{securities}},
		{"revocations", "subjects whose tokens are refused", ofSubjects, nil},
	} {
		why := must.Get(x.Command(t.Context(), want.at))(t)
		var by []uint64
		for _, cause := range why.Because {
			by = append(by, *cause.InputSeq)
		}
		if subject := "the number of " + want.what + " would be "; !strings.Contains(why.Text, subject) {
			t.Errorf("%q does not say %q", why.Text, subject)
		}
		if *why.Rule != want.rule || !slices.Equal(by, want.by) {
			t.Errorf("%s because of %v, want %s of %v: %s", *why.Rule, by, want.rule, want.by, why.Text)
		}
	}
}

// TestARaiseThatLeavesARoomIsNotItsCause: every raise says all rooms. A refusal names the one that
// has changed its room, and the genesis record when none has.
func TestARaiseThatLeavesARoomIsNotItsCause(t *testing.T) {
	b := newBook(t)
	room := testGenesis().Limits.Capacities()
	full := func() uint64 {
		for {
			ev := b.do((&matcher.ContractTerms{AccountID: 1, Notional: 1, FixedRate: 40_000,
				Effective: 20_000, Maturity: 21_000}).Command())
			if ev.Reason == matcher.Capacity {
				return ev.InputSeq
			}
		}
	}
	raise := func(of *int) uint64 {
		*of++
		return b.do(matcher.NewCapacityControl(room)).InputSeq
	}
	var causes, refusals []uint64
	raise(&room.Securities)
	causes, refusals = append(causes, 0), append(refusals, full())
	causes = append(causes, raise(&room.Contracts))
	raise(&room.Securities)
	raise(&room.Accounts)
	refusals = append(refusals, full())
	x := b.explainer()
	for i, at := range refusals {
		why := must.Get(x.Command(t.Context(), at))(t)
		if len(why.Because) != 1 || *why.Because[0].InputSeq != causes[i] {
			t.Errorf("because of %+v, want %d: %s", why.Because, causes[i], why.Text)
		}
	}
}

// TestAnExplanationNeedsOneShadow: an order that the head no longer has is explained while another
// reader keeps the only other shadow.
func TestAnExplanationNeedsOneShadow(t *testing.T) {
	g := testGenesis()
	g.Limits.RetainedOrders = 2
	b := &book{asoftest.New(t, t.TempDir(), g), t, 1_772_445_600_000}
	for n := range uint32(40) {
		b.do(order(1, 1, matcher.Buy, 1, 100))
		cancel := matcher.NewCommand(matcher.OrderCancel)
		cancel.AccountID, cancel.OrderRef = 1, n+1
		b.do(cancel)
	}
	b.Settle()
	h := must.Get(asof.New(b.Journal, asof.Options{Patience: time.Millisecond}))(t)
	defer h.Close()
	other := must.Get(h.At(t.Context(), 1))(t)
	defer other.Release()
	const number = 5
	head := must.Get(h.At(t.Context(), h.Head()))(t)
	if _, kept := head.Views().Numbered(number); kept {
		t.Fatal("the head still has the order")
	}
	head.Release()
	why, err := New(h).Order(t.Context(), number)
	if err != nil || why.Decision != "CANCELED" || why.Because[0].Value != "cancel of ord-5" {
		t.Errorf("%+v %v", why, err)
	}
}

// TestACancelNamesTheWholeNumber: the command has the lower half of it.
func TestACancelNamesTheWholeNumber(t *testing.T) {
	q := &inquiry{x: &Explanation{}, number: 1<<32 + 5}
	cancel := matcher.NewCommand(matcher.OrderCancel)
	cancel.OrderRef = 5
	q.endedBy(&cancel, &matcher.Event{})
	if got := q.x.Because[0].Value; got != "cancel of ord-4294967301" {
		t.Error(got)
	}
}

// ended is a context that has ended, and that only a replay asks about.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }

// TestSequence0ReadsNoHistory: there is no such command, and no reading is needed to know it.
func TestSequence0ReadsNoHistory(t *testing.T) {
	b := newBook(t)
	b.do(order(1, 1, matcher.Sell, 10, 101))
	x := b.explainer()
	var beyond *asof.BeyondError
	if _, err := x.Command(ended{t.Context()}, 0); !errors.As(err, &beyond) || beyond.Head != 1 {
		t.Error(err)
	}
	if _, err := x.Contract(t.Context(), false, 0); !errors.Is(err, ErrNoContract) {
		t.Error(err)
	}
}

// TestALimitThatEndsAMarketOrderIsNamed: a market purchase without a collar executes up to the
// price at which a limit is reached. What cancels the rest of it is that limit's setting.
func TestALimitThatEndsAMarketOrderIsNamed(t *testing.T) {
	for reason, limit := range map[matcher.RiskReason]func(*matcher.Limits) *int64{
		matcher.OrderNotional: func(l *matcher.Limits) *int64 { return &l.MaxOrderNotional },
		matcher.CreditLimit:   func(l *matcher.Limits) *int64 { return &l.CreditLimit },
		matcher.ConcentrationLimit: func(l *matcher.Limits) *int64 {
			return &l.MaxConcentrationNotional
		},
	} {
		g := testGenesis()
		g.Limits.PriceCollarBps = 0
		*limit(&g.Limits) = 3_000 * unit
		b := &book{asoftest.New(t, t.TempDir(), g), t, 1_772_445_600_000}
		b.do(order(1, 1, matcher.Sell, 11, 100))
		b.do(order(2, 1, matcher.Buy, 1, 100)) // a last price
		b.do(order(1, 1, matcher.Sell, 10, 101))
		at := b.do(order(3, 1, matcher.Buy, 30, 0)).InputSeq
		why := must.Get(b.explainer().Command(t.Context(), at))(t)
		setting := matcher.LimitSettings[limitOf(reason)]
		if why.Decision != "CANCELED" || *why.Reason != reason.String() || *why.Rule != setting ||
			!strings.HasSuffix(why.Text, "10 of it executed in 1 fill; it was cancelled: the rest of the "+
				"book is beyond what "+setting+" allows.") {
			t.Errorf("%s: %s %s %s: %s", reason, why.Decision, *why.Reason, *why.Rule, why.Text)
		}
	}
}
