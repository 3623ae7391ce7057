package installation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/sidecars/store"
)

// lookPatience is how long a start waits for a database to say how far it knows the history. A
// database that takes longer is compared when it answers.
//
// It bounds the busy time of the embedded database, too.
const lookPatience = 2 * time.Second

// startCheck compares the journal, before it is opened for writing, with everything that knows how
// far the history went. It returns an error that names a neighbour that knows more, or that knows
// another history. With --accept-older-journal it logs this instead, and the neighbour gives up
// what it knows beyond the journal.
//
// It is for a single node. A member compares when it begins to lead: see historyGuard.
type startCheck struct {
	c   *settings.Config
	log *slog.Logger
}

// core is called with an engine that has recovered from a journal that is open for reading.
//
// It sets k.Found and k.Compared, and changes nothing in the journal. All neighbours are compared
// before the first one gives something up: a start that is refused has changed nothing. Errors end
// the start with the code of refusals.
//
// A database that cannot be reached is not compared here; the guard compares it before anything of
// this process writes to it. One that only a person can repair refuses the start. With
// --accept-older-journal the database also forgets which history it belongs to.
func (s startCheck) core(ctx context.Context, k *engine.Engine) error {
	list := neighbours(s.c)
	var db *store.DB
	if s.c.Bool("sidecars.enabled") {
		var err error
		if db, err = databaseToLook(s.c); err != nil {
			return err
		}
		if db != nil {
			defer db.Close()
			list = append(list, databaseNeighbour(databaseName(s.c), db))
		}
		k.Compared = true
	}
	k.Found = engine.HistoryOf(k.Journal)
	ahead, err := s.compareAll(ctx, list, k)
	if err == nil {
		err = s.giveUpAll(ctx, ahead, k)
	}
	if err != nil {
		return err
	}
	if s.c.Bool("accept-older-journal") && k.Compared && db != nil {
		err := db.Hold(ctx)
		if err == nil {
			err = db.Write(ctx, (*store.Tx).ForgetHistory)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", databaseName(s.c), err)
		}
	}
	if k.Genesis == nil {
		return s.remains()
	}
	return nil
}

// compareAll compares every neighbour with the journal. It returns those that are ahead of it and
// may give that up, or the refusal of one that may not. It clears k.Compared when the database
// cannot be reached.
func (s startCheck) compareAll(ctx context.Context, list []neighbour, k *engine.Engine) (
	ahead []differing, refused error,
) {
	for i := range list {
		at, err := s.compare(ctx, &list[i], &k.Found)
		switch {
		case err == nil:
		case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrMigration):
			if refused == nil { // unlike one that is away, it does not come back by itself
				refused = s.named(&list[i], err)
			}
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
			s.log.Warn("the database has not been compared with the journal yet", "error", err)
			k.Compared = false
		case s.accepts(err):
			ahead = append(ahead, differing{&list[i], at})
		case refused == nil || errors.Is(err, errOtherHistory) && !errors.Is(refused, errOtherHistory):
			// An older journal has a way out that makes another history worse.
			refused = s.named(&list[i], err)
		}
	}
	return ahead, refused
}

// giveUpAll has the neighbours give up what the journal does not have: first all of them keep a
// copy, then the database, which is the last of them, gives up first: its accept alone may refuse.
func (s startCheck) giveUpAll(ctx context.Context, ahead []differing, k *engine.Engine) error {
	for _, d := range ahead {
		if d.keeps == nil {
			continue
		}
		if err := d.keeps(); err != nil {
			return s.named(d.neighbour, fmt.Errorf("%s: %w", d.name, err))
		}
	}
	for _, d := range slices.Backward(ahead) {
		if err := s.giveUp(ctx, d, &k.Found); err != nil {
			return s.named(d.neighbour, err)
		}
	}
	return nil
}

// remains refuses a new journal beside what an older one has left, unless that is accepted.
func (s startCheck) remains() error {
	names := remainsIn(s.c)
	if len(names) == 0 {
		return nil
	}
	if !s.c.Bool("accept-older-journal") {
		return fmt.Errorf("data.dir %s: the folder journal is missing or empty, but there is %v: %w",
			s.c.String("data.dir"), names, errOlderJournal)
	}
	s.log.Warn("a new journal is begun beside what an older one has left", "found", names)
	return nil
}

// named says which setting leads to the neighbour that has refused.
func (s startCheck) named(n *neighbour, err error) error {
	if errors.Is(err, errOtherHistory) && n.name == databaseName(s.c) &&
		s.c.String("database.url") != "" {
		return settings.Usagef("database.url: %v", err)
	}
	return fmt.Errorf("data.dir %s: %w", s.c.String("data.dir"), err)
}

// differing is a neighbour that does not agree with the journal, and what it knows.
type differing struct {
	*neighbour
	at coverage
}

// one compares a neighbour, which gives up what the journal does not have when that is accepted.
func (s startCheck) one(ctx context.Context, n *neighbour, h *engine.History) error {
	at, err := s.compare(ctx, n, h)
	if err != nil && s.accepts(err) {
		return s.giveUp(ctx, differing{n, at}, h)
	}
	return err
}

// accepts reports whether --accept-older-journal is given and overrides the error of a comparison.
func (s startCheck) accepts(err error) bool {
	return s.c.Bool("accept-older-journal") && !errors.Is(err, errOtherGenesis) &&
		(errors.Is(err, errOlderJournal) || errors.Is(err, errOtherHistory))
}

// compare compares a neighbour and changes nothing. It returns what the neighbour knows.
//
// A database at an address with a mark, and a journal that is new, is more likely to be another
// installation's database than that of a lost journal; the error says so.
func (s startCheck) compare(ctx context.Context, n *neighbour,
	h *engine.History) (at coverage, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if at, err = n.look(ctx); err != nil {
		return at, fmt.Errorf("%s: %w", n.name, err)
	}
	err = compare(h, n.name, &at)
	if at.mark != "" && h.Genesis == [sha256.Size]byte{} && errors.Is(err, errOlderJournal) &&
		s.c.String("database.url") != "" {
		err = fmt.Errorf("%s knows the history up to %s, the journal is new: %w", n.name, at.reach(),
			errOtherHistory)
	}
	return at, err
}

// giveUp makes a neighbour forget what the journal does not have.
func (s startCheck) giveUp(ctx context.Context, d differing, h *engine.History) error {
	what, err := d.accept(context.WithoutCancel(ctx), h)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	s.log.Warn("--accept-older-journal: what the journal does not have is given up", "known to",
		d.name,
		"up to", d.at.reach(), "journal sequence", h.InputSeq, "journal trade", h.TradeSeq,
		"done", what)
	return nil
}

// databaseToLook opens the database for the comparison alone; the caller closes it. It returns nil
// when the file of the embedded one does not exist, so that a start that is refused makes none.
func databaseToLook(c *settings.Config) (*store.DB, error) {
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
