package replay

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/perf/orderflow"
	"posttrade/ring/scenariotest"
)

// TestAdmissionScenarios runs testdata/admission/*.scn over every way in: what a client asks for
// and what happens meanwhile, a line of dashes, and the answers. A file has one list of answers,
// and each way in must give it.
//
//	setting NAME=VALUE            of the installation; first
//	new NAME WORDS                an order; name=value, market, ioc, fok, post-only
//	batch NAME WORDS              an order that goes with those of the lines before and after it
//	replace NAME WORDS, cancel NAME
//	trade NAME WORDS, swap NAME WORDS
//	kill on|off, sources away|ready, journal open|full|failed|ahead, price TICKER px=PRICE
//
// Below the answers stands how many commands were sequenced for them, if any. An order that is
// answered again under one name has one number.
func TestAdmissionScenarios(t *testing.T) {
	scenariotest.Each(t, "testdata/admission/*.scn", func(t *testing.T, script, want string) {
		for _, way := range slices.Sorted(maps.Keys(waysIn)) {
			t.Run(way, func(t *testing.T) {
				p := newPlayer(t, way, script)
				if p.books == nil && strings.Contains(script, "\nswap ") {
					return // a replay has no bookings
				}
				if got := p.play(script); got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
			})
		}
	})
}

// player runs one scenario over one way in.
type player struct {
	t *testing.T
	*house
	venue
	books   func(s *orderflow.Step) (outcomeOf, error)
	ids     map[string]string // of orders, by their names in the scenario
	out     strings.Builder
	names   []string // of the batch that is being gathered
	batch   []orderflow.Step
	version int64 // of the policy
}

func newPlayer(t *testing.T, way, script string) *player {
	var settings []string
	for line := range strings.Lines(script) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "setting "); ok {
			name, value, _ := strings.Cut(rest, "=")
			settings = append(settings, name, value)
		}
	}
	p := &player{t: t, house: newHouse(t, settings), ids: map[string]string{}}
	p.venue, p.books = waysIn[way](p.house)
	return p
}

func (p *player) play(script string) string {
	for n, line := range scenariotest.Lines(script) {
		words := strings.Fields(line)
		if words[0] == "setting" {
			continue
		}
		if words[0] != "batch" {
			p.flush()
		}
		if err := p.line(words); err != nil {
			p.t.Fatalf("line %d: %v", n, err)
		}
	}
	p.flush()
	return p.out.String()
}

func (p *player) line(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("%q says too little", words[0])
	}
	verb, name := words[0], words[1]
	switch verb {
	case "kill":
		p.version++
		return p.kill(name == "on", p.version)
	case "sources":
		return p.sources(name == "ready")
	case "journal":
		return p.journal(name)
	}
	step, err := stepOf(words[2:])
	if err != nil {
		return err
	}
	switch verb {
	case "price":
		step.Security = name
		_, err := (&coreVenue{core: p.core}).price(&step)
		return err
	case "new", "batch":
		p.names, p.batch = append(p.names, name), append(p.batch, step)
		if verb == "new" {
			p.flush()
		}
		return nil
	case "replace":
		p.answer(name, func() (outcomeOf, error) { return p.replace(p.ids[name], &step) })
	case "cancel":
		p.answer(name, func() (outcomeOf, error) { return p.cancel(p.ids[name]) })
	case "trade":
		p.answer(name, func() (outcomeOf, error) { return p.trade(&step) })
	case "swap":
		p.answer(name, func() (outcomeOf, error) { return p.books(&step) })
	default:
		return fmt.Errorf("unknown command %q", verb)
	}
	return nil
}

// flush sends the orders that are gathered.
func (p *player) flush() {
	if len(p.batch) == 0 {
		return
	}
	results := make([]outcomeOf, len(p.batch))
	before := p.core.Stage.Applied()
	err := p.create(p.batch, results)
	for i, name := range p.names {
		p.say(name, results[i], err)
	}
	p.sequenced(before)
	p.names, p.batch = nil, nil
}

func (p *player) answer(name string, ask func() (outcomeOf, error)) {
	before := p.core.Stage.Applied()
	o, err := ask()
	p.say(name, o, err)
	p.sequenced(before)
}

// sequenced says that something was sequenced for the last answers.
func (p *player) sequenced(before uint64) {
	if n := p.core.Stage.Applied() - before; n > 0 {
		fmt.Fprintf(&p.out, "  sequenced %d\n", n)
	}
}

// say writes an answer, and compares the number of its order with that of the first answer.
func (p *player) say(name string, o outcomeOf, err error) {
	fmt.Fprintf(&p.out, "%s %s\n", name, inWords(o, err))
	if err != nil || !strings.HasPrefix(o.orderID, "ord-") {
		return
	}
	if first := p.ids[name]; first != "" && first != o.orderID {
		fmt.Fprintf(&p.out, "  it was order %s and is %s\n", first, o.orderID)
	}
	p.ids[name] = o.orderID
}

// stepOf reads the words of an order, a trade or a booking.
func stepOf(words []string) (s orderflow.Step, err error) {
	s.Security, s.AccountID, s.Type = "AAPL", 1, orderflow.Limit
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.ParseFloat(value, 64)
		switch key {
		case "id":
			s.ClientOrderID = value
		case "account":
			s.AccountID = uint32(n)
		case "security":
			s.Security = value
		case "qty", "notional":
			s.Quantity = int32(n)
		case "px", "rate":
			s.LimitPx = int64(n * matcher.PriceScale)
		case "buy", "sell":
			s.Side = map[string]matcher.Side{"buy": matcher.Buy, "sell": matcher.Sell}[key]
		case "market":
			s.Type = orderflow.Market
		case "ioc", "fok", "post-only":
			s.TimeInForce = map[string]orderflow.TimeInForce{"ioc": orderflow.IOC,
				"fok": orderflow.FOK, "post-only": orderflow.PostOnly}[key]
		default:
			return s, fmt.Errorf("unknown word %q", word)
		}
	}
	return s, nil
}
