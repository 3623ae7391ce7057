package installation

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"posttrade/app/engine"
	"posttrade/journal/acts"
	"posttrade/matcher/note"
	"posttrade/sidecars/store"
)

// pendingActs puts on record in the journal what operators have done on the database, also while no
// process had the journal open. Each act is there once, whenever the process or its leadership
// ends: before the note is submitted, the row says from where on the journal may have it.
//
// An operator's command changes the database and cannot write the journal: only a server does, and
// none may be running. So the act waits in a row. The protocol of a row, each step durable before
// the next:
//
//   - the row says from which sequence on the journal may have the note
//   - the note is submitted
//   - the row is deleted
//
// A process that dies between the second and the third step finds the note by reading from that
// sequence. One goroutine, the one in run, owns it.
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
//
// Nothing waits for an act but the reader of the journal.
const actsPause = time.Second

// run puts on record what waits, until ctx ends.
//
// A failure is logged once, and once more when it comes again after a success. While database or
// desk refuse, the acts keep their order.
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
//
// It stops at the first error, because the acts are put on record in the order of their numbers.
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
//
// A row that was sought before keeps its lower bound, so an earlier attempt stays within what is
// read.
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

// drop deletes the row of an act that is on record.
func (p *pendingActs) drop(ctx context.Context, a *store.Act) error {
	return p.db.Write(ctx, func(tx *store.Tx) error { return tx.DropAct(a.Number) })
}

// onRecord reports that the journal has an act, in a sequence or behind it.
//
// An act is the same when kind, subject, reason, object and new value are equal. The cost is a
// reading of the journal from that sequence on, only after an attempt that was cut short.
func (p *pendingActs) onRecord(ctx context.Context, from uint64, n *note.Note) (found bool,
	err error) {
	err = p.read.Read(ctx, acts.Query{From: from, Kind: n.Kind}, func(r *acts.Record) error {
		found = found || r.Subject == n.Subject && r.Reason == n.Reason &&
			bytes.Equal(r.Object, n.Object) && bytes.Equal(r.New, n.New)
		return nil
	})
	return found, err
}
