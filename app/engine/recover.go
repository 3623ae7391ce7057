package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
	"posttrade/matcher/gate"
)

// recovery says what a start found.
//
// recovery is written by Open alone; every goroutine that got the Engine may read it.
type recovery struct {
	// The last command and the last trade of the journal at the start; 0 in a new journal.
	Sequence, TradeSeq uint64
	// The sequence of the snapshot that the start began with; 0 when it replayed from the first
	// command.
	Snapshot uint64
	// Commands that were replayed behind the snapshot.
	Replayed uint64
	// The time of the steps 1 and 2 of Open.
	Took time.Duration
	// Snapshots that were skipped, and why, one text for each.
	Notes []string
	// why the system gives memory only when orders come; nil: it is there before them
	Room error
}

// recoverAndBegin changes nothing in the journal until it has read all that the start needs, and
// until the start is approved.
//
// A new journal takes another way: there is nothing to recover, so Approve is asked first, and
// engine and views are made when the genesis is on disk. Approve sees Genesis and Engine as nil
// then.
func (c *Engine) recoverAndBegin() (err error) {
	text, created := c.Journal.Genesis()
	if created {
		if c.Genesis, err = matcher.ParseGenesis(text); err == nil {
			err = c.recover()
		}
	}
	if err == nil && c.Options.Approve != nil {
		err = c.Options.Approve(c)
	}
	if err == nil {
		err = c.Journal.Begin()
	}
	if err == nil && !created {
		if err = c.create(); err == nil {
			err = c.recover()
		}
	}
	return err
}

// create writes the genesis of a new journal.
//
// The genesis is made only here, with keys that no other journal has, and never again in the life
// of this journal. On a member it is the genesis that the cluster has agreed on.
func (c *Engine) create() error {
	g, err := c.Options.Genesis()
	if err != nil {
		return err
	}
	c.Genesis = g
	return c.Journal.Create(g.Marshal())
}

// recover brings engine and views to the journal's head and reads the newest fills. It skips a
// snapshot that is damaged or has no views image. When no snapshot is left, it replays the journal
// from the first command.
//
// It fails when the replay and the journal count the trades differently. Engine and journal would
// otherwise give one number to two trades.
func (c *Engine) recover() error {
	r, err := journal.Recover(context.Background(), c.Journal, RebuildFrom(c.Genesis),
		func(err error) {
			c.Recovered.Notes = append(c.Recovered.Notes, err.Error())
		})
	if err != nil {
		return err
	}
	c.Engine, c.Views = r.Engine.(*matcher.Engine), r.Views.(asof.Image).Views
	c.Recovered.Snapshot, c.Recovered.Replayed = r.Snapshot, r.Replayed
	c.Recovered.Sequence, c.Recovered.TradeSeq = c.Journal.Head()
	if trades := c.Engine.TradeSeq(); trades != c.Recovered.TradeSeq {
		return fmt.Errorf("recovery: the journal ends with trade %d, its replay with %d",
			c.Recovered.TradeSeq, trades)
	}
	return c.recoverBlotter()
}

// RebuildFrom makes engines and views for recovery, snapshots and verification.
//
// All of them are made by the same two functions, so a snapshot, a replay and a second engine
// beside the first cannot differ in how they begin.
func RebuildFrom(g *matcher.Genesis) journal.Rebuild { return asof.Rebuild(g) }

// recoverBlotter reads the newest fills, as many as the blotter holds. The blotter is bounded and
// is in no snapshot: the journal's fill blocks give the same rows in the same order.
func (c *Engine) recoverBlotter() (err error) {
	if c.Blotter, err = blotter.New(c.Options.BlotterCapacity); err != nil {
		return err
	}
	fills, err := c.Journal.LastFills(c.Options.BlotterCapacity)
	if err != nil {
		return err
	}
	for i := range fills {
		c.Blotter.Append(&fills[i])
	}
	return nil
}

// fillGate gives the gate the universe, the limits and the last prices, as the journal knows them.
// Without control feeds the gate needs no more, and both sources are ready at once. With control
// feeds each source becomes ready when it has caught up.
//
// The gate refuses before the ring what the engine would refuse, so it must begin with the same
// state. From then on gateObserver keeps it current. What operators have set by hand is marked as
// such: a source that says something else later must not undo it.
//
// An error means that the views hold what the gate has no room for or does not accept. Both are
// made with the same capacities, so such an error is a bug, and it refuses the start.
func (c *Engine) fillGate() error {
	room := c.Views.Capacities()
	g := gate.New(room.Accounts, room.Securities)
	err := g.SetTick(c.Genesis.TickPx)
	for _, a := range c.Views.Accounts() {
		err = errors.Join(err, g.SetAccount(a.ID, a.Enabled, a.Version))
		if a.ByHand {
			err = errors.Join(err, g.HoldAccount(a.ID))
		}
	}
	for _, s := range c.Views.Securities() {
		err = errors.Join(err, g.Register(s.ID, s.Ticker))
		if s.Known {
			err = errors.Join(err, g.SetSecurity(s.ID, s.Ticker, s.Enabled, s.Halted, s.Version),
				g.HoldSecurity(s.ID, s.EnabledByHand, s.HaltedByHand))
		}
		if s.Restricted {
			err = errors.Join(err, g.SetRestricted(s.ID, true, s.Version))
		}
		if s.MarketPx > 0 {
			err = errors.Join(err, g.SetPrice(s.ID, s.MarketPx, s.MarketMillis))
		}
	}
	p := c.Views.Policy()
	g.SetPolicy(p.Version, p.KillSwitch, p.MaxPositionQty, p.MaxConcentrationNotional)
	g.SetRiskLimits(c.Engine.RiskLimits())
	c.Engine.EachOwnLimits(func(o matcher.OwnLimits) bool {
		err = errors.Join(err, g.SetOwnLimits(o))
		return err == nil
	})
	c.Engine.EachRevocation(func(r matcher.Revocation) bool {
		g.Revoke(r)
		return true
	})
	if !c.Options.Feeds {
		g.SetReady()
	}
	c.Gate = g
	return err
}

// Unready closes the gate until the control sources are followed again. Without feeds it does
// nothing: the gate needs none.
//
// A member calls it when it stops leading. Its replicas end then, so its gate would go on with a
// universe that is not followed. The versions stay as they are: they only say how far the gate is.
func (c *Engine) Unready() {
	if !c.Options.Feeds {
		return
	}
	for _, s := range c.Gate.Snapshot().Sources {
		if err := c.Gate.SetSource(s.Name, gate.Bootstrapping, s.Epoch,
			s.Watermark, s.HighWatermark, ""); err != nil {
			panic(err) // the names are the gate's own
		}
	}
}
