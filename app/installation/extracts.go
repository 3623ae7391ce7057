package installation

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
)

// extracts makes the risk extract of every marker in the journal, and sequences a marker when a
// message announces the end of a day.
//
// The Extractor's loop and the consumer of messages are two goroutines. sequenced belongs to the
// second one, the others are set before both begin.
type extracts struct {
	k *engine.Engine
	// Nil without a broker: a member that does not lead, or one without sidecars.
	broker *broker.Broker
	// The closing marks of the database; nil without one.
	marks     *riskextract.SQLMarks
	Extractor *riskextract.Extractor
	open      func() bool // see openTo
	log       *slog.Logger

	// The engine of the last cut, between two cuts of a round; nil when it is closed. Of the goroutine
	// that has the Extractor's turn.
	shadow *journal.Shadow
	state  *matcher.Engine // the shadow's

	// The inputSeq of the marker, by the message that is not acknowledged yet. It is in memory only: a
	// restart loses it.
	sequenced map[eodWord]uint64
}

// NewExtracts makes the extracts of a process. Without a database there are no closing marks, and
// the progress is kept in a file. Without a broker the log has the announcements.
//
// role is one of riskextract's: a single node and a leader write the artifacts, a follower only
// renders the cuts and keeps a cursor of its own, which moves while the member leads, too. The
// measuring tools use it, too. NewExtracts starts nothing.
func NewExtracts(c *settings.Config, k *engine.Engine, db *store.DB, b *broker.Broker, role string,
	log *slog.Logger) *extracts {
	x := &extracts{k: k, broker: b, open: openTo(c, k), log: log, sequenced: map[eodWord]uint64{}}
	o := riskextract.Options{
		Sink: c.ExtractSink(), Counterparties: c.String("extract.counterparties"),
		Instruments: c.String("extract.instruments"),
		Engine:      x.engineAt, CloseEngine: x.closeEngine, Announce: x.announce, Markers: x.markers,
		Role: func() string { return role }, DB: db, Now: time.Now, Logger: log,
	}
	if db != nil {
		x.marks = &riskextract.SQLMarks{DB: db}
		o.Marks = x.marks
	}
	if b != nil {
		o.Returned = b.Changed
	}
	switch own := c.InDataDir("extracts.followed"); role {
	case riskextract.RoleFollower:
		o.Own = own
	case riskextract.RoleLeader:
		o.Followed = own
	}
	x.Extractor = riskextract.New(o)
	return x
}

// engineAt returns a second engine with the exact state at a sequence.
//
// It goes on with the engine that stands before seq, or else replays from the newest snapshot at or
// before seq, so the cost grows with the commands between. closeEngine closes the engine. seq must
// be durable.
func (x *extracts) engineAt(ctx context.Context, seq uint64) (_ riskextract.State, err error) {
	if x.shadow != nil && x.shadow.Applied() > seq {
		if err := x.closeEngine(); err != nil {
			return nil, err
		}
	}
	if x.shadow == nil {
		made := func(snapshot io.Reader) (journal.Engine, error) {
			e, err := engine.RebuildFrom(x.k.Genesis).Engine(snapshot)
			if err == nil {
				x.state = e.(*matcher.Engine) // the shadow keeps the one that was made last
			}
			return e, err
		}
		if x.shadow, err = journal.NewShadow(x.k.Journal, made, seq); err != nil {
			return nil, err
		}
	}
	if err := x.shadow.Follow(ctx, seq, nil); err != nil {
		return nil, errors.Join(err, x.closeEngine())
	}
	return x.state, nil
}

// closeEngine closes the engine of engineAt, if it is open.
func (x *extracts) closeEngine() error {
	if x.shadow == nil {
		return nil
	}
	err := x.shadow.Close()
	x.shadow, x.state = nil, nil
	return err
}

// announce publishes that the artifacts of a cut are there.
//
// It may be called again for the same extract, after a crash for example.
func (x *extracts) announce(_ context.Context, a riskextract.Announcement) error {
	text := a.AppendJSON(nil)
	if x.broker == nil {
		x.log.Info("extract ready", "announcement", string(text))
		return nil
	}
	return x.broker.Notify(extractReadySubject, text)
}

// markers finds the extract markers among the durable commands from a sequence on.
//
// next is where the caller goes on: every marker before it has been returned. On a member only the
// part of the journal that has not passed since the start is read, and single commands behind
// that.
func (x *extracts) markers(ctx context.Context,
	from uint64) (list []riskextract.Marker, next uint64, err error) {
	head, _ := x.k.Journal.StableHead()
	unseen, seen := x.k.Markers.Split(from, head)
	if from <= unseen {
		list, err = x.find(ctx, list, from, unseen)
	}
	for _, seq := range seen {
		if err == nil {
			list, err = x.find(ctx, list, seq, seq)
		}
	}
	return list, max(from, head+1), err
}

// find appends the markers between two durable sequences.
//
// A marker that cannot be decoded is an error of the journal's contents, and ends the search.
func (x *extracts) find(ctx context.Context, list []riskextract.Marker,
	from, to uint64) ([]riskextract.Marker, error) {
	err := x.k.Journal.ReplayTo(ctx, from, to,
		func(commands []matcher.Command, _ journal.ClientIDs) error {
			for i := range commands {
				c := &commands[i]
				if c.TemplateID != matcher.TemplateRiskExtract {
					continue
				}
				day, version, err := c.Extract()
				if err != nil {
					return err
				}
				list = append(list, riskextract.Marker{Seq: c.InputSeq, SessionDate: store.Date(day),
					PriceVersion: version})
			}
			return nil
		})
	return list, err
}
