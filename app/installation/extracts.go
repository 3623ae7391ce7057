package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/strictjson"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
)

// The subjects of the end of the day.
const (
	extractReadySubject = "risk.extract.ready"
	eodSubject          = "eod.pnl.done"
	eodDurable          = "risk-extract"
)

// eodStream has the messages that say that a day's profit and loss is done.
var eodStream = broker.Stream{Name: "SVC_EOD", Subjects: []string{eodSubject}}

// extracts makes the risk extract of every marker in the journal, and sequences a marker when a
// message announces the end of a day.
type extracts struct {
	k         *engine.Engine
	broker    *broker.Broker
	marks     *riskextract.SQLMarks
	Extractor *riskextract.Extractor
	log       *slog.Logger

	// the marker's sequence, by the stream sequence of a message that is not acknowledged yet
	sequenced map[uint64]uint64
}

// NewExtracts makes the extracts of a process. Without a database there are no closing marks, and
// the progress is kept in a file. Without a broker the log has the announcements.
func NewExtracts(c *settings.Config, k *engine.Engine, db *store.DB, b *broker.Broker, role string,
	log *slog.Logger) *extracts {
	x := &extracts{k: k, broker: b, log: log, sequenced: map[uint64]uint64{}}
	o := riskextract.Options{
		Sink: c.ExtractSink(), Counterparties: c.String("extract.counterparties"),
		Instruments: c.String("extract.instruments"),
		Engine:      x.engineAt, Announce: x.announce, Markers: x.markers,
		Role: func() string { return role }, DB: db, Now: time.Now, Logger: log,
	}
	if db != nil {
		x.marks = &riskextract.SQLMarks{DB: db}
		o.Marks = x.marks
	}
	if b != nil {
		o.Returned = b.Changed
	}
	if role == riskextract.RoleFollower {
		o.Own = c.InDataDir("extracts.followed")
	}
	x.Extractor = riskextract.New(o)
	return x
}

// engineAt returns a second engine with the exact state at a sequence.
func (x *extracts) engineAt(ctx context.Context,
	seq uint64) (riskextract.State, func() error, error) {
	var state *matcher.Engine // the shadow keeps the one that was made last
	shadow, err := journal.NewShadow(x.k.Journal, func(snapshot io.Reader) (journal.Engine, error) {
		e, err := engine.RebuildFrom(x.k.Genesis).Engine(snapshot)
		if err == nil {
			state = e.(*matcher.Engine)
		}
		return e, err
	}, seq)
	if err != nil {
		return nil, nil, err
	}
	if err := shadow.Follow(ctx, seq, nil); err != nil {
		return nil, nil, errors.Join(err, shadow.Close())
	}
	return state, shadow.Close, nil
}

// announce publishes that the artifacts of a cut are there.
func (x *extracts) announce(_ context.Context, a riskextract.Announcement) error {
	text := a.AppendJSON(nil)
	if x.broker == nil {
		x.log.Info("extract ready", "announcement", string(text))
		return nil
	}
	return x.broker.Notify(extractReadySubject, text)
}

// markers finds the extract markers among the durable commands from a sequence on.
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

// follow takes the messages of the end of a day from the broker, until ctx ends.
func (x *extracts) follow(ctx context.Context) error {
	return x.broker.Consume(ctx, broker.ConsumerConfig{
		Stream: eodStream, Durable: eodDurable, Subject: eodSubject, AckWait: eodPatience + time.Minute,
		BatchMessages: 1,
	}, x.take)
}

// eodPatience is how long one extract may take before the broker delivers its message again.
const eodPatience = 5 * time.Minute

// take sequences the marker of a day, and acknowledges the message when the extract has been
// announced. The broker delivers a message again when the extract was refused or late. The message
// then waits for the same marker; after a restart it gets a new marker.
func (x *extracts) take(ctx context.Context, messages []broker.Message) error {
	for i := range messages {
		m := &messages[i]
		day, version, err := readEndOfDay(m.Data)
		if err != nil {
			x.log.Warn("the word of a day's end is malformed", "stream", eodStream.Name, "sequence",
				m.Sequence, "error", err)
			if err := m.Term(err.Error()); err != nil {
				return err
			}
			continue
		}
		if err := x.endOfDay(ctx, m.Sequence, day, version); err != nil {
			return err
		}
		if err := m.Ack(); err != nil {
			return err
		}
		delete(x.sequenced, m.Sequence)
	}
	return nil
}

func (x *extracts) endOfDay(ctx context.Context, word uint64, day store.Date,
	version uint32) error {
	ctx, cancel := context.WithTimeout(ctx, eodPatience)
	defer cancel()
	if x.sequenced[word] == 0 {
		err := desk.SubmitUntil(ctx, x.k.Desk, 1, func(_ int, c *matcher.Command) error {
			*c = matcher.NewRiskExtract(int64(day), version)
			return nil
		}, func(a *desk.Answer) error {
			x.sequenced[word] = a.InputSeq
			return nil
		})
		if err != nil {
			return err
		}
	}
	return x.Extractor.Wait(ctx, x.sequenced[word])
}

var errEndOfDay = errors.New(
	"not {sessionDate, version}, of 1970-01-01 to 2149-06-06 and of 1 to 4294967295")

// readEndOfDay reads {"sessionDate":"yyyy-MM-dd","version":n}. It accepts what POST /risk/extract
// accepts: the extractor would refuse any other marker each time.
func readEndOfDay(data []byte) (day store.Date, version uint32, err error) {
	r := strictjson.NewReader(data)
	var dated, versioned bool
	for key := range r.Members {
		switch string(key) {
		case "sessionDate":
			dated = true
			if day, err = store.ParseDate(string(r.String())); err != nil {
				r.Fail(fmt.Errorf("%w: %w", errEndOfDay, err))
			} else if day < 0 || day > math.MaxUint16 {
				r.Fail(errEndOfDay)
			}
		case "version":
			versioned = true
			n := r.Int()
			if n < 1 || n > math.MaxUint32 {
				r.Fail(errEndOfDay)
			}
			version = uint32(n)
		default:
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return 0, 0, err
	}
	if !dated || !versioned {
		return 0, 0, errEndOfDay
	}
	return day, version, nil
}
