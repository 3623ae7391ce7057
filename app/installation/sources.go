package installation

import (
	"context"
	"log/slog"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/matcher/note"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
	"posttrade/sidecars/outbox"
	"posttrade/sidecars/securities"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// controlSources are the account-service and the reference-data service: their tables, the
// publishers of their changes, and the replicas that carry the changes into the gate.
//
// It is made with the sidecars and, by a command that begins a new epoch, without an engine.
type controlSources struct {
	// The tables with their rules. Every change is a transaction of the row and its outbox row.
	accounts   *accounts.Accounts
	securities *securities.Securities
	// One feed for each source; the map is constant.
	feeds map[control.Source]*feeds.Feed
	// A change of a flag needs a reason. Constant once a service uses the tables.
	needReason bool
}

// NewControlSources makes both services and their publishers. It starts nothing.
//
// poll is the time between two looks into the outbox. A change wakes the outbox at once; poll
// finds changes of other processes. k is nil for a caller that has no engine; then no row is
// refused for want of room.
func NewControlSources(db *store.DB, b *broker.Broker, poll time.Duration, k *engine.Engine,
	log *slog.Logger) *controlSources {
	s := &controlSources{feeds: map[control.Source]*feeds.Feed{}}
	for _, name := range control.Sources() {
		stream := feeds.Stream{Broker: b, Source: name}
		s.feeds[name] = &feeds.Feed{Source: name, Stream: stream, Log: log,
			Outbox: outbox.New(outbox.Options{
				Source: name, DB: db, Stream: stream, Poll: poll, Logger: log, Returned: b.Changed,
			})}
	}
	options := func(name control.Source) source.Options {
		feed := s.feeds[name]
		o := source.Options{DB: db, Changed: feed.Outbox.Wake, Flagged: s.flagged,
			Seed: func(ctx context.Context) (int, error) { return feed.Seed(ctx) }}
		if k != nil { // nil: the caller only changes the epoch
			o.Capacity = feeds.Capacity{Source: name, Gate: k.Gate}
		}
		return o
	}
	s.accounts = accounts.New(options(control.Account))
	s.securities = securities.New(options(control.Security))
	return s
}

// flagged puts a change of a flag on record, see putFlagAct. In production the operator has to say
// why, as for the same act at the order-matcher; a change without a reason is control.ErrReason.
func (s *controlSources) flagged(tx *store.Tx, by *store.Act, was, is *control.Record) error {
	if s.needReason && by.Reason == "" {
		return control.ErrReason
	}
	return putFlagAct(tx, by, was, is)
}

// seeding fills empty tables from the seed files.
//
// The rows are read at the start, so that a bad file refuses it. The tables are filled later, by
// the loop of each feed, if they are empty then. Errors are usage errors with the line of the
// file.
func (s *controlSources) seeding(c *settings.Config) error {
	accountRows, err := c.SeedAccounts()
	if err != nil {
		return err
	}
	securityRows, err := c.SeedSecurities()
	if err != nil {
		return err
	}
	s.feeds[control.Account].Seed = func(ctx context.Context) (int, error) {
		rows := make([]accounts.Account, len(accountRows))
		for i, a := range accountRows {
			rows[i] = accounts.Account{ID: a.ID, DisplayName: a.DisplayName, Enabled: a.Enabled}
		}
		return s.accounts.Seed(ctx, rows)
	}
	s.feeds[control.Security].Seed = func(ctx context.Context) (int, error) {
		rows := make([]securities.Stock, len(securityRows))
		for i, x := range securityRows {
			rows[i] = securities.Stock{Ticker: x.Ticker, CompanyName: x.CompanyName, Enabled: x.Enabled,
				Halted: x.Halted}
		}
		return s.securities.Seed(ctx, rows)
	}
	return nil
}

// replicate makes the replicas of both sources. Each subscribes, fetches its snapshot from the
// address of the service, and then runs by itself.
//
// The snapshots are fetched from the services' own listeners in this process, as any other replica
// would fetch them, with a token of their own if the services require one. The listeners must be
// open. Until a replica is ready its source is not, and the gate admits no order.
func (s *controlSources) replicate(c *settings.Config, in *Installation, b *broker.Broker) {
	k, l := in.Core, in.listeners
	room := func(s control.Source) int {
		_, capacity := feeds.Capacity{Source: s, Gate: k.Gate}.Places()
		return capacity
	}
	fetcher := feeds.NewSnapshotFetcher(l.tls, room,
		func() (string, error) { return in.replicaToken(c, time.Now()), nil })
	at := map[control.Source]string{
		control.Account:  l.addresses()["account-service"],
		control.Security: l.addresses()["reference-data"],
	}
	silence := c.Millis("risk.feed.max-silence-ms")
	for name, feed := range s.feeds {
		sink := &feeds.Sink{
			Source: name, Gate: k.Gate, Desk: k.Desk, Views: k.Views, Now: time.Now, Log: feed.Log,
			Quarantined: feed.Outbox.CompareNow,
		}
		feed.Sink.Store(sink)
		feed.Bootstrap.Store(bootstrap.New(bootstrap.Options{
			Source: name, Follow: feeds.FollowingOf(b, name, feed.Outbox, silence),
			Fetch: func(ctx context.Context) (control.Snapshot, error) {
				return fetcher.Fetch(ctx, name, at[name])
			},
			Sink: sink,
			Behind: func(ctx context.Context, watermark uint64) error {
				return feed.Outbox.Behind(ctx, watermark, silence)
			},
			BufferCapacity: c.Int("risk.bootstrap.buffer-capacity"),
			MaxSilence:     silence,
			Returned:       b.Changed,
			Logger:         feed.Log,
		}))
	}
}

// why is the reason why a source is not ready, nil when none is known. Any goroutine may call it.
func (s *controlSources) why(name control.Source) error {
	if feed := s.feeds[name]; feed != nil {
		if sink := feed.Sink.Load(); sink != nil {
			return sink.Why()
		}
	}
	return nil
}

// unknown says how many records of a source have no place in the engine, "" for none. Any goroutine
// may call it.
//
// The text names the setting that makes room.
func (s *controlSources) unknown(name control.Source) string {
	if feed := s.feeds[name]; feed != nil {
		if sink := feed.Sink.Load(); sink != nil {
			return sink.Unknown.Detail(feeds.RoomSettings[name])
		}
	}
	return ""
}

// Bump begins a new epoch of a source, above everything that its stream has. by says on whose hand;
// a server that runs on the database puts the act on record.
//
// A replica that meets the new epoch takes a new snapshot. It is for rows that were changed or
// restored behind the outbox's back. The number is above the last one on the stream, so that
// messages of former epochs cannot be taken for new ones. The error of a broker that cannot be
// reached leaves the epoch as it is.
func (s *controlSources) Bump(ctx context.Context, name control.Source,
	by note.Note) (epoch uint64, err error) {
	last, err := s.feeds[name].Outbox.LastOnStream(ctx)
	if err != nil {
		return 0, err
	}
	record := func(tx *store.Tx, was, is uint64) error { return putEpochAct(tx, name, by, was, is) }
	if name == control.Account {
		return s.accounts.BumpEpoch(ctx, last, record)
	}
	return s.securities.BumpEpoch(ctx, last, record)
}
