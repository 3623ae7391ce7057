package riskextract

import (
	"math/rand/v2"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestAccruals are figures worked out by hand from the rules of doc.go.
func TestAccruals(t *testing.T) {
	const (
		note  = "2035-11-15,2,2025-11-15,ACT/ACT" // 05-15 and 11-15
		ends  = "2030-11-30,2,2025-11-30,ACT/ACT" // 05-31 and 11-30
		bond  = "2031-03-31,2,2024-03-31,30/360"  // 03-31 and 09-30
		leap  = "2028-02-29,4,2024-01-31,30/360"  // ends of February, May, August, November
		short = "2030-01-20,1,2026-06-10,ACT/360" // the first period starts on the dated date
		month = "2027-01-30,12,2026-01-30,ACT/365F"
	)
	tests := []struct {
		terms, session string
		last           string // "" = none
		want           int64
	}{
		{note, "2025-11-14", "", 0},
		{note, "2025-11-15", "2025-11-15", 0},
		{note, "2025-11-16", "2025-11-15", 2762},   // 1/(181 x 2)
		{note, "2026-05-14", "2025-11-15", 497238}, // 180/362
		{note, "2026-05-15", "2026-05-15", 0},
		{note, "2026-11-14", "2026-05-15", 497283}, // 183/368
		{note, "2035-11-14", "2035-05-15", 497283},
		{note, "2035-11-15", "2035-11-15", 0},
		{note, "2040-01-01", "2035-11-15", 0},
		{ends, "2026-05-30", "2025-11-30", 497253}, // 181/(182 x 2)
		{ends, "2026-05-31", "2026-05-31", 0},
		{ends, "2026-11-29", "2026-05-31", 497268}, // 182/(183 x 2)
		{bond, "2026-03-30", "2025-09-30", 500000}, // six months of 30 days
		{bond, "2026-03-31", "2026-03-31", 0},
		{bond, "2026-04-30", "2026-03-31", 83333}, // the 31st counts as the 30th
		{bond, "2026-05-31", "2026-03-31", 166667},
		{bond, "2026-12-31", "2026-09-30", 250000},
		{leap, "2026-02-27", "2025-11-30", 241667}, // 87/360
		{leap, "2026-02-28", "2026-02-28", 0},
		{leap, "2026-05-30", "2026-02-28", 255556}, // 92/360
		{leap, "2028-02-28", "2027-11-30", 244444}, // 88/360, the leap day is the maturity
		{short, "2026-06-09", "", 0},
		{short, "2026-06-10", "2026-06-10", 0},
		{short, "2027-01-19", "2026-06-10", 619444}, // 223/360
		{short, "2027-01-20", "2027-01-20", 0},
		{month, "2026-02-27", "2026-01-30", 76712}, // 28/365
		{month, "2026-02-28", "2026-02-28", 0},
		{month, "2026-03-29", "2026-02-28", 79452},
		{month, "2026-03-30", "2026-03-30", 0},
	}
	for _, tt := range tests {
		r := must.Get(parseReference(counterpartiesHeader+"\n",
			instrumentsHeader+"\nX,TREASURY,1,0.04,"+tt.terms+"\n"))(t)
		i := r.instrument("X")
		last, paid, got := i.accrued(date(t, tt.session))
		lastText := ""
		if paid {
			lastText = last.String()
		}
		if lastText != tt.last || got != tt.want {
			t.Errorf("%s on %s: %q %d, want %q %d", tt.terms, tt.session, lastText, got, tt.last, tt.want)
		}
	}
}

// TestAccrualMatchesTheSlowOne walks random bonds day by day beside the oracle.
func TestAccrualMatchesTheSlowOne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	for range 4000 {
		i := instrument{kind: corporate, multiplier: 1, coupon: 1,
			maturity:  store.Date(20_000 + random.IntN(9_000)),
			frequency: []int{1, 2, 3, 4, 6, 12}[random.IntN(6)],
			count:     dayCount(random.IntN(len(dayCountNames)))}
		if random.IntN(3) == 0 { // on the last day of a month
			i.maturity = store.DateOf(2020+random.IntN(40), time.Month(1+random.IntN(12)), 1) - 1
		}
		i.dated = i.maturity - store.Date(1+random.IntN(3_000))
		session := i.dated - 2 + store.Date(random.IntN(int(i.maturity-i.dated)+4))
		last, paid, got := i.accrued(session)
		lastText := ""
		if paid {
			lastText = last.String()
		}
		frequency := map[int]string{1: "1", 2: "2", 3: "3", 4: "4", 6: "6", 12: "12"}[i.frequency]
		wantLast, want := slowAccrual(i.maturity.String(), frequency, i.dated.String(),
			dayCountNames[i.count], session.Time())
		if lastText != wantLast || string(appendDecimal(nil, got)) != want {
			t.Fatalf("seed %d: %+v on %s: %q %d, want %q %s", seed, i, session, lastText, got,
				wantLast, want)
		}
	}
}
