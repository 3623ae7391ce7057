package riskextract

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// oracle renders the three files in a slow and obvious way: maps, strings and fractions. It shares
// no code with the package but the tables of the engine.
type oracle struct {
	marker         Marker
	state          *fakeState
	counterparties map[uint32][3]string // counterparty, netting set, currency
	instruments    map[string][]string  // the columns of the file after the security
	marks          map[string]store.Mark
}

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (o *oracle) cut() string {
	type key struct{ account, security uint32 }
	rows := make(map[key]matcher.PositionInfo)
	var keys []key
	for _, p := range o.state.positions {
		k := key{p.AccountID, p.SecurityID}
		rows[k], keys = p, append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		return uint64(keys[i].account)<<32|uint64(keys[i].security) < uint64(keys[j].account)<<32|uint64(
			keys[j].security)
	})
	lines := []string{
		fmt.Sprintf("#cut schema=3 seq=%d sessionDateEpochDay=%d priceVersion=%d rows=%d contracts=%d",
			o.marker.Seq, int64(o.marker.SessionDate), o.marker.PriceVersion, len(keys),
			len(o.state.contracts)),
		"accountId,security,quantity,avgCostTicks,contractMultiplier,lastTradePxTicks",
	}
	for _, k := range keys {
		s := o.security(k.security)
		lines = append(lines, fmt.Sprintf("%d,%s,%d,%d,1,%d", k.account, s.Ticker, rows[k].Qty,
			rows[k].AverageCost, s.LastTradePx))
	}
	lines = append(lines, "#contracts",
		"contractId,accountId,payFixed,notional,fixedRateTicks,conventionIndex,"+
			"effectiveEpochDay,maturityEpochDay,productType,expiryEpochDay,exerciseStyle")
	for _, c := range o.state.contracts {
		product := map[bool]int{false: 0, true: 1}[c.Swaption]
		lines = append(lines, fmt.Sprint(c.ID, ",", c.AccountID, ",", uint8(c.Side), ",", c.Notional, ",",
			c.FixedRate, ",",
			c.Convention, ",", c.Effective, ",", c.Maturity, ",", product, ",", c.Expiry, ",",
			uint8(c.Style)))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (o *oracle) security(id uint32) matcher.SecurityInfo {
	for _, s := range o.state.securities {
		if s.ID == id {
			return s
		}
	}
	panic("no such security")
}

// positions returns the rows of the positions file.
func (o *oracle) positions() []string {
	var rows []string
	cut := strings.Split(o.cut(), "\n")
	for _, line := range cut[2 : 2+len(o.state.positions)] {
		c := strings.Split(line, ",")
		security := c[1]
		is, listed := o.instruments[security]
		if !listed {
			is = []string{"EQUITY", "1", "", "", "", "", ""}
		}
		mark, source, quality := rat(c[5]), "CLUSTER_LAST_TRADE_AT_N", "INDICATIVE"
		if m, published := o.marks[security]; published {
			mark, source, quality = big.NewRat(m.Price, 1), "EOD_SNAPSHOT", m.Quality
			if quality == "" {
				quality = "OFFICIAL"
			}
		}
		mark.Quo(mark, rat("1000000"))
		size := new(big.Rat).Mul(rat(c[2]), rat(is[1]))
		cost := new(big.Rat).Mul(size, new(big.Rat).Quo(rat(c[3]), rat("1000000")))
		value := new(big.Rat).Mul(size, mark)
		profit := new(big.Rat).Sub(value, cost)
		var account uint32
		fmt.Sscan(c[0], &account)
		party := o.counterparties[account]
		row := []string{c[0], security, is[0], c[2], is[1], cost.FloatString(6), mark.FloatString(6),
			source, quality,
			value.FloatString(6), profit.FloatString(6), party[2], party[0], party[1]}
		rows = append(rows, strings.Join(append(row, slowTerms(is, o.marker.SessionDate.Time())...), ","))
	}
	return rows
}

// slowTerms are coupon, maturity, last coupon date and fraction, from the columns of the file.
func slowTerms(is []string, session time.Time) []string {
	switch is[0] {
	case "EQUITY", "ETF":
		return []string{"", "", "", ""}
	case "OPTION":
		return []string{"", is[3], "", ""}
	}
	coupon := rat(is[2]).FloatString(6)
	last, fraction := slowAccrual(is[3], is[4], is[5], is[6], session)
	return []string{coupon, is[3], last, fraction}
}

// slowAccrual walks back from the maturity, one coupon after the other, a day at a time.
func slowAccrual(maturityText, frequency, datedText, count string,
	session time.Time) (last, fraction string) {
	maturity, _ := time.Parse(time.DateOnly, maturityText)
	dated, _ := time.Parse(time.DateOnly, datedText)
	if frequency == "0" || session.Before(dated) {
		return "", "0.000000"
	}
	if !session.Before(maturity) {
		return maturityText, "0.000000"
	}
	step := map[string]int{"1": 12, "2": 6, "3": 4, "4": 3, "6": 2, "12": 1}[frequency]
	endOfMonth := maturity.AddDate(0, 0, 1).Day() == 1
	next, previous := maturity, maturity
	for back := step; previous.After(session); back += step {
		next = previous
		// The wanted day may not exist: count down from it to one that does.
		first := time.Date(maturity.Year(), maturity.Month()-time.Month(back), 1, 0, 0, 0, 0, time.UTC)
		want := maturity.Day()
		if endOfMonth {
			want = 31
		}
		for previous = first.AddDate(0, 0, want-1); previous.Month() != first.Month(); {
			previous = previous.AddDate(0, 0, -1)
		}
	}
	start := previous
	if dated.After(start) {
		start = dated
	}
	days := func(a, b time.Time) (n int64) {
		for ; a.Before(b); a = a.AddDate(0, 0, 1) {
			n++
		}
		return n
	}
	var f *big.Rat
	switch count {
	case "ACT/ACT":
		f = new(big.Rat).Quo(big.NewRat(days(start, session), days(previous, next)), rat(frequency))
	case "ACT/360":
		f = big.NewRat(days(start, session), 360)
	case "ACT/365F":
		f = big.NewRat(days(start, session), 365)
	case "30/360":
		d1, d2 := start.Day(), session.Day()
		if d1 == 31 {
			d1 = 30
		}
		if d2 == 31 && d1 == 30 {
			d2 = 30
		}
		f = big.NewRat(
			int64(360*(session.Year()-start.Year())+30*(int(session.Month())-int(start.Month()))+d2-d1), 360)
	}
	return start.Format(time.DateOnly), f.FloatString(6) // rounds halves away from zero
}

// contracts returns the rows of the contracts file.
func (o *oracle) contracts() []string {
	conventions := [][]string{{"USD-SOFR", "1Y", "ACT/360", "USD"},
		{"USD-SOFR", "3M", "ACT/360", "USD"},
		{"EUR-ESTR", "1Y", "ACT/360", "EUR"}, {"GBP-SONIA", "1Y", "ACT/365F", "GBP"}, {"JPY-TONA", "1Y",
			"ACT/365F", "JPY"}}
	day := func(d uint16) string {
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(d)).Format(time.DateOnly)
	}
	var rows []string
	for _, c := range o.state.contracts {
		t, party := conventions[c.Convention], o.counterparties[c.AccountID]
		id, product, expiry, style := fmt.Sprintf("SW-%d", c.ID), "SWAP", "", ""
		if c.Swaption {
			id, product, expiry = fmt.Sprintf("SWPT-%d", c.ID), "SWAPTION", day(c.Expiry)
			style = []string{"EUROPEAN", "BERMUDAN", "AMERICAN"}[c.Style]
		}
		rows = append(rows, strings.Join([]string{id, fmt.Sprint(c.AccountID),
			map[matcher.Side]string{matcher.Buy: "RECEIVE_FIXED", matcher.Sell: "PAY_FIXED"}[c.Side],
			fmt.Sprint(c.Notional), big.NewRat(c.FixedRate, 1_000_000).FloatString(6), t[0],
			day(c.Effective), day(c.Maturity),
			t[1], t[2], t[3], party[0], party[1], product, expiry, style}, ","))
	}
	return rows
}

func rat(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return r
}

// reference spells the two reference files.
func (o *oracle) reference() (counterparties, instruments string) {
	counterparties, instruments = counterpartiesHeader+"\n", instrumentsHeader+"\n"
	for account, c := range o.counterparties {
		counterparties += fmt.Sprintf("%d,%s\n", account, strings.Join(c[:], ","))
	}
	for security, columns := range o.instruments {
		instruments += security + "," + strings.Join(columns, ",") + "\n"
	}
	return counterparties, instruments
}

func randomOracle(random *rand.Rand) *oracle {
	o := &oracle{
		marker: Marker{Seq: 1 + random.Uint64()>>random.IntN(64),
			SessionDate:  store.Date(random.IntN(40_000)),
			PriceVersion: random.Uint32()},
		state: new(fakeState), counterparties: make(map[uint32][3]string),
		instruments: make(map[string][]string), marks: make(map[string]store.Mark),
	}
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	day := func(from, days int) string { return store.Date(from + random.IntN(days)).String() }
	accounts := make([]uint32, 1+random.IntN(6))
	for i := range accounts {
		accounts[i] = 1 + random.Uint32()>>(random.IntN(31))
		o.counterparties[accounts[i]] = [3]string{fmt.Sprint("CP", i), fmt.Sprint("NS", i),
			pick("USD", "EUR", "JPY")}
	}
	for id := range uint32(1 + random.IntN(12)) {
		ticker := fmt.Sprintf("%s-%d", pick("A", "ZZ", "B.B", "M/N", "#X"), id)
		o.state.securities = append(o.state.securities,
			matcher.SecurityInfo{ID: id + 1, Ticker: ticker,
				LastTradePx: 1 + random.Int64()>>random.IntN(63)})
		multiplier := fmt.Sprint(1 + random.Uint32()>>random.IntN(32))
		switch random.IntN(6) {
		case 0:
			o.instruments[ticker] = []string{pick("ETF", "EQUITY"), "1", "", "", "", "", ""}
		case 1:
			o.instruments[ticker] = []string{"OPTION", multiplier, "", day(0, 40_000), "", "", ""}
		case 2:
			o.instruments[ticker] = []string{"TREASURY", multiplier, "0", day(0, 40_000), "0", "", ""}
		case 3, 4:
			o.instruments[ticker] = []string{pick("TREASURY", "CORPORATE"), multiplier,
				pick("0.0425", "12", "0.000001"),
				day(30_000, 20_000), pick("1", "2", "3", "4", "6", "12"), day(0, 30_000), pick("ACT/ACT",
					"30/360", "ACT/360", "ACT/365F")}
		}
		if random.IntN(2) == 0 {
			o.marks[ticker] = store.Mark{Security: ticker, Price: 1 + random.Int64()>>random.IntN(63),
				Quality: pick("", "FINAL", "b.2_-")}
		}
		for _, account := range accounts {
			if random.IntN(3) > 0 && !o.has(account, id+1) {
				o.state.positions = append(o.state.positions,
					matcher.PositionInfo{AccountID: account, SecurityID: id + 1,
						Qty:         int64(random.Uint64()) >> random.IntN(64),
						AverageCost: random.Int64() >> random.IntN(63)})
			}
		}
	}
	random.Shuffle(len(o.state.positions), func(i, j int) {
		o.state.positions[i], o.state.positions[j] = o.state.positions[j], o.state.positions[i]
	})
	id := uint64(0)
	for range random.IntN(10) {
		id += 1 + random.Uint64()>>(8+random.IntN(56))
		c := matcher.ContractInfo{ID: id,
			ContractTerms: matcher.ContractTerms{AccountID: accounts[random.IntN(len(accounts))],
				Side: matcher.Side(random.IntN(2)), Notional: 1 + random.Int32N(1<<31-1),
				FixedRate: int64(random.Uint64()),
				Effective: uint16(random.Uint32()), Maturity: uint16(random.Uint32()),
				Convention: random.Uint32N(5)}}
		if random.IntN(2) == 0 {
			c.Swaption, c.Expiry, c.Style = true, uint16(random.Uint32()),
				matcher.ExerciseStyle(random.IntN(3))
		}
		o.state.contracts = append(o.state.contracts, c)
	}
	return o
}

func (o *oracle) has(account, security uint32) bool {
	for _, p := range o.state.positions {
		if p.AccountID == account && p.SecurityID == security {
			return true
		}
	}
	return false
}

// fits says whether every amount fits 127 bits.
func (o *oracle) fits() bool {
	limit := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 127))
	for _, row := range o.positions() {
		c := strings.Split(row, ",")
		for _, amount := range []string{c[5], c[9], c[10]} {
			millionths := new(big.Rat).Mul(rat(amount), rat("1000000"))
			if millionths.Abs(millionths).Cmp(limit) >= 0 {
				return false
			}
		}
	}
	return true
}

// TestRenderingMatchesTheSlowOne compares the cut and both files with the oracle's on random
// states, with large numbers as likely as small ones.
func TestRenderingMatchesTheSlowOne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	overflows, positions, contracts := 0, 0, 0
	for round := range 500 {
		o := randomOracle(random)
		cut, err := renderCut(o.marker, o.state)
		if err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		if want := o.cut(); string(cut.Bytes) != want || cut.SHA256 != hexSum(want) ||
			cut.Rows != len(o.state.positions) || cut.Contracts != len(o.state.contracts) {
			t.Fatalf("seed %d round %d: cut %d %d %s\n%s\nwant\n%s", seed, round, cut.Rows, cut.Contracts,
				cut.SHA256, cut.Bytes, want)
		}
		rows, err := parseCut(string(cut.Bytes))
		if err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		in := new(inputs)
		if in.reference, err = parseReference(o.reference()); err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		var marks []store.Mark
		for _, m := range o.marks {
			marks = append(marks, m)
		}
		if in.marks, err = markSetOf(o.marker.SessionDate, o.marker.PriceVersion, marks,
			true); err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		made, err := render(rows, cut.SHA256, in, hexSum("reference"))
		if (err == nil) != o.fits() {
			t.Fatalf("seed %d round %d: %v, but fits=%t", seed, round, err, o.fits())
		}
		if err != nil {
			overflows++
			continue
		}
		positions, contracts = positions+len(rows.positions), contracts+len(rows.contracts)
		compareFile(t, string(made.positions), o, "risk-positions", "3", o.positions())
		compareFile(t, string(made.contracts), o, "risk-contracts", "2", o.contracts())
		if t.Failed() {
			t.Fatalf("seed %d round %d", seed, round)
		}
	}
	t.Logf("%d positions and %d contracts compared, %d rounds stopped by an amount that does not fit",
		positions, contracts, overflows)
	if overflows == 0 || positions < 1000 || contracts < 1000 {
		t.Error("the random states do not reach enough")
	}
}

// compareFile compares the head and the rows of a file with the expected ones.
func compareFile(t *testing.T, text string, o *oracle, name, schema string, rows []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	want := []string{"# name=" + name, "# schema=" + schema,
		fmt.Sprint("# consensusSequence=", o.marker.Seq),
		"# sessionDate=" + o.marker.SessionDate.Time().Format(time.DateOnly),
		fmt.Sprint("# priceVersion=", o.marker.PriceVersion),
		"# cutSha256=" + hexSum(o.cut()), "# referenceSha256=" +
			hexSum("reference"), fmt.Sprint("# rows=", len(rows))}
	i := 0
	for ; i < len(lines) && strings.HasPrefix(lines[i], "# "); i++ {
		if i < len(want) && lines[i] != want[i] {
			t.Errorf("%s: head line %q, want %q", name, lines[i], want[i])
		}
		if !strings.Contains(lines[i], "=") {
			t.Errorf("%s: head line %q has no value", name, lines[i])
		}
	}
	if got := strings.Join(lines[min(i+1, len(lines)):], "\n"); got != strings.Join(rows, "\n") ||
		i < len(want) {
		t.Errorf("%s: rows\n%s\nwant\n%s", name, got, strings.Join(rows, "\n"))
	}
	for i := range len(text) {
		if c := text[i]; c > '~' || c < ' ' && c != '\n' {
			t.Fatalf("%s: byte %d is %#x", name, i, c)
		}
	}
}
