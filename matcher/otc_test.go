package matcher

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// swap is a valid booking: account 1 pays 2.5 % on 1,000 units.
func swap() ContractTerms {
	return ContractTerms{
		AccountID: 1, Side: Sell, Notional: 1_000, FixedRate: 25_000, Effective: 20_000, Maturity: 21_000,
		Convention: 2,
	}
}

// swaption is the option on swap.
func swaption() ContractTerms {
	t := swap()
	t.Swaption, t.Expiry, t.Style = true, 19_990, Bermudan
	return t
}

// termed returns terms after a change.
func termed(t ContractTerms, change func(*ContractTerms)) ContractTerms {
	change(&t)
	return t
}

// booked returns the command that books terms, under a key.
func booked(t ContractTerms, key int64) Command { return keyed(t.Command(), key) }

// contractsOf returns the contracts that the engine holds.
func contractsOf(e *Engine) (all []ContractInfo) {
	e.EachContract(func(c ContractInfo) bool { all = append(all, c); return true })
	return all
}

func TestBookingsArePackedAsTheFormatSays(t *testing.T) {
	for _, tt := range []struct {
		name  string
		terms ContractTerms
		// the record: header, inputSeq, time, limitPx, priceTicks, orderRef, account, security, qty, …
		want string
	}{
		{"swap", ContractTerms{
			AccountID: 0x51525354, Side: Sell, Notional: 0x71727374, FixedRate: -2, Effective: 0x4142,
			Maturity:   0x4344,
			Convention: 0x61626364,
		}, "380001006f000200 0000000000000000 0000000000000000 feffffffffffffff 0000000000000000" +
			"42414443 54535251 64636261 74737271 00000000 0c 01 0000"},
		{"swaption", ContractTerms{
			AccountID: 1, Side: Buy, Notional: 2, FixedRate: 3, Effective: 0xfffe, Maturity: 0xffff,
			Convention: 4, Swaption: true, Style: American, Expiry: 0x6162,
		}, "380001006f000200 0000000000000000 0000000000000000 0300000000000000 0000000000000000" +
			"feffffff 01000000 04026261 02000000 00000000 0d 00 0000"},
	} {
		c := tt.terms.Command()
		c.Version = RecordVersion
		want, err := hex.DecodeString(strings.ReplaceAll(tt.want, " ", ""))
		if err != nil || !slices.Equal(c.Bytes()[:], want) {
			t.Errorf("%s: %v\n got %x\nwant %x", tt.name, err, c.Bytes()[:], want)
		}
		back, err := Decode(want)
		if terms, ok := back.ContractTerms(); err != nil || !ok || terms != tt.terms {
			t.Errorf("%s: read %+v, %v, %v; want %+v", tt.name, terms, ok, err, tt.terms)
		}
		for _, hostile := range []struct {
			at   int
			with byte
			want error
		}{{0, 40, ErrBlockLength}, {2, 2, ErrTemplate}, {6, 4, ErrVersion}, {61, 2, ErrSide},
			{62, 16, ErrFlags}, {63, 1, ErrFlags}} {
			b := slices.Clone(want)
			b[hostile.at] = hostile.with
			if _, err := Decode(b); !errors.Is(err, hostile.want) {
				t.Errorf("%s: byte %d is %d: %v, want %v", tt.name, hostile.at, hostile.with, err, hostile.want)
			}
		}
	}
	for _, c := range []Command{NewCommand(OrderNew), NewSymbolRegister("AAA"), NewRiskExtract(1, 1)} {
		c.LimitPx |= 12 // outside the bits of a type
		if terms, ok := c.ContractTerms(); ok || terms != (ContractTerms{}) {
			t.Errorf("%+v has terms %+v", c, terms)
		}
	}
	// A convention that does not fit eight bits must not become another one.
	terms := termed(swaption(), func(t *ContractTerms) { t.Convention = 256 })
	wide := terms.Command()
	if got, _ := wide.ContractTerms(); got.Representable() || got.Style != Bermudan ||
		got.Expiry != 19_990 {
		t.Errorf("convention 256 becomes %+v", got)
	}
}

func TestBookingsMakeContractsAndNothingElse(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(tick(aaa, 100))
	r.must(buy(1, 5, 90))
	before := equitiesOf(r.e)
	r.want(booked(swap(), noKey), "contract acct=1 sec=0 sell 1000 @0.025")
	said := r.do(booked(swaption(), 7))
	ev := &said[0]
	if terms, ok := ev.Cmd().ContractTerms(); len(said) != 1 || ev.Kind != EventContract ||
		ev.Flags != EventFirst|EventLast || !ok || terms != swaption() ||
		ev.Cmd().InputSeq != ev.InputSeq {
		t.Errorf("the booking says %+v of %+v", said, terms)
	}
	r.want(booked(termed(swap(), func(t *ContractTerms) { t.FixedRate, t.Side = -1, Buy }), noKey),
		"contract acct=1 sec=0 buy 1000 @"+trim(-1))
	negative := termed(swap(), func(t *ContractTerms) { t.FixedRate, t.Side = -1, Buy })
	want := []ContractInfo{{3, swap()}, {4, swaption()}, {5, negative}}
	if got := contractsOf(r.e); !slices.Equal(got, want) {
		t.Errorf("contracts\n got %+v\nwant %+v", got, want)
	}
	if after := equitiesOf(r.e); !slices.Equal(after, before) {
		t.Errorf("a booking has changed\n%v\nto\n%v", before, after)
	}
	if n := r.e.Counts().Contracts; n != 3 || r.e.AppliedSeq() != 5 {
		t.Errorf("%d contracts at sequence %d", n, r.e.AppliedSeq())
	}
	first := 0
	r.e.EachContract(func(ContractInfo) bool { first++; return false })
	if first != 1 {
		t.Errorf("%d contracts read by a caller that wants one", first)
	}
}

// Each row could be refused for its own reason and for the reasons of all rows below it.
func TestBookingsAreRefusedInTheOrderOfTheReasons(t *testing.T) {
	g := testGenesis()
	g.Limits.MaxOrderNotional, g.Limits.CreditLimit, g.Limits.MaxContracts = 2_000*unit, 1_999*unit, 1
	r := newRig(t, g)
	r.must(booked(swap(), noKey)) // the store is full
	bad := ContractTerms{AccountID: 4, Notional: 2_001, Convention: 5}
	r.must(control(PolicyControl, 0, 0, 1))
	r.refused(booked(bad, noKey), KillSwitch)
	r.must(policyOf(2, 0))
	bad.AccountID = 9
	r.refused(booked(bad, noKey), UnknownAccount)
	bad.AccountID = 4
	r.refused(booked(bad, noKey), AccountDisabled)
	bad.AccountID = 1
	r.refused(booked(bad, noKey), Invalid)
	bad = termed(swap(), func(t *ContractTerms) { t.Notional = 2_001 })
	r.refused(booked(bad, noKey), OrderNotional)
	bad.Notional = 2_000
	r.refused(booked(bad, noKey), CreditLimit)
	bad.Notional = 1_999
	r.refused(booked(bad, noKey), Capacity)
	if got := contractsOf(r.e); len(got) != 1 {
		t.Errorf("refusals have left %+v", got)
	}
}

func TestBookingsInUnusableTermsAreInvalid(t *testing.T) {
	r := newRig(t, testGenesis())
	for name, change := range map[string]func(t *ContractTerms){
		"no notional":               func(t *ContractTerms) { t.Notional = 0 },
		"a negative notional":       func(t *ContractTerms) { t.Notional = -1_000 },
		"no rate":                   func(t *ContractTerms) { t.FixedRate = 0 },
		"maturity on the effective": func(t *ContractTerms) { t.Maturity = t.Effective },
		"maturity before it":        func(t *ContractTerms) { t.Maturity = t.Effective - 1 },
		"the first unknown convention": func(t *ContractTerms) {
			t.Convention = uint32(len(conventions))
		},
		"the last unknown convention": func(t *ContractTerms) { t.Convention = 255 },
	} {
		r.refused(booked(termed(swap(), change), noKey), Invalid)
		r.refused(booked(termed(swaption(), change), noKey), Invalid)
		if terms := termed(swap(), change); terms.Representable() {
			t.Errorf("%s is representable", name)
		}
	}
	r.refused(booked(termed(swap(), func(t *ContractTerms) { t.Convention = 1 << 31 }), noKey),
		Invalid)
	r.refused(booked(termed(swaption(), func(t *ContractTerms) { t.Expiry = t.Effective + 1 }), noKey),
		Invalid)
	r.refused(booked(termed(swaption(), func(t *ContractTerms) { t.Style = 3 }), noKey), Invalid)
	for _, flag := range []uint16{FlagIOC, FlagFOK, FlagPostOnly} {
		r.refused(flags(booked(swap(), noKey), flag), Invalid)
	}
	if got := contractsOf(r.e); len(got) != 0 {
		t.Fatalf("refusals have left %+v", got)
	}
	// The extreme terms that a contract can have.
	g := testGenesis()
	g.Limits.MaxOrderNotional, g.Limits.CreditLimit = maxInt64, maxInt64
	r = newRig(t, g)
	r.must(booked(ContractTerms{AccountID: 1, Notional: 1<<31 - 1, FixedRate: minInt64, Maturity: 1},
		noKey))
	r.must(flags(booked(ContractTerms{AccountID: 1, Notional: 1, FixedRate: maxInt64,
		Effective: 65_534, Maturity: 65_535,
		Convention: uint32(len(conventions)) - 1, Swaption: true, Expiry: 65_534, Style: American},
		noKey), FlagShadow))
}

// Credit is judged, and a booking uses none of it.
func TestBookingsAreJudgedByCreditAndUseNone(t *testing.T) {
	g := testGenesis()
	g.Limits.CreditLimit = 1_500 * unit
	for _, side := range []Side{Buy, Sell} {
		for _, direction := range []Side{Buy, Sell} {
			r := newRig(t, g)
			most := termed(swap(), func(t *ContractTerms) { t.Notional, t.Side = 1_500, direction })
			over := termed(most, func(t *ContractTerms) { t.Notional++ })
			book := func(terms ContractTerms, less int32, want RiskReason) {
				t.Helper()
				terms.Notional -= less
				if want == Accepted {
					r.must(booked(terms, noKey))
					return
				}
				r.refused(booked(terms, noKey), want)
			}
			for range 2 {
				book(most, 0, Accepted)
				book(over, 0, CreditLimit)
			}
			r.must(limit(1, side, 4, 100)) // an open order uses 400
			book(most, 400, Accepted)
			book(over, 400, CreditLimit)
			r.must(limit(2, side.Opposite(), 3, 100)) // 300 of them are executed
			book(most, 400, Accepted)
			book(over, 400, CreditLimit)
			// Rests on the other side, for less than what it would give back.
			r.must(limit(1, side.Opposite(), 2, 110-20*int64(side)))
			book(most, 400, Accepted)
			book(over, 400, CreditLimit)
			r.must(limit(1, side, 11, 100)) // and equities have their whole credit
			r.refused(limit(1, side, 1, 100), CreditLimit)
		}
	}
	// At the ends of the range the sum never exceeds it.
	a := account{executed: maxInt64, open: [2]int64{maxInt64, 5}}
	b := account{executed: -maxInt64, open: [2]int64{5, maxInt64}}
	none := account{}
	if a.used() != maxInt64 || b.used() != maxInt64 || none.used() != 0 {
		t.Errorf("used %d, %d and %d", a.used(), b.used(), none.used())
	}
}

func TestContractKeysAreAFamilyOfTheirOwn(t *testing.T) {
	for _, reread := range []bool{false, true} {
		r := newRig(t, testGenesis())
		r.reread = reread
		r.must(tick(aaa, 100))
		order := r.must(keyed(buy(1, 5, 90), 7))
		r.must(keyed(trade(2, Buy, 5), 8))
		// 4
		r.must(booked(swap(), 7))
		// 5
		r.must(booked(swaption(), 8))
		// 6
		r.refused(booked(termed(swap(), func(t *ContractTerms) { t.Style = 0; t.Notional = 0 }), 9),
			Invalid)
		duplicate := func(c Command, kind IdempotencyKind, ref uint64, decision RiskReason) {
			t.Helper()
			ev := r.do(c)[0]
			gotKind, gotRef, gotDecision := ev.Duplicated()
			if ev.Kind != EventRejected || ev.Reason != Duplicate || gotKind != kind || gotRef != ref ||
				gotDecision != decision {
				t.Errorf("%+v\n got %+v of kind %d, %d %v; want kind %d, %d %v", c, ev, gotKind, gotRef,
					gotDecision, kind, ref, decision)
			}
			if kind == KeyContract && (ev.OrderRef != 0 || ev.SecurityID != 0) {
				t.Errorf("a repeated booking speaks of order %d and security %d", ev.OrderRef, ev.SecurityID)
			}
		}
		duplicate(booked(swap(), 7), KeyContract, 4, Accepted)
		duplicate(booked(swap(), 8), KeyContract, 5, Accepted) // other terms: the edge compares them
		duplicate(booked(swap(), 9), KeyContract, 6, Invalid)
		duplicate(keyed(buy(1, 5, 90), 7), KeyOrder, uint64(order), Accepted)
		duplicate(keyed(buy(2, 5, 90), 8), KeyTrade, 3, Accepted)
		r.must(keyed(buy(1, 5, 90), 9))
		r.must(booked(swap(), noKey))
		r.must(booked(swap(), noKey))
		if n := r.e.Counts(); n.Contracts != 4 || n.Keys != 6 {
			t.Errorf("%+v, want 4 contracts and 6 keys", n)
		}
	}
}

// A state that differs in one term of one contract has another hash.
func TestStateHashCoversEveryTerm(t *testing.T) {
	hashOf := func(terms ContractTerms) [32]byte {
		r := newRig(t, testGenesis())
		r.must(booked(terms, noKey))
		return r.e.StateHash()
	}
	seen := map[[32]byte]string{hashOf(swaption()): "nothing"}
	for name, change := range map[string]func(t *ContractTerms){
		"account":    func(t *ContractTerms) { t.AccountID = 2 },
		"side":       func(t *ContractTerms) { t.Side = Buy },
		"notional":   func(t *ContractTerms) { t.Notional++ },
		"rate":       func(t *ContractTerms) { t.FixedRate = -t.FixedRate },
		"effective":  func(t *ContractTerms) { t.Effective++ },
		"maturity":   func(t *ContractTerms) { t.Maturity++ },
		"convention": func(t *ContractTerms) { t.Convention++ },
		"expiry":     func(t *ContractTerms) { t.Expiry++ },
		"style":      func(t *ContractTerms) { t.Style++ },
		"product":    func(t *ContractTerms) { *t = swap() },
	} {
		hash := hashOf(termed(swaption(), change))
		if other, ok := seen[hash]; ok {
			t.Errorf("a state with another %s has the hash of %s", name, other)
		}
		seen[hash] = name
	}
}

// A booking in an engine restored from an older format continues as in any other.
func TestBookingContinuesOnEveryFormat(t *testing.T) {
	for format := int32(4); format <= 6; format++ {
		r := &rig{t: t, e: restore(t, assemble(whole(format))), now: noon}
		r.out = NewOutlet(8, func(events []Event) { r.said = append(r.said, events...) })
		held := contractsOf(r.e)
		ids := map[int32]string{4: "", 5: "SW-30 SW-31 ", 6: "SW-30 SWPT-31 "}[format]
		for r.e.Counts().Contracts < 3 {
			r.must(booked(swaption(), noKey))
			ids += fmt.Sprintf("SWPT-%d ", r.e.AppliedSeq())
		}
		r.refused(booked(swaption(), noKey), Capacity)
		r.reread = true
		r.refused(booked(swaption(), noKey), Capacity)
		var got string
		for i, c := range contractsOf(r.e) {
			got += ContractID(c.Swaption, c.ID) + " "
			if i < len(held) && c != held[i] {
				t.Errorf("format %d: contract %+v has become %+v", format, held[i], c)
			}
		}
		if got != ids {
			t.Errorf("format %d: contracts %s, want %s", format, got, ids)
		}
	}
}

func TestContractIDs(t *testing.T) {
	for _, tt := range []struct {
		text     string
		swaption bool
		id       uint64
	}{{"SW-1", false, 1}, {"SWPT-42", true, 42}, {"SW-18446744073709551615", false, 1<<64 - 1}} {
		swaption, id, ok := ParseContractID(tt.text)
		if !ok || swaption != tt.swaption || id != tt.id || ContractID(swaption, id) != tt.text {
			t.Errorf("%s: %v %d %v, written %s", tt.text, swaption, id, ok, ContractID(swaption, id))
		}
	}
	for _, text := range []string{
		"", "SW-", "SWPT-", "SW-0", "SW-01", "SW-+1", "SW--1", "sw-1", "SWPT1", "SWP-1", "SW-1 ", " SW-1",
		"SW-1x",
		"SW-18446744073709551616", "1", "ord-1", "SW-1_0", "SW-0x1",
	} {
		if swaption, id, ok := ParseContractID(text); ok || id != 0 || swaption {
			t.Errorf("%q is read as %v %d", text, swaption, id)
		}
	}
}

// The table is part of the format: an entry never changes once it is assigned.
func TestConventionsAndStylesAreWhatTheContractSays(t *testing.T) {
	want := []Convention{
		{"USD-SOFR-1Y-ACT360", "USD-SOFR", "1Y", "ACT/360", "USD"},
		{"USD-SOFR-3M-ACT360", "USD-SOFR", "3M", "ACT/360", "USD"},
		{"EUR-ESTR-1Y-ACT360", "EUR-ESTR", "1Y", "ACT/360", "EUR"},
		{"GBP-SONIA-1Y-ACT365F", "GBP-SONIA", "1Y", "ACT/365F", "GBP"},
		{"JPY-TONA-1Y-ACT365F", "JPY-TONA", "1Y", "ACT/365F", "JPY"},
	}
	for i, w := range want {
		got, ok := ConventionAt(uint32(i))
		index, known := ConventionIndex([]byte(w.Name))
		if got != w || !ok || index != uint32(i) || !known {
			t.Errorf("convention %d is %+v (%v), its name leads to %d (%v); want %+v", i, got, ok, index,
				known, w)
		}
	}
	if _, ok := ConventionAt(uint32(len(want))); ok || len(conventions) != len(want) {
		t.Errorf("there are %d conventions, want %d", len(conventions), len(want))
	}
	for _, name := range []string{"", "usd-sofr-1y-act360", "USD-SOFR-1Y-ACT360 ", "USD-SOFR-1Y"} {
		if index, ok := ConventionIndex([]byte(name)); ok {
			t.Errorf("%q is convention %d", name, index)
		}
	}
	for style, name := range []string{"European", "Bermudan", "American"} {
		got, ok := ParseExerciseStyle([]byte(name))
		if !ok || got != ExerciseStyle(style) || got.String() != name || !got.Known() {
			t.Errorf("style %d: %s is %d (%v) and called %v", style, name, got, ok, got)
		}
	}
	if ExerciseStyle(3).Known() || ExerciseStyle(3).String() != "UNKNOWN" {
		t.Error("there is a fourth style")
	}
	for _, name := range []string{"", "european", "EUROPEAN", "American ", "UNKNOWN"} {
		if style, ok := ParseExerciseStyle([]byte(name)); ok {
			t.Errorf("%q is style %v", name, style)
		}
	}
}
