package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"posttrade/app/backups"
	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/sidecars/bookings"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/prices"
	"posttrade/sidecars/projection"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/settlement"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// downstream is everything that follows the journal: the relational projection, settlement,
// reconciliation, transaction-cost analysis, the legacy bookings and the prices from the message
// broker; and the two control sources. No order waits for them. None of them can refuse an order;
// while a control source is not ready, the gate refuses.
//
// It lives as long as a single node, or as one leadership of a member.
type downstream struct {
	// The database of all sidecars and of both sources.
	Db         *store.DB
	broker     *broker.Broker
	projection *projection.Projection
	settlement *settlement.Settlement
	recon      *recon.Recon
	tca        *tca.TCA
	prices     *prices.Feed
	sources    *controlSources
	extracts   *extracts
	// Lets the loops that write rows begin when the database is of this history.
	guard *historyGuard
	// What the first start after a restore has to do; it lets everything through at once otherwise.
	first *backups.First
	loops *loops

	ours   context.Context // of the loops that work on the rows; disown ends it
	disown context.CancelFunc
}

// openDownstream opens the database and the broker, makes the sidecars and starts them. role is
// this process's role in an extract. The start does not fail when PostgreSQL or NATS is
// unreachable.
//
// The loops differ in what they wait for: the comparison of the history, the rows of a restore,
// the epochs after a restore. Loops with much work run at the priorities of journal.Politely:
// projection, settlement and reconciliation get what the path of an order leaves over, and TCA and
// extracts what these leave. The others run at the usual priority; orders wait for the control
// sources at a start.
//
// Errors: those of opening database and broker, of the calendar and of the seed files. Everything
// is closed then.
func openDownstream(c *settings.Config, k *engine.Engine, history *fullHistory, role string,
	log *slog.Logger) (_ *downstream, err error) {
	d := &downstream{loops: newLoops(log)}
	d.ours, d.disown = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
			d.guard.release()
		}
	}()
	// 1. Database and broker: embedded, or the servers that the settings name.
	if d.Db, err = store.Open(store.Options{URL: c.String("database.url"), Dir: c.String("data.dir"),
		Logger: log}); err != nil {
		return nil, err
	}
	if d.broker, err = broker.Open(broker.Options{
		URL: c.String("nats.url"), Dir: c.InDataDir("broker"), Name: "posttrade", Logger: log,
	}); err != nil {
		return nil, err
	}
	// 2. The sidecars, each a function of the journal and the database.
	if err := d.makeSidecars(c, k, history, log); err != nil {
		return nil, err
	}
	d.extracts = NewExtracts(c, k, d.Db, d.broker, role, log)
	d.sources = NewControlSources(d.Db, d.broker, c.Millis("outbox.poll-interval-ms"), k, log)
	d.sources.needReason = c.String("profile") == "production"
	if err := d.sources.seeding(c); err != nil {
		return nil, err
	}
	if err := d.afterRestore(c, k.Journal, log); err != nil {
		return nil, err
	}
	// 3. Their loops. A loop that writes the history into the database starts when the database is
	// known to be of this history and no other server holds it.
	d.guard = newHistoryGuard(c, k, d.Db, role, log)
	d.loops.start("history check", d.guard.run)
	d.loops.start("restored", d.guard.alone(d.first.Run))
	d.loops.start("acts on record", d.guard.alone(d.whileOurs(newPendingActs(d.Db, k, log).run)))
	legacy := &bookings.Bookings{Broker: d.broker, Book: d.projection, Log: log}
	d.loops.startAt(journal.Background, "projection", d.guard.alone(d.first.WithRows(d.project)))
	d.loops.startAt(journal.Background, "settlement", d.guard.alone(d.whileOurs(d.settlement.Run)))
	d.loops.startAt(journal.Background, "recon", d.guard.alone(d.whileOurs(d.recon.Run)))
	d.loops.startAt(journal.Bulk, "tca", d.tca.Run)
	d.loops.startAt(journal.Bulk, "risk extract",
		d.guard.alone(d.first.WithRows(d.extracts.Extractor.Run)))
	d.loops.start("end of day", d.guard.alone(d.first.WithRows(d.extracts.follow)))
	d.loops.start("legacy bookings", d.guard.alone(d.first.Then(d.whileOurs(legacy.Run))))
	d.loops.start("prices", d.prices.Run)
	for name, feed := range d.sources.feeds {
		d.loops.start("outbox "+string(name), d.guard.alone(d.first.Then(feed.Outbox.Run)))
	}
	// 4. The subscriptions, called by the broker. They end when the broker is closed.
	_, err = d.broker.Subscribe(prices.PricingSubject, d.prices.Take)
	return d, err
}

// project runs the projection. It ends when it has found rows that a copy of this journal has
// written after the two went apart. The other loops that would work on those rows then end, too.
// The control sources go on: they belong to the installation, and orders wait for them.
//
// Nothing may be settled or reported from such rows.
func (d *downstream) project(ctx context.Context) error {
	err := d.projection.Run(ctx)
	if d.projection.Foreign() {
		d.disown()
	}
	return err
}

// whileOurs wraps a loop so that it ends when the rows turn out to be another history's.
//
// The loop sees the end of its context, as at a stop.
func (d *downstream) whileOurs(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(d.ours, cancel)()
		return run(ctx)
	}
}

// follow starts the replicas, once the services that they fetch from are open.
//
// With seeds only there are no replicas; the loops of the feeds run all the same.
func (d *downstream) follow(c *settings.Config, in *Installation) {
	if in.Core.Options.Feeds {
		d.sources.replicate(c, in, d.broker)
	}
	for name, feed := range d.sources.feeds {
		d.loops.start("feed "+string(name), d.guard.then(d.first.Then(feed.Follow)))
	}
}

// makeSidecars makes the sidecars over the journal and the database, and starts none. Those that
// write outside of the journal read only its stable part: see stableJournal. Time, calendar and
// tickers are given to them as functions, so that a test can have its own.
func (d *downstream) makeSidecars(c *settings.Config, k *engine.Engine, history *fullHistory,
	log *slog.Logger) (err error) {
	calendar, err := settlementCalendar(c)
	if err != nil {
		return err
	}
	d.projection = projection.New(projection.Options{
		Journal: stableJournal{k.Journal}, DB: d.Db, Ticker: k.Gate.Ticker, Now: time.Now, Logger: log,
		SettlementDate: calendar.SettlementDate, Rules: calendar.Rules(), Named: settlementDates,
		Forces: forcesOnRecord(k),
		Issued: func() uint64 { _, tradeSeq := k.Journal.Head(); return tradeSeq },
	})
	d.settlement = settlement.New(settlement.Options{
		DB: d.Db, Calendar: calendar, Now: time.Now, Interval: c.Millis("settlement.sweep.interval-ms"),
		Logger: log,
	})
	d.recon = recon.New(recon.Options{
		Journal: stableJournal{k.Journal}, Blotter: k.Blotter, History: historyOfRecon{history}, DB: d.Db,
		Ticker: k.Gate.Ticker, Now: time.Now,
		Interval: c.Millis("recon.poll.interval-ms"), Grace: noneIsNegative(c.Millis("recon.grace-ms")),
		VerifyInterval: c.Millis("recon.verify.interval-ms"), Rules: settlementRules, Logger: log,
		SettlementDate: calendar.SettlementDate,
	})
	genesis := store.GenesisMark(k.Genesis.Marshal())
	d.Db.Bind(store.HistoryBinding{Agrees: d.projection.Agrees,
		History: func() (store.History, error) {
			origin, err := d.projection.Origin()
			return store.History{Genesis: genesis, Origin: origin}, err
		}})
	d.prices = prices.New(k.Gate, k.Desk, openTo(c, k))
	d.tca, err = tca.Open(tca.Options{
		Dir: c.InDataDir("tca"), Window: time.Duration(c.Int("tca.window-minutes")) * time.Minute,
		Genesis:    k.Genesis.Marshal(),
		Shadow:     func(before uint64) (tca.Shadow, error) { return shadowBefore(k, before) },
		Durable:    k.Journal.Stable,
		SecurityID: func(ticker string) (uint32, bool) { return k.Gate.Security([]byte(ticker)) },
		DB:         d.Db, Now: time.Now, Logger: log,
	})
	return err
}

// settlementDates dates trades by the rules that were in force for them.
//
// rules is the text that a row keeps; false means that this build does not know it.
func settlementDates(rules string) (func(executedAtMillis int64) store.Date, bool) {
	calendar, known := settlement.ByRules(rules)
	if !known {
		return nil, false
	}
	return calendar.SettlementDate, true
}

// settlementRules are the rules that were in force when rows were dated, as recon reads them.
func settlementRules(name string) (recon.Rules, bool) {
	calendar, known := settlement.ByRules(name)
	if !known {
		return nil, false // not a nil *Calendar in an interface
	}
	return calendar, true
}

// noneIsNegative turns a setting of 0, which means none, into the value that means none for recon,
// where 0 is the default.
func noneIsNegative(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// compareTimeout is how long a start waits for a database to compare. A database that is
// unreachable is compared when it answers.
const compareTimeout = 3 * time.Second

// ownDatabase refuses a start on a database that another history fills.
//
// The two errors differ in what the operator has to change: the setting, or the file.
func ownDatabase(c *settings.Config, ctx context.Context, db *store.DB) error {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	switch err := db.Ready(ctx); {
	case !errors.Is(err, store.ErrForeign):
		return nil // /readyz shows it, and the guard looks again
	case c.String("database.url") != "":
		return settings.Usagef("database.url: %v; name this journal's database, or an empty one", err)
	default:
		return fmt.Errorf("%s: %w; move the file away, or bring its journal back",
			c.InDataDir("posttrade.db"), err)
	}
}

// settlementCalendar is the calendar that the settings name.
func settlementCalendar(c *settings.Config) (*settlement.Calendar, error) {
	return settlement.NewCalendar(c.String("settlement.calendar"), tradeZone(c),
		c.Int("settlement.t-plus-days"))
}

// stop ends the loops, then closes what they used, in reverse order.
//
// No request may use the sidecars any more. Parts that a failed start has not reached are nil. The
// errors are joined.
func (d *downstream) stop() (err error) {
	d.loops.stop()
	if d.disown != nil {
		d.disown()
	}
	if d.tca != nil {
		err = errors.Join(err, d.tca.Close())
	}
	if d.broker != nil {
		err = errors.Join(err, d.broker.Close())
	}
	if d.Db != nil {
		err = errors.Join(err, d.Db.Close())
	}
	return err
}
