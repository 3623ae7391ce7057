package riskextract

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestCutOfNothing(t *testing.T) {
	cut, err := renderCut(Marker{Seq: 1, SessionDate: 0, PriceVersion: 0}, new(fakeState))
	want := "#cut schema=3 seq=1 sessionDateEpochDay=0 priceVersion=0 rows=0 contracts=0\n" +
		cutColumns + "#contracts\n" + cutTerms
	if err != nil || string(cut.Bytes) != want || cut.SHA256 != hexSum(want) || cut.Rows != 0 ||
		cut.Contracts != 0 {
		t.Errorf("got %q %+v, %v", cut.Bytes, cut, err)
	}
}

func TestCutRefusesWhatItCannotSay(t *testing.T) {
	good := Marker{Seq: 7, SessionDate: 20_000, PriceVersion: 1}
	securities := []matcher.SecurityInfo{{ID: 1, Ticker: "AAA"}, {ID: 2, Ticker: "B,B"},
		{ID: 3, Ticker: `B"B`}, {ID: 4}}
	held := func(ids ...uint32) *fakeState {
		s := &fakeState{securities: securities}
		for _, id := range ids {
			s.positions = append(s.positions, matcher.PositionInfo{AccountID: 5, SecurityID: id, Qty: 1})
		}
		return s
	}
	terms := matcher.ContractTerms{AccountID: 1, Notional: 1, FixedRate: 1, Maturity: 1}
	booked := func(edit func(*matcher.ContractInfo), ids ...uint64) *fakeState {
		s := &fakeState{securities: securities}
		for _, id := range ids {
			s.contracts = append(s.contracts, matcher.ContractInfo{ID: id, ContractTerms: terms})
		}
		edit(&s.contracts[len(s.contracts)-1])
		return s
	}
	as := func(*matcher.ContractInfo) {}
	for _, tt := range []struct {
		name  string
		m     Marker
		state *fakeState
		want  string
	}{
		{"no sequence", Marker{SessionDate: 1}, held(1), "seq=0"},
		{"a day before 1970", Marker{Seq: 1, SessionDate: -1}, held(1), "sessionDateEpochDay=-1"},
		{"a day after 9999", Marker{Seq: 1, SessionDate: lastDay + 1}, held(1),
			"sessionDateEpochDay=2932897"},
		{"a security that is not registered", good, held(9), "securityId=9"},
		{"a security without a ticker", good, held(4), "securityId=4"},
		{"a comma in a ticker", good, held(1, 2), `"B,B"`},
		{"a quote in a ticker", good, held(3), `securityId=3`},
		{"one position twice", good, held(1, 1), "two positions"},
		{"contract 0", good, booked(as, 0), "id=0"},
		{"contracts out of order", good, booked(as, 9, 8), "id=8 is not above 9"},
		{"a contract twice", good, booked(as, 9, 9), "id=9 is not above 9"},
		{"an unknown convention", good, booked(func(c *matcher.ContractInfo) {
			c.Convention = 5 // the first that there is not
		}, 3, 4),
			"contract id=4 has conventionIndex=5"},
		{"an unknown style", good, booked(func(c *matcher.ContractInfo) { c.Swaption, c.Style = true, 3 },
			4), "exerciseStyle=3"},
		{"an unknown side", good, booked(func(c *matcher.ContractInfo) { c.Side = 2 }, 4), "side=2"},
		{"no notional", good, booked(func(c *matcher.ContractInfo) { c.Notional = 0 }, 4), "notional=0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cut, err := renderCut(tt.m, tt.state)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tt.want) || cut.Bytes != nil {
				t.Errorf("got %v %q, want %q", err, cut.Bytes, tt.want)
			}
		})
	}
	if _, err := renderCut(Marker{Seq: math.MaxUint64, SessionDate: lastDay,
		PriceVersion: math.MaxUint32}, held(1)); err != nil {
		t.Error(err)
	}
}

func TestCutReadsBackWhatWasRendered(t *testing.T) {
	cut := must.Get(renderCut(goldenMarker, goldenState))(t)
	rows := must.Get(parseCut(string(cut.Bytes)))(t)
	if rows.Marker != goldenMarker || len(rows.positions) != len(goldenState.positions) ||
		!slices.Equal(rows.contracts, goldenState.contracts) {
		t.Errorf("got %+v", rows)
	}
}

// TestDamagedCutsAreRefused changes a cut in every place. A damaged cut that can still be read must
// be another valid cut: only its SHA-256 can detect that. So the reader may accept no text that
// rendering would not give.
func TestDamagedCutsAreRefused(t *testing.T) {
	cut := must.Get(renderCut(goldenMarker, goldenState))(t)
	text := string(cut.Bytes)
	check := func(damaged string) (readable bool) {
		t.Helper()
		rows, err := parseCut(damaged)
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatalf("%q: %v", damaged, err)
			}
			return false
		}
		if got := renderAgain(rows); got != damaged {
			t.Fatalf("read as\n%s\nbut is\n%s", got, damaged)
		}
		return true
	}
	if !check(text) {
		t.Fatal("the cut itself is refused")
	}
	refused, all := 0, 0
	random := rand.New(rand.NewPCG(1, 4))
	for i := range text {
		for _, c := range []byte{'0', '9', ',', '\n', '-', '+', ' ', 'x', byte(random.Uint32())} {
			if c == text[i] {
				continue
			}
			for _, damaged := range []string{text[:i] + string([]byte{c}) + text[i+1:],
				text[:i] + string([]byte{c}) + text[i:]} {
				all++
				if !check(damaged) {
					refused++
				}
			}
		}
		check(text[:i] + text[min(i+1+random.IntN(80), len(text)):])
		if check(text[:i]) {
			t.Fatalf("a cut that ends at byte %d is read", i)
		}
	}
	if check(text+"x") || check(text+"\n") || check("") {
		t.Error("a cut with more, or nothing, is read")
	}
	t.Logf("%d of %d damages are refused by the form alone", refused, all)
	if refused < all/2 {
		t.Errorf("%d of %d damages are refused", refused, all)
	}
}

// renderAgain renders rows as a cut, with the oracle.
func renderAgain(rows *cutRows) string {
	var b strings.Builder
	b.WriteString(string(rows.appendHeader(nil, len(rows.positions), len(rows.contracts))) +
		cutColumns)
	for _, p := range rows.positions {
		b.WriteString(join(p.account, p.security, p.quantity, p.average, p.multiplier, p.lastTrade))
	}
	b.WriteString(cutSection + cutTerms)
	for i := range rows.contracts {
		b.Write(appendContract(nil, &rows.contracts[i]))
	}
	return b.String()
}

func TestRowsThatStopTheExtract(t *testing.T) {
	in := unmarked(t, "OPT,OPTION,100,,2027-03-19,,,\n")
	for _, tt := range []struct {
		name, want string
		p          position
	}{
		{"an account that is not mapped", "accountId=3 ",
			position{account: 3, security: "A", multiplier: 1, lastTrade: 1}},
		{"a security without mark", "security=NAKED ",
			position{account: 2, security: "NAKED", multiplier: 1}},
		{"a flat one without mark", "security=NAKED ",
			position{account: 2, security: "NAKED", multiplier: 1, quantity: 0}},
		{"another multiplier in the cut", "security=OPT ",
			position{account: 2, security: "OPT", multiplier: 10, lastTrade: 1}},
		{"a share with a multiplier in the cut", "security=A ",
			position{account: 2, security: "A", multiplier: 10, lastTrade: 1}},
		{"a cost beyond 128 bits", "128 bits",
			position{account: 2, security: "OPT", multiplier: 1, lastTrade: 1,
				quantity: math.MaxInt64, average: math.MaxInt64}},
		{"a value beyond 128 bits", "128 bits",
			position{account: 2, security: "OPT", multiplier: 1, lastTrade: math.MaxInt64,
				quantity: math.MinInt64}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := in.appendPosition(nil, &tt.p, 1)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	agreed := position{account: 2, security: "OPT", multiplier: 100, lastTrade: 1_500_000, quantity: 2,
		average: 1_000_000}
	row, err := in.appendPosition(nil, &agreed, 1)
	want := "2,OPT,OPTION,2,100,200.000000,1.500000,CLUSTER_LAST_TRADE_AT_N,INDICATIVE,300.000000," +
		"100.000000," +
		"USD,NORTHFIELD,NORTHFIELD-ISDA-1,,2027-03-19,,\n"
	if err != nil || string(row) != want {
		t.Errorf("got %q, %v", row, err)
	}
	contract := matcher.ContractInfo{ID: 5,
		ContractTerms: matcher.ContractTerms{AccountID: 3, Notional: 1}}
	if _, err := in.appendContract(nil, &contract); !errors.Is(err, ErrRefused) ||
		!strings.Contains(err.Error(), "accountId=3 ") {
		t.Errorf("a contract of an account that is not mapped: %v", err)
	}
	contract.AccountID, contract.Convention = 2, 99
	if _, err := in.appendContract(nil, &contract); !errors.Is(err, ErrRefused) ||
		!strings.Contains(err.Error(), "conventionIndex=99") {
		t.Errorf("a contract of an unknown convention: %v", err)
	}
}
