package riskextract

import (
	"strconv"
	"testing"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/ringtest"
)

// TestAPoliteExtractBreathes: every stage of an extract lets others go first, at every few rows.
func TestAPoliteExtractBreathes(t *testing.T) {
	const rows = 4000
	state := new(fakeState)
	for i := range uint32(rows) {
		state.securities = append(state.securities, matcher.SecurityInfo{ID: i + 1, Ticker: "S" + strconv.Itoa(int(i)), LastTradePx: 1})
		state.positions = append(state.positions, matcher.PositionInfo{AccountID: 2, SecurityID: rows - i, Qty: 1})
		state.contracts = append(state.contracts, matcher.ContractInfo{ID: uint64(i + 1),
			ContractTerms: matcher.ContractTerms{AccountID: 2, Notional: 1, FixedRate: 1, Maturity: 1}})
	}
	reference, err := ParseReference(goldenCounterparties, instrumentsHeader+"\n")
	if err != nil {
		t.Fatal(err)
	}
	marks, err := markSetOf(1, 1, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	in := &inputs{reference: reference, marks: marks}
	breaths := map[string]int{}
	ringtest.Politely(t, func() {
		order := ring.NewBreather()
		positionsOf(state, &order)
		breaths["taking and sorting the positions"] = order.Breaths()
		breath := ring.NewBreather()
		cut, err := renderCut(Marker{Seq: 1, SessionDate: 1}, state, &breath)
		breaths["a cut"] = breath.Breaths() - order.Breaths()
		hash := ring.NewBreather()
		summed(cut.Bytes, &hash)
		breaths["hashing"] = hash.Breaths()
		reader := newCutReader(string(cut.Bytes))
		read, readErr := reader.rows()
		breaths["reading a cut"] = reader.breath.Breaths()
		if err != nil || readErr != nil {
			t.Error(err, readErr)
			return
		}
		if _, err := render(read, cut.SHA256, in, ""); err != nil {
			t.Error(err)
		}
		breaths["the files"] = in.breath.Breaths()
	})
	for stage, least := range map[string]int{
		"taking and sorting the positions": rows / comparesPerBreath, "a cut": rows / rowsPerBreath, "hashing": 4,
		"reading a cut": rows / rowsPerBreath, "the files": rows / rowsPerBreath,
	} {
		if breaths[stage] < least {
			t.Errorf("%s: %d breaths, want %d or more", stage, breaths[stage], least)
		}
	}
}
