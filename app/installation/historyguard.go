package installation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/sidecars/pace"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
)

// historyGuard compares the database with the journal when the start could not: the database was
// unreachable, or this is a member that has just begun to lead. Until then nothing in this process
// writes to the database. A database that knows more stops admission; reads go on.
//
// run closes done on its own goroutine; the loops in then wait for it. When the database is of
// another history, done is never closed, the error is on /readyz, and Engine.Held has it for
// admission.
//
// Behind that it takes the database for this process alone and closes sole; the loops in alone wait
// for it. The two are apart because a leader's sources, which orders wait for, must not wait until
// the database has noticed that the machine of the last leader is gone.
type historyGuard struct {
	check startCheck
	k     *engine.Engine
	db    *store.DB
	// The database as a neighbour.
	w neighbour
	// A role of riskextract. A single node may have been compared at the start; a leader never is.
	role string
	done chan struct{} // closed when the database has been compared and agrees
	sole chan struct{} // closed when, besides, this process alone has it
	// Why this guard has stopped admission; nil when it has not. Its writer is run; release reads it
	// when run has ended.
	held *error
}

// guardPause is the pause before the next try to reach a database. That before the next try to take
// one grows to holdPause: a leader that hands over lets go at once, and a server that waits for
// long must not be faster than the holder after a restart of the database.
const (
	guardPause = 200 * time.Millisecond
	holdPause  = 10 * time.Second
)

// newHistoryGuard makes a guard of db. Its done is closed at once on a single node whose start has
// compared the database.
func newHistoryGuard(c *settings.Config, k *engine.Engine, db *store.DB, role string,
	log *slog.Logger) *historyGuard {
	g := &historyGuard{
		check: startCheck{c, log}, k: k, db: db, w: databaseNeighbour(databaseName(c), db), role: role,
		done: make(chan struct{}), sole: make(chan struct{}),
	}
	if role == riskextract.RoleSingle && k.Compared {
		close(g.done)
	}
	return g
}

// run compares the database, unless the start has done so, and takes it. Then it keeps it until ctx
// ends.
//
// A nil error means that ctx has ended. An error means that the database is another history's or
// knows more; admission is held then.
func (g *historyGuard) run(ctx context.Context) error {
	select {
	case <-g.done:
	default:
		h := g.k.Found
		if g.role != riskextract.RoleSingle {
			var err error
			if h, err = g.agreed(ctx); err != nil {
				return err
			}
		}
		if agrees, err := g.compare(ctx, &h); !agrees {
			return err
		}
		close(g.done)
	}
	return g.keep(ctx)
}

// compare tries until the database answers; the first error of that wait is logged.
//
// It does not agree, without an error, when ctx has ended.
func (g *historyGuard) compare(ctx context.Context, h *engine.History) (agrees bool, err error) {
	for said := false; ; said = true {
		err := g.check.one(ctx, &g.w, h)
		switch {
		case err == nil:
			return true, nil
		case ctx.Err() != nil:
			return false, nil
		case errors.Is(err, errOlderJournal), errors.Is(err, errOtherHistory):
			g.hold(err)
			return false, err
		case !said:
			g.check.log.Warn("nothing is written into the database before it is compared with the journal",
				"error", err)
		}
		if !pace.Sleep(ctx, guardPause) {
			return false, nil
		}
	}
}

// keep takes the database and holds it. What another server has written while it held the database
// is compared before this process begins to write.
//
// A database that is lost later, as when its server restarts, is taken again. Should another server
// have been faster, that is logged and shown as the database's state; the loops go on, and
// reconciliation compares what they write beside it.
func (g *historyGuard) keep(ctx context.Context) error {
	failing := pace.Backoff{Least: guardPause, Most: holdPause}
	for waited, had := false, false; ; {
		err := g.db.Hold(ctx)
		if err == nil && !had && waited {
			h, err := g.agreed(ctx)
			if err != nil {
				return err
			}
			if agrees, err := g.compare(ctx, &h); !agrees {
				g.db.Release()
				return err
			}
			waited = false
			continue // the comparison may have taken longer than a holder may be silent
		}
		next := store.HoldEvery
		switch {
		case err == nil && !had:
			had = true
			close(g.sole)
		case err != nil && ctx.Err() == nil:
			if !failing.Failing() {
				g.check.log.Warn("the database is not held", "error", err, "writing", had)
			}
			waited = waited || errors.Is(err, store.ErrHeld)
			next = failing.Next()
		}
		if err == nil {
			failing.Reset()
		}
		if !pace.Sleep(ctx, next) {
			return nil
		}
	}
}

// agreed is this member's history, when everything that was agreed before it began to lead is on
// its disk.
//
// The history is taken after that wait, so it goes at least as far as what any earlier leader has
// given to the database.
func (g *historyGuard) agreed(ctx context.Context) (engine.History, error) {
	if err := g.k.Journal.WaitStable(ctx, g.k.Handed.Load()); err != nil {
		return engine.History{}, err
	}
	return engine.HistoryOf(g.k.Journal), nil
}

// then runs a loop once the database has been compared and agrees; if it is another history's, the
// loop never runs.
//
// Every loop that writes into the database goes through it or through alone.
func (g *historyGuard) then(run func(context.Context) error) func(context.Context) error {
	return pace.Behind(g.done, run)
}

// alone runs a loop once this process alone has the database: one that writes the history into it,
// or what operators do.
func (g *historyGuard) alone(run func(context.Context) error) func(context.Context) error {
	return pace.Behind(g.sole, run)
}

// hold stops admission for a reason, unless it is stopped already: the reason of a member that
// stands aside outlasts this guard. A command that was admitted before is still decided.
func (g *historyGuard) hold(reason error) {
	g.held = &reason
	g.k.Held.CompareAndSwap(nil, g.held)
}

// release lets admission go on if it was this guard that stopped it. The caller has waited for run,
// and this process does not use the database any more. A nil guard has stopped nothing.
func (g *historyGuard) release() {
	if g != nil && g.held != nil {
		g.k.Held.CompareAndSwap(g.held, nil)
	}
}

// isHeld reports that no order is admitted. Any goroutine may call it; it takes no lock.
func isHeld(c *engine.Engine) bool { return c.Held.Load() != nil }

// stableJournal is the journal as read by the sidecars that write outside of it: only commands that
// a power cut cannot take away.
//
// Otherwise a power cut in mode "os" could leave rows of commands that the next start does not
// find.
type stableJournal struct{ *journal.Journal }

// Head is the stable head.
//
// It never waits.
func (s stableJournal) Head() (inputSeq, tradeSeq uint64) { return s.StableHead() }
