package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"posttrade/journal"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
)

// lookPatience is how long a start waits for a database to say how far it knows the
// history. One that takes longer is compared when it answers.
const lookPatience = 2 * time.Second

// startCheck compares the journal, before it is opened for writing, with everything that
// knows how far the history went. It returns an error that names the first that knows
// more, or another history. With --accept-older-journal that is logged, and what such a
// thing knows beyond the journal is given up.
type startCheck struct {
	c   *config
	log *slog.Logger
}

// core is called with a core that has recovered from a journal that is open for reading.
func (s startCheck) core(ctx context.Context, k *core) error {
	list := s.c.witnesses()
	var db *store.DB
	if s.c.Bool("sidecars.enabled") {
		var err error
		if db, err = s.c.databaseToLook(s.log); err != nil {
			return err
		}
		if db != nil {
			defer db.Close()
			list = append(list, databaseWitness(s.c.databaseName(), db))
		}
		k.compared = true
	}
	k.found = historyOf(k.journal)
	for i := range list {
		err := s.one(ctx, &list[i], &k.found)
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			s.log.Warn("the database has not been compared with the journal yet", "error", err)
			k.compared = false
			continue
		}
		if errors.Is(err, errOtherHistory) && list[i].name == s.c.databaseName() && s.c.String("database.url") != "" {
			return usagef("database.url: %v", err)
		}
		if err != nil {
			return fmt.Errorf("data.dir %s: %w", s.c.String("data.dir"), err)
		}
	}
	if s.c.Bool("accept-older-journal") && k.compared && db != nil {
		if err := db.Write(ctx, (*store.Tx).ForgetHistory); err != nil {
			return fmt.Errorf("%s: %w", s.c.databaseName(), err)
		}
	}
	if names := s.c.remainsIn(); k.genesis == nil && len(names) > 0 {
		if !s.c.Bool("accept-older-journal") {
			return fmt.Errorf("data.dir %s: the folder journal is missing or empty, but there is %v: %w",
				s.c.String("data.dir"), names, errOlderJournal)
		}
		s.log.Warn("a new journal is begun beside what an older one has left", "found", names)
	}
	return nil
}

// one compares a witness, and has it forget what the journal does not have if that is wanted.
func (s startCheck) one(ctx context.Context, w *witness, h *history) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	at, err := w.look(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	err = h.compare(w.name, &at)
	if at.mark != "" && h.genesis == [sha256.Size]byte{} && errors.Is(err, errOlderJournal) &&
		s.c.String("database.url") != "" {
		err = fmt.Errorf("%s knows the history up to %s, the journal is new: %w", w.name, at.reach(), errOtherHistory)
	}
	if err == nil || !s.c.Bool("accept-older-journal") ||
		!errors.Is(err, errOlderJournal) && !errors.Is(err, errOtherHistory) {
		return err
	}
	what, err := w.accept(context.WithoutCancel(ctx), h)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	s.log.Warn("--accept-older-journal: what the journal does not have is given up", "known to", w.name,
		"up to", at.reach(), "journal sequence", h.inputSeq, "journal trade", h.tradeSeq, "done", what)
	return nil
}

// databaseToLook opens the database; nil where no file of one is there.
func (c *config) databaseToLook(log *slog.Logger) (*store.DB, error) {
	address := c.String("database.url")
	if address == "" {
		file := filepath.Join(c.String("data.dir"), "posttrade.db")
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	return store.Open(store.Options{URL: address, Dir: c.String("data.dir"), BusyTimeout: lookPatience})
}

// databaseName is the database for messages, without user and password.
func (c *config) databaseName() string {
	if address := c.String("database.url"); address != "" {
		return "database " + settingNamed("database.url").masked(address)
	}
	return "database " + filepath.Join(c.String("data.dir"), "posttrade.db")
}

// historyGuard compares the database with the journal when the start could not: it was
// away, or this is a member that has just begun to lead. Nothing of this process writes
// into the database before. One that knows more stops admission; reads go on.
type historyGuard struct {
	check startCheck
	k     *core
	w     witness
	role  string
	done  chan struct{} // closed when it has been compared, and holds
}

// guardPause is how long a database that is away is left alone.
const guardPause = 200 * time.Millisecond

func newHistoryGuard(c *config, k *core, db *store.DB, role string, log *slog.Logger) *historyGuard {
	g := &historyGuard{
		check: startCheck{c, log}, k: k, w: databaseWitness(c.databaseName(), db), role: role,
		done: make(chan struct{}),
	}
	if role == riskextract.RoleSingle && k.compared {
		close(g.done)
	}
	return g
}

// run compares, unless the start has, and ends.
func (g *historyGuard) run(ctx context.Context) error {
	select {
	case <-g.done:
		return nil
	default:
	}
	h := g.k.found
	if g.role != riskextract.RoleSingle {
		var err error
		if h, err = g.agreed(ctx); err != nil {
			return err
		}
	}
	for {
		err := g.check.one(ctx, &g.w, &h)
		switch {
		case err == nil:
			close(g.done)
			return nil
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errOlderJournal), errors.Is(err, errOtherHistory):
			g.k.hold(err)
			return err
		}
		select {
		case <-time.After(guardPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// agreed is this member's history when all that was agreed before it began to lead is on
// its disk.
func (g *historyGuard) agreed(ctx context.Context) (history, error) {
	if err := g.k.journal.WaitStable(ctx, g.k.handed.Load()); err != nil {
		return history{}, err
	}
	return historyOf(g.k.journal), nil
}

// then runs a loop when the database has been compared, and never when it is another's.
func (g *historyGuard) then(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-g.done:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// hold has nothing admitted any more, for a reason; nil lets it go on.
func (c *core) hold(reason error) {
	if reason == nil {
		c.held.Store(nil)
		return
	}
	c.held.Store(&reason)
}

// isHeld reports that nothing is admitted. Any goroutine, no lock.
func (c *core) isHeld() bool { return c.held.Load() != nil }

// closedToSessions reports that sessions are told that nothing can be sequenced.
func (c *core) closedToSessions() bool { return c.journal.StorageFull() || c.isHeld() }

// stableSource is the journal as what writes outside of it reads it: nothing that a power
// cut could still take away.
type stableSource struct{ *journal.Journal }

// Head is the stable head.
func (s stableSource) Head() (inputSeq, tradeSeq uint64) { return s.StableHead() }
