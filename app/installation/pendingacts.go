package installation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal/acts"
	"posttrade/matcher/note"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// ByHand returns the note of the act of a command. Its caller has no token: the account of
// the operating system and the machine's name stand for subject and address. A reason is required
// in production.
func ByHand(c *settings.Config, reason string) (n note.Note, err error) {
	switch {
	case reason != "":
		if n.Reason, err = note.CheckReason(reason); err != nil {
			return n, settings.Usagef("reason: %v", err)
		}
	case c.String("profile") == "production":
		return n, settings.Usagef("reason: profile=production needs it: why this is done")
	}
	n.Subject, n.Address = OSUser(), hostName()
	return n, nil
}

// OSUser is the subject of a command without a token: the account of the operating system, or the
// number of one without a name.
func OSUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return "os:" + strings.ToValidUTF8(u.Username, "?")
	}
	return fmt.Sprint("os:", os.Getuid())
}

// hostName is the machine's name, "" when it has none.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(name, "?")
}

// What an act on a source is about, and its value.
type (
	bySource struct {
		Source control.Source `json:"source"`
	}
	epochValue struct {
		Epoch uint64 `json:"epoch"`
		Begun string `json:"begun,omitempty"` // the act's own time: the record may come later
	}
)

// putEpochAct has a new epoch wait to be put on record, in the transaction that begins it.
func putEpochAct(tx *store.Tx, name control.Source, by note.Note, was, is uint64) error {
	now := time.Now()
	a := store.Act{Kind: note.Epoch, Subject: by.Subject, Address: by.Address, Reason: by.Reason,
		Object: string(note.Value(bySource{name})), MadeAt: now.UnixMilli(),
		New: string(note.Value(epochValue{is, now.UTC().Format(time.RFC3339)}))}
	if was != 0 {
		a.Old = string(note.Value(epochValue{Epoch: was}))
	}
	return tx.PutAct(&a)
}

// What an act on a record of a source is about, and its values.
type (
	flaggedAccount struct {
		AccountID uint32         `json:"accountId"`
		Source    control.Source `json:"source"`
	}
	flaggedSecurity struct {
		Security string         `json:"security"`
		Source   control.Source `json:"source"`
	}
	accountFlags struct {
		Enabled bool `json:"enabled"`
	}
	securityFlags struct {
		Enabled bool `json:"enabled"`
		Halted  bool `json:"halted"`
	}
)

// putFlagAct has a change of a flag by hand, at a source, wait to be put on record. Its kind is
// that of the same act at the order-matcher.
func putFlagAct(tx *store.Tx, by *store.Act, was, is *control.Record) error {
	a := *by
	switch a.Kind = note.Disable; {
	case was.Halted != is.Halted:
		a.Kind = note.Halt
	case is.Enabled:
		a.Kind = note.Enable
	}
	var object, before, after any = flaggedAccount{is.ID, control.Account}, accountFlags{was.Enabled},
		accountFlags{is.Enabled}
	if is.Ticker != "" {
		object = flaggedSecurity{is.Ticker, control.Security}
		before = securityFlags{was.Enabled, was.Halted}
		after = securityFlags{is.Enabled, is.Halted}
	}
	a.Object, a.Old, a.New = string(note.Value(object)), string(note.Value(before)),
		string(note.Value(after))
	a.MadeAt = time.Now().UnixMilli()
	return tx.PutAct(&a)
}

// pendingActs puts on record in the journal what operators have done on the database, also while no
// process had the journal open. Each act is there once, whenever the process or its leadership
// ends: before the note is submitted, the row says from where on the journal may have it.
type pendingActs struct {
	db   *store.DB
	k    *engine.Engine
	read *acts.Reader
	log  *slog.Logger
	said bool // that an attempt has failed
}

func newPendingActs(db *store.DB, k *engine.Engine, log *slog.Logger) *pendingActs {
	return &pendingActs{db: db, k: k, read: acts.New(k.Journal, k.Gate.Ticker), log: log}
}

// actsPause is the time between two looks for acts that wait.
const actsPause = time.Second

// run puts on record what waits, until ctx ends.
func (p *pendingActs) run(ctx context.Context) error {
	look := time.NewTicker(actsPause)
	defer look.Stop()
	for {
		err := p.all(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != p.said {
			if p.said = failed; failed {
				p.log.Warn("operators' acts wait to be put on record", "error", err)
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// all puts on record what waits now.
func (p *pendingActs) all(ctx context.Context) error {
	for {
		var a store.Act
		var found bool
		err := p.db.Read(ctx, func(tx *store.Tx) (err error) {
			a, found, err = tx.FirstAct()
			return err
		})
		if err != nil || !found {
			return err
		}
		if err := p.one(ctx, &a); err != nil {
			return err
		}
	}
}

// one puts an act on record, unless the journal has it already, and deletes its row.
func (p *pendingActs) one(ctx context.Context, a *store.Act) error {
	n := note.Note{Kind: a.Kind, Subject: a.Subject, Address: a.Address, Reason: a.Reason,
		Object: json.RawMessage(a.Object), Old: json.RawMessage(a.Old), New: json.RawMessage(a.New)}
	if a.Sought > 0 {
		known, err := p.onRecord(ctx, a.Sought, &n)
		if err != nil {
			return err
		}
		if known {
			return p.drop(ctx, a)
		}
	}
	head, _ := p.k.Journal.Head()
	from := head + 1
	if a.Sought > 0 {
		from = min(from, a.Sought)
	}
	err := p.db.Write(ctx, func(tx *store.Tx) error { return tx.SeekAct(a.Number, from) })
	if err != nil {
		return err
	}
	inputSeq, err := note.Record(ctx, p.k.Desk, &n, time.Now())
	if err != nil {
		return err
	}
	n.Log(p.log, inputSeq)
	return p.drop(ctx, a)
}

func (p *pendingActs) drop(ctx context.Context, a *store.Act) error {
	return p.db.Write(ctx, func(tx *store.Tx) error { return tx.DropAct(a.Number) })
}

// onRecord reports that the journal has an act, in a sequence or behind it.
func (p *pendingActs) onRecord(ctx context.Context, from uint64, n *note.Note) (found bool,
	err error) {
	err = p.read.Read(ctx, acts.Query{From: from, Kind: n.Kind}, func(r *acts.Record) error {
		found = found || r.Subject == n.Subject && r.Reason == n.Reason &&
			bytes.Equal(r.Object, n.Object) && bytes.Equal(r.New, n.New)
		return nil
	})
	return found, err
}
