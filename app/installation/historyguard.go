package installation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
)

// lookPatience is how long a start waits for a database to say how far it knows the history. A
// database that takes longer is compared when it answers.
const lookPatience = 2 * time.Second

// startCheck compares the journal, before it is opened for writing, with everything that knows how
// far the history went. It returns an error that names the first witness that knows more, or that
// knows another history. With --accept-older-journal it logs this instead, and the witness gives up
// what it knows beyond the journal.
type startCheck struct {
	c   *settings.Config
	log *slog.Logger
}

// core is called with an engine that has recovered from a journal that is open for reading.
func (s startCheck) core(ctx context.Context, k *engine.Engine) error {
	list := witnesses(s.c)
	var db *store.DB
	if s.c.Bool("sidecars.enabled") {
		var err error
		if db, err = databaseToLook(s.c, s.log); err != nil {
			return err
		}
		if db != nil {
			defer db.Close()
			list = append(list, databaseWitness(databaseName(s.c), db))
		}
		k.Compared = true
	}
	k.Found = engine.HistoryOf(k.Journal)
	for i := range list {
		err := s.one(ctx, &list[i], &k.Found)
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			s.log.Warn("the database has not been compared with the journal yet", "error", err)
			k.Compared = false
			continue
		}
		if errors.Is(err, errOtherHistory) && list[i].name == databaseName(s.c) &&
			s.c.String("database.url") != "" {
			return settings.Usagef("database.url: %v", err)
		}
		if err != nil {
			return fmt.Errorf("data.dir %s: %w", s.c.String("data.dir"), err)
		}
	}
	if s.c.Bool("accept-older-journal") && k.Compared && db != nil {
		if err := db.Write(ctx, (*store.Tx).ForgetHistory); err != nil {
			return fmt.Errorf("%s: %w", databaseName(s.c), err)
		}
	}
	if names := remainsIn(s.c); k.Genesis == nil && len(names) > 0 {
		if !s.c.Bool("accept-older-journal") {
			return fmt.Errorf("data.dir %s: the folder journal is missing or empty, but there is %v: %w",
				s.c.String("data.dir"), names, errOlderJournal)
		}
		s.log.Warn("a new journal is begun beside what an older one has left", "found", names)
	}
	return nil
}

// one compares a witness. With --accept-older-journal the witness forgets what the journal does not
// have.
func (s startCheck) one(ctx context.Context, w *witness, h *engine.History) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	at, err := w.look(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	err = compare(h, w.name, &at)
	if at.mark != "" && h.Genesis == [sha256.Size]byte{} && errors.Is(err, errOlderJournal) &&
		s.c.String("database.url") != "" {
		err = fmt.Errorf("%s knows the history up to %s, the journal is new: %w", w.name, at.reach(),
			errOtherHistory)
	}
	if err == nil || !s.c.Bool("accept-older-journal") ||
		!errors.Is(err, errOlderJournal) && !errors.Is(err, errOtherHistory) {
		return err
	}
	what, err := w.accept(context.WithoutCancel(ctx), h)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	s.log.Warn("--accept-older-journal: what the journal does not have is given up", "known to",
		w.name,
		"up to", at.reach(), "journal sequence", h.InputSeq, "journal trade", h.TradeSeq, "done", what)
	return nil
}

// databaseToLook opens the database; nil when the file of the embedded one does not exist.
func databaseToLook(c *settings.Config, log *slog.Logger) (*store.DB, error) {
	address := c.String("database.url")
	if address == "" {
		file := filepath.Join(c.String("data.dir"), "posttrade.db")
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	return store.Open(store.Options{URL: address, Dir: c.String("data.dir"),
		BusyTimeout: lookPatience})
}

// databaseName names the database in messages, without user and password.
func databaseName(c *settings.Config) string {
	if address := c.String("database.url"); address != "" {
		return "database " + settings.Named("database.url").Masked(address)
	}
	return "database " + filepath.Join(c.String("data.dir"), "posttrade.db")
}

// historyGuard compares the database with the journal when the start could not: the database was
// unreachable, or this is a member that has just begun to lead. Until then nothing in this process
// writes to the database. A database that knows more stops admission; reads go on.
type historyGuard struct {
	check startCheck
	k     *engine.Engine
	w     witness
	role  string
	done  chan struct{} // closed when the database has been compared and agrees
}

// guardPause is the pause before the next try to reach a database.
const guardPause = 200 * time.Millisecond

func newHistoryGuard(c *settings.Config, k *engine.Engine, db *store.DB, role string,
	log *slog.Logger) *historyGuard {
	g := &historyGuard{
		check: startCheck{c, log}, k: k, w: databaseWitness(databaseName(c), db), role: role,
		done: make(chan struct{}),
	}
	if role == riskextract.RoleSingle && k.Compared {
		close(g.done)
	}
	return g
}

// run compares the database, unless the start has done so, and returns.
func (g *historyGuard) run(ctx context.Context) error {
	select {
	case <-g.done:
		return nil
	default:
	}
	h := g.k.Found
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
			hold(g.k, err)
			return err
		}
		select {
		case <-time.After(guardPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// agreed is this member's history, when everything that was agreed before it began to lead is on
// its disk.
func (g *historyGuard) agreed(ctx context.Context) (engine.History, error) {
	if err := g.k.Journal.WaitStable(ctx, g.k.Handed.Load()); err != nil {
		return engine.History{}, err
	}
	return engine.HistoryOf(g.k.Journal), nil
}

// then runs a loop once the database has been compared and agrees; if it is another history's, the
// loop never runs.
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

// hold stops admission for a reason; a nil reason lets admission go on.
func hold(c *engine.Engine, reason error) {
	if reason == nil {
		c.Held.Store(nil)
		return
	}
	c.Held.Store(&reason)
}

// isHeld reports that no order is admitted. Any goroutine may call it; it takes no lock.
func isHeld(c *engine.Engine) bool { return c.Held.Load() != nil }

// stableJournal is the journal as read by the sidecars that write outside of it: only commands that
// a power cut cannot take away.
type stableJournal struct{ *journal.Journal }

// Head is the stable head.
func (s stableJournal) Head() (inputSeq, tradeSeq uint64) { return s.StableHead() }
