package perf

import (
	"errors"
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/perf/load"
)

// What the row asks for.
var besideCut = atMost("P12", besideLimit,
	"p99 of orders while a cut of %d positions and %d contracts is rendered, against without").
	as("p99 of orders while a cut is rendered, against without")

// The universe of the cut: every account has a position in every security, which makes 100,000
// positions and as many contracts.
const (
	cutSecurities = 200
	cutAccounts   = 500
)

// measureCut is the last part of row P12: orders while a cut of 100,000 positions and 100,000
// contracts is rendered.
//
// The load is single orders at a tenth of saturation in mode fsync, to one engine without members.
// The positions and contracts come from real orders and bookings before it, and a snapshot behind
// them, so that a cut does not begin with a long replay. A cut that is over before the turn is made
// again. A cut's own time is stated and not judged.
func measureCut(r *Run) (err error) {
	// pairs; the accounts of the load are among them
	accounts, securities := max(r.scale(cutAccounts)&^1, 2*flowAccounts),
		max(r.scale(cutSecurities), 4)
	g := cutGenesis(accounts, securities)
	e, err := r.open(engineOptions{folder: "cut", durability: "fsync", genesis: g})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	x, err := r.withExtracts(e)
	if err != nil {
		return err
	}
	wanted := accounts * securities
	err = errors.Join(submitAll(e, wanted,
		func(i int) matcher.Command { return positionOrder(i, accounts) }),
		submitAll(e, wanted, func(i int) matcher.Command { return swap(i, accounts) }))
	if err != nil {
		return err
	}
	if err := e.snapshot(); err != nil { // the engine of the cut starts from it
		return err
	}
	clock := load.NewBusyClock()
	c := beside{name: "cut", target: newEngineTarget(e, clock), clock: clock,
		alone: r.duration(besideTurn)}
	c.work = func(int) error { return r.cuts(x, c.alone, wanted) }
	if err := c.saturation(r, besideRate); err != nil {
		return err
	}
	p, err := r.besideWork(c)
	if err != nil {
		return err
	}
	r.judgeBeside(besideCut, p, wanted, wanted)
	return nil
}

// cuts makes extracts, one after the other, for about d, and at least one. An extract with other
// numbers of positions and contracts is an error.
func (r *Run) cuts(x extracting, d time.Duration, wanted int) error {
	times := 0
	begun := time.Now()
	for times == 0 || time.Since(begun) < d {
		positions, contracts, err := x.extract()
		if err != nil {
			return err
		}
		if positions != wanted || contracts != wanted {
			return fmt.Errorf("a cut of %d positions and %d contracts, want %d of both", positions,
				contracts, wanted)
		}
		times++
	}
	took := time.Since(begun)
	r.bench(fmt.Sprintf("Cut/op=extract/positions=%d/contracts=%d", wanted, wanted), times, took)
	return nil
}

// cutGenesis is a universe with room for so many positions and contracts. accounts must be even,
// see positionOrder.
func cutGenesis(accounts, securities int) *matcher.Genesis {
	g := flowGenesis(securities)
	g.Limits.MaxContracts = 1 << 17
	g.Accounts = nil
	for a := range accounts {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: uint32(a + 1), Enabled: true})
	}
	return g
}

// positionOrder is one of the orders that give every account a position in every security: for each
// security, accounts sell and buy in turns at one price. So each buy takes the sell before it and
// nothing stays on the book; i counts from 0 to accounts times securities, and accounts is even.
func positionOrder(i, accounts int) matcher.Command {
	c := matcher.NewCommand(matcher.OrderNew)
	c.AccountID, c.SecurityID = uint32(i%accounts+1), uint32(i/accounts+1)
	c.Side = matcher.Sell
	if i&1 == 1 {
		c.Side = matcher.Buy
	}
	c.Qty, c.LimitPx = int32(10+i/2%90), 187_000_000
	return keyed(c, i)
}

// swap is the booking of a contract by each account in turn. No two contracts have the same
// notional and rate.
func swap(i, accounts int) matcher.Command {
	t := matcher.ContractTerms{AccountID: uint32(i%accounts + 1), Side: matcher.Side(i & 1),
		Notional:  int32(1_000_000 + i),
		FixedRate: 42_000 + int64(i), Effective: 20_000, Maturity: 22_000}
	return keyed(t.Command(), i)
}

// keyed gives a command a key and a time of its own. The key has the kind of command in it, so that
// the orders and the bookings of one i are not duplicates.
func keyed(c matcher.Command, i int) matcher.Command {
	c.PriceTicks, c.EventTimeMillis = int64(i)<<8|int64(c.TemplateID), 1_700_000_000_000
	return c
}

// submitAll submits n commands in tickets of 500, each after the answer to the one before, and
// returns an error for an answer that is not an acceptance. It is not timed: it prepares a row.
func submitAll(e *fullEngine, n int, command func(i int) matcher.Command) error {
	const batch = 500
	for from := 0; from < n; from += batch {
		t, err := e.Desk.Acquire(min(batch, n-from))
		if err != nil {
			return err
		}
		for i := range t.Len() {
			*t.Command(i) = command(from + i)
		}
		if err := answersOf(t); err != nil {
			return fmt.Errorf("commands from=%d: %w", from, err)
		}
	}
	return nil
}

// answersOf submits a ticket, waits for the answers and releases the ticket. A ring without room is
// an error here, because only one ticket is under way.
func answersOf(t *desk.Ticket) error {
	defer t.Release()
	if err := errors.Join(t.Submit(), t.Wait(0)); err != nil {
		return err
	}
	for i := range t.Len() {
		if a := t.Answer(i); a.Reason != matcher.Accepted {
			return fmt.Errorf("command refused: %v", a.Reason)
		}
	}
	return nil
}
