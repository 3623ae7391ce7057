package riskextract

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

var update = flag.Bool("update", false, "write testdata anew")

// The content of the golden files: one of everything. Positions come in the order of their first
// fill, which is not that of the cut.
var (
	goldenMarker = Marker{Seq: 42, SessionDate: store.DateOf(2026, 11, 20), PriceVersion: 1}

	goldenState = &fakeState{
		securities: []matcher.SecurityInfo{
			{ID: 1, Ticker: "ZULU", LastTradePx: 12_500_000},
			{ID: 2, Ticker: "SPY", LastTradePx: 660_000_000},
			{ID: 3, Ticker: "UST-4.25-NOV35", LastTradePx: 99_500_000},
			{ID: 4, Ticker: "HARBOR-5.1-MAR31", LastTradePx: 101_000_000},
			{ID: 5, Ticker: "SPY-JUN27-C700", LastTradePx: 8_250_000},
			{ID: 6, Ticker: "ALPHA"}, // no account holds it
			{ID: 7, Ticker: "UST-BILL-JUN27", LastTradePx: 97_912_345},
		},
		positions: []matcher.PositionInfo{
			{AccountID: 22214, SecurityID: 1, Qty: -300, AverageCost: 13_000_001},
			{AccountID: 2, SecurityID: 5, Qty: -7, AverageCost: 9_100_000},
			{AccountID: 2, SecurityID: 1, Qty: 0, AverageCost: 0},
			{AccountID: 2, SecurityID: 3, Qty: 50, AverageCost: 98_250_000},
			{AccountID: 10, SecurityID: 2, Qty: 1_000, AverageCost: 651_234_567},
			{AccountID: 2, SecurityID: 4, Qty: -20, AverageCost: 100_125_000},
			{AccountID: 10, SecurityID: 7, Qty: 3, AverageCost: 97_000_000},
		},
		contracts: []matcher.ContractInfo{
			{ID: 17, ContractTerms: matcher.ContractTerms{AccountID: 2, Side: matcher.Buy,
				Notional:  10_000_000,
				FixedRate: 42_000, Effective: 20780, Maturity: 22606, Convention: 0}},
			{ID: 18, ContractTerms: matcher.ContractTerms{AccountID: 10, Side: matcher.Sell,
				Notional:  10_000_000,
				FixedRate: 43_000, Effective: 20780, Maturity: 22606, Convention: 3}},
			{ID: 40, ContractTerms: matcher.ContractTerms{AccountID: 22214, Side: matcher.Sell,
				Notional:  2_147_483_647,
				FixedRate: -1, Effective: 21000, Maturity: 65535, Convention: 4,
				Swaption: true, Expiry: 20999, Style: matcher.Bermudan}},
		},
	}

	goldenMarks = []store.Mark{
		{Security: "ZULU", Price: 12_750_000, Quality: "FINAL"},
		{Security: "SPY", Price: 661_000_000},
		{Security: "NOBODY-HAS-IT", Price: 1},
	}
)

const goldenCounterparties = `accountId,counterpartyId,nettingSetId,currency
2,NORTHFIELD,NORTHFIELD-ISDA-1,USD
10,ELBE,ELBE-ISDA-2,EUR
22214,MERIDIAN,MERIDIAN-ISDA-1,USD
`

func goldenRig(t testing.TB) *rig {
	r := newRig(t)
	r.o.Counterparties = filepath.Join(t.TempDir(), "counterparties.csv")
	write(t, r.o.Counterparties, goldenCounterparties)
	r.o.Marks = &fakeMarks{session: goldenMarker.SessionDate, version: 1, marks: goldenMarks}
	r.mark(goldenMarker, goldenState)
	return r
}

// TestGolden holds every byte against testdata, which was checked by hand:
//
//	SPY-JUN27-C700  -7 x 9.1 x 100 = -6370; the mark is the last trade, -7 x 8.25 x 100 = -5775; +595
//	UST-4.25-NOV35  50 x 98.25 x 10 = 49125; 50 x 99.5 x 10 = 49750; 5 days of a period of 181: 5/362
//	HARBOR          -20 x 100.125 x 10 = -20025; -20 x 101 x 10 = -20200; 65 days of 360 since 09-15
//	ZULU            -300 x 13.000001 = -3900.0003; -300 x 12.75 = -3825; +75.0003
func TestGolden(t *testing.T) {
	r := goldenRig(t)
	a, err := New(r.o).Extract(t.Context(), goldenMarker)
	must.OK(t, err)
	got := files(t, filepath.Join(r.o.Sink, "2026-11-20", "v1"))
	if *update {
		for name, content := range got {
			write(t, filepath.Join("testdata", name), content)
		}
	}
	want := files(t, "testdata")
	if len(want) != 7 {
		t.Errorf("%d golden files, want 7", len(want))
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s was written and is not in testdata", name)
		}
	}
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s is\n%s\nwant\n%s", name, got[name], content)
		}
	}
	dir := filepath.Join(r.o.Sink, "2026-11-20", "v1")
	expected := Announcement{
		URI: "file://" + filepath.Join(dir, "seq-42.csv"), SHA256: sumOf([]byte(want["seq-42.csv"])),
		ContractsURI:      "file://" + filepath.Join(dir, "seq-42-contracts.csv"),
		ContractsSHA256:   sumOf([]byte(want["seq-42-contracts.csv"])),
		ConsensusSequence: 42, SessionDate: "2026-11-20", CutSHA256: sumOf([]byte(want["seq-42.cut"])),
		Schema: 3, Rows: 7, Contracts: 3, ContractsSchema: 2, PriceVersion: 1,
	}
	if a != expected {
		t.Errorf("announced\n%+v\nwant\n%+v", a, expected)
	}
	if got := r.announcements(); len(got) != 1 || got[0] != a {
		t.Errorf("announced %+v", got)
	}
	line := `msg="RISK-EXTRACT-CUT seq=42 rows=7 contracts=3 sha256=` + a.CutSHA256 + ` role=SINGLE"`
	if !containsOnce(r.log.String(), line) {
		t.Errorf("the log is %q, want one %s", r.log, line)
	}
	info, err := os.Stat(filepath.Join(dir, "seq-42.cut"))
	if err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("the cut has mode %v, %v", info.Mode(), err)
	}
}

func TestAnnouncementJSON(t *testing.T) {
	a := Announcement{URI: `file:///a "b"/x.csv`, SHA256: "s", ContractsURI: "u", ContractsSHA256: "c",
		ConsensusSequence: 1<<64 - 1,
		SessionDate:       "2026-11-20", CutSHA256: "x", Schema: 3, Rows: 7, Contracts: 4,
		ContractsSchema: 2,
		PriceVersion:    1<<32 - 1}
	want := `{"uri":"file:///a \"b\"/x.csv","sha256":"s","contractsUri":"u","contractsSha256":"c",` +
		`"consensusSequence":18446744073709551615,"sessionDate":"2026-11-20","cutSha256":"x",` +
		`"schema":3,"rows":7,"contracts":4,"contractsSchema":2,"priceVersion":4294967295}`
	if got := string(a.AppendJSON([]byte("."))); got != "."+want {
		t.Errorf("got %s\nwant .%s", got, want)
	}
}
