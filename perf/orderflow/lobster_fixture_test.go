package orderflow

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// The fixture in testdata/lobster: a synthetic market in LOBSTER's form, five levels deep, with
// orders that come and go out of sight below them.
const (
	fixtureSeed   = 311
	fixtureEvents = 400
	fixtureLevels = 5
	fixtureName   = "testdata/lobster/ACME_2020-01-02_34200000_57600000_%s_5.csv"
)

// inventMarket writes a market in LOBSTER's form: a true book of some twelve levels, of which the
// first few are published. What happens below them is in neither file until it comes into sight.
func inventMarket(seed uint64, events, levels int) (messages, book []byte) {
	m := market{rng: rand.New(rand.NewPCG(seed, seed)), levels: levels, nanos: 34_200_000_000_000}
	for px := int64(1); px <= 12; px++ { // orders that rested before the day began
		for range 1 + m.rng.IntN(3) {
			m.rest(matcher.Buy, m.mid()-px*100)
			m.rest(matcher.Sell, m.mid()+px*100)
		}
	}
	for m.published < events {
		m.step()
	}
	return m.messages.Bytes(), m.rows.Bytes()
}

type market struct {
	rng            *rand.Rand
	orders         []naiveOrder // prices x 10000
	ids            uint64
	levels         int
	published      int
	nanos          int64
	messages, rows bytes.Buffer
}

func (m *market) mid() int64 { return 1_000_000 }

func (m *market) rest(side matcher.Side, px int64) *naiveOrder {
	m.ids++
	m.orders = append(m.orders, naiveOrder{
		id: fmt.Sprint(m.ids), side: side, px: px, leaves: int64(1+m.rng.IntN(9)) * 10,
	})
	return &m.orders[len(m.orders)-1]
}

// step makes one change and publishes it if it is visible.
func (m *market) step() {
	before := m.row()
	m.nanos += int64(m.rng.IntN(50_000_000))
	var kind int
	var o naiveOrder
	var qty int64
	switch draw := m.rng.IntN(100); {
	case len(m.orders) < 24 || draw < 45 && len(m.orders) < 40:
		kind = lobsterAdd
		o = *m.rest(m.place())
		qty = o.leaves
	case draw < 85:
		i := m.rng.IntN(len(m.orders))
		o, kind, qty = m.orders[i], lobsterDelete, m.orders[i].leaves
		if m.rng.IntN(4) == 0 && qty > 1 {
			kind, qty = lobsterPartialCancel, 1+int64(m.rng.IntN(int(qty-1)))
		}
		m.remove(i, qty)
	case draw < 95:
		i := m.front(matcher.Side(m.rng.IntN(2)))
		o, kind = m.orders[i], lobsterExecution
		qty = 1 + int64(m.rng.IntN(int(o.leaves)))
		m.remove(i, qty)
	case draw < 98:
		m.publish(lobsterHidden, 0, 7, m.mid(), matcher.Buy)
		return
	default:
		m.publish(lobsterHalt, 0, 0, -1, matcher.Sell)
		return
	}
	if m.row() != before {
		m.publish(kind, o.id, qty, o.px, o.side)
	}
}

// place picks a price that does not cross.
func (m *market) place() (matcher.Side, int64) {
	bid, ask := m.orders[m.front(matcher.Buy)].px, m.orders[m.front(matcher.Sell)].px
	offset := int64(m.rng.IntN(14)-3) * 100
	if m.rng.IntN(2) == 0 {
		return matcher.Buy, min(bid-offset, ask-100)
	}
	return matcher.Sell, max(ask+offset, bid+100)
}

func (m *market) front(side matcher.Side) int {
	at := -1
	for i, o := range m.orders {
		if o.side == side && (at < 0 || better(side, o.px, m.orders[at].px)) {
			at = i
		}
	}
	return at
}

func (m *market) remove(i int, qty int64) {
	if m.orders[i].leaves -= qty; m.orders[i].leaves == 0 {
		m.orders = slices.Delete(m.orders, i, i+1)
	}
}

func (m *market) publish(kind int, id any, qty, px int64, side matcher.Side) {
	m.published++
	direction := map[matcher.Side]int{matcher.Buy: 1, matcher.Sell: -1}[side]
	fmt.Fprintf(&m.messages, "%d.%09d,%d,%v,%d,%d,%d\n", m.nanos/1e9, m.nanos%1e9, kind, id, qty, px,
		direction)
	m.rows.WriteString(m.row() + "\n")
}

func (m *market) row() string {
	depth := (&naiveBook{orders: m.orders}).depth(m.levels)
	var cells []string
	for i := range m.levels {
		for _, side := range []struct {
			levels []Level
			empty  string
		}{{depth.Asks, emptyAsk}, {depth.Bids, emptyBid}} {
			if i < len(side.levels) {
				cells = append(cells, fmt.Sprint(side.levels[i].Px), fmt.Sprint(side.levels[i].Qty))
			} else {
				cells = append(cells, side.empty, "0")
			}
		}
	}
	return strings.Join(cells, ",")
}

func TestFixtureIsReachedEventByEvent(t *testing.T) {
	messages, book := inventMarket(fixtureSeed, fixtureEvents, fixtureLevels)
	for kind, want := range map[string][]byte{"message": messages, "orderbook": book} {
		name := fmt.Sprintf(fixtureName, kind)
		if *update {
			must.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must.OK(t, os.WriteFile(name, want, 0o644))
		}
		got := must.Get(os.ReadFile(name))(t)
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: go test -run Fixture -update", name)
		}
	}
	l := openLobster(t, "testdata/lobster")
	matched, transitions := replayNaively(t, l)
	if matched != fixtureEvents-1 || transitions != fixtureEvents-1 {
		t.Errorf("%d of %d transitions match, want %d", matched, transitions, fixtureEvents-1)
	}
	// The fixture is useful only if it covers every rule.
	s := l.Stats()
	if s.EdgeSeeds == 0 || s.EdgeRemovals == 0 || s.Unknown == 0 || s.OutOfTurn == 0 || s.Silent == 0 {
		t.Errorf("the fixture leaves a rule untried: %+v", s)
	}
}

func TestInventedMarketsAreReached(t *testing.T) {
	const markets = 80
	var edges int
	for seed := range uint64(markets) {
		messages, book := inventMarket(seed, 200, 1+int(seed%7))
		l := must.Get(NewLobster(bytes.NewReader(messages), bytes.NewReader(book), testOptions))(t)
		if matched, transitions := replayNaively(t, l); matched != 199 || transitions != 199 {
			t.Fatalf("seed %d: %d of %d transitions match, want 199", seed, matched, transitions)
		}
		edges += l.Stats().EdgeRemovals
	}
	if edges == 0 {
		t.Error("no market had a quantity vanish out of sight: the test lost its point")
	}
}

// TestBookFileIsReadOnlyBeyondTheWindow checks rule 4: every quantity taken from the book file is
// strictly beyond the last published level of the row before.
func TestBookFileIsReadOnlyBeyondTheWindow(t *testing.T) {
	for seed := range uint64(40) {
		messages, book := inventMarket(seed, 200, 4)
		l := must.Get(NewLobster(bytes.NewReader(messages), bytes.NewReader(book), testOptions))(t)
		var venue naiveBook
		var previous Depth
		for {
			e, err := l.Next()
			if err != nil {
				break
			}
			for i, s := range e.Steps {
				if i < e.Edge {
					px, side := s.LimitPx, s.Side
					if at := venue.index(s.Ref); s.Action != New {
						px = venue.orders[at].px
					}
					levels := levelsOf(&previous, side)
					if !better(side, levels[3].Px, px) {
						t.Fatalf("seed %d event %d: %+v at %d is within the window %v", seed, e.Number, s, px, levels)
					}
				}
				if err := venue.apply(s); err != nil {
					t.Fatalf("seed %d event %d: %v", seed, e.Number, err)
				}
				if i == e.Edge-1 && !sameDepth(venue.depth(4), previous) {
					t.Fatalf("seed %d event %d: rule 4 changed what was in sight", seed, e.Number)
				}
			}
			previous = e.Want
		}
	}
}
