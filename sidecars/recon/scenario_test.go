package recon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/ring/scenariotest"
)

// TestReconciliationScenarios plays testdata/scenarios/*.scn on every database: what happens to
// trades and rows, a line of dashes, and what reconciliation says. Ranges are of trade sequences,
// such as 3 or 3-9.
//
//	blotter N...           the capacity of the blotter, first; with several, each must say the same
//	grace DURATION         how long a row may be on its way; first
//	trade N                N more trades, durable at once
//	durable N              only the first N trades are durable
//	cut N                  the journal ends with trade N
//	book RANGE...          the rows of these trades are written
//	alter FIELD RANGE...   a field of these rows is changed by hand
//	delete RANGE...        these rows are removed by hand
//	rename RANGE ID        a row gets another id
//	pass DURATION, restart
//	sweep, verify [step]   compares what is new and open; compares all again, or a page of it
//	status, counters       says how it stands
//	breaks                 says what breaks are open
//	compare                looks at everything itself: the breaks must be those
//
// A break says when it was first and last seen.
func TestReconciliationScenarios(t *testing.T) {
	scenariotest.Each(t, "testdata/scenarios/*.scn", func(t *testing.T, script, want string) {
		kept := []string{"1000"}
		if text, found := strings.CutPrefix(script, "blotter "); found {
			line, _, _ := strings.Cut(text, "\n")
			kept = strings.Fields(line)
		}
		for _, capacity := range kept {
			n := must.Get(strconv.Atoi(capacity))(t)
			each(t, n, 1, func(t *testing.T, g *rig) {
				p := scenario{rig: g, start: g.millis}
				for n, line := range scenariotest.Lines(script) {
					if err := p.line(strings.Fields(line)); err != nil {
						t.Fatalf("line %d: %v", n, err)
					}
					g.check()
				}
				if got := p.out.String(); got != want {
					t.Errorf("a blotter of %d: got\n%swant\n%s", g.journal.kept, got, want)
				}
			})
		}
	})
}

// scenario plays one script.
type scenario struct {
	*rig
	start int64
	out   strings.Builder
}

func (p *scenario) line(words []string) error {
	verb, rest := words[0], words[1:]
	switch verb {
	case "blotter":
		return nil
	case "restart":
		p.restart()
		return nil
	case "sweep":
		return p.Sweep(context.Background())
	case "verify":
		if len(rest) > 0 {
			return p.VerifyStep(context.Background())
		}
		p.verifyAll()
		return nil
	case "status", "counters", "breaks", "compare":
		return p.say(verb)
	case "book", "delete", "alter", "rename":
		return p.rows(verb, rest)
	}
	if len(rest) != 1 {
		return fmt.Errorf("%s takes one word", verb)
	}
	if verb == "grace" || verb == "pass" {
		d, err := time.ParseDuration(rest[0])
		if verb == "grace" {
			p.o.Grace = d
		} else {
			p.pass(d)
		}
		return err
	}
	n, err := strconv.Atoi(rest[0])
	switch verb {
	case "trade":
		p.journal.add(p.rng, n)
	case "durable":
		p.journal.durable = uint64(n)
	case "cut":
		p.journal.fills, p.journal.durable = p.journal.fills[:n], uint64(n)
	default:
		err = fmt.Errorf("unknown line %s", verb)
	}
	return err
}

// alterations are the changes of a row's fields, in SQL.
var alterations = map[string]string{
	"account": "account_id = account_id + 1", "price": "price = price + 1",
	"quantity": "quantity = quantity + 5", "security": "security = 'OTHER'",
	"side": "side = case side when 'Buy' then 'Sell' else 'Buy' end",
}

// rows changes rows.
func (p *scenario) rows(verb string, words []string) error {
	set := ""
	switch {
	case verb == "alter" && len(words) > 1 && alterations[words[0]] != "":
		set, words = alterations[words[0]], words[1:]
	case verb == "rename" && len(words) == 2:
		set, words = "id = '"+words[1]+"'", words[:1]
	case verb == "alter" || verb == "rename" || len(words) == 0:
		return errors.New("what, and which rows?")
	}
	for _, word := range words {
		first, last, found := strings.Cut(word, "-")
		if !found {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 64)
		if err != nil {
			return err
		}
		to, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			return err
		}
		switch {
		case verb == "book":
			p.project(from, to)
		case verb == "delete":
			p.edit("delete from trades where trade_seq between $1 and $2", from, to)
		default:
			p.edit("update trades set "+set+" where trade_seq between $1 and $2", from, to)
		}
	}
	return nil
}

// say appends how it stands.
func (p *scenario) say(what string) error {
	switch what {
	case "status":
		s := p.tallies()
		fmt.Fprintf(&p.out, "cursor %d: %d matched, %d missing, %d differ; %d behind\n", s.cursor,
			s.matched, s.missing, s.mismatch, s.lag)
		return nil
	case "counters":
		m := p.Metrics()
		fmt.Fprintf(&p.out, "so far %d matched, %d missing, %d differed; %d open\n", m.MatchedTotal,
			m.MissingInProjectionTotal, m.FieldMismatchTotal, m.OpenBreaks)
		return nil
	}
	all := p.breaks("")
	if what == "compare" {
		want, _ := p.full()
		sameBreaks(p.t, all, want)
		return nil
	}
	since := func(millis int64) time.Duration {
		return time.UnixMilli(millis).Sub(time.UnixMilli(p.start))
	}
	for _, b := range all {
		fields := ""
		if len(b.Fields) > 0 {
			fields = " in " + strings.Join(b.Fields, ", ")
		}
		fmt.Fprintf(&p.out, "%s %s%s, seen from %v to %v\n", b.TradeID, b.Class, fields,
			since(b.FirstSeenMillis), since(b.LastSeenMillis))
	}
	if len(all) == 0 {
		p.out.WriteString("no breaks\n")
	}
	return nil
}
