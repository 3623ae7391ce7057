package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/session"
	"posttrade/ring"
)

// coreOptions are what a core depends on beside its data.
type coreOptions struct {
	dir              string
	durability       string
	flushInterval    time.Duration
	reserveBytes     int64
	snapshotInterval int64
	inputSlots       int
	outputSlots      int
	idle             ring.Strategy
	matcherCPU       int
	recorderCPU      int
	blotterCapacity  int
	tickets          int                                  // of requests
	sessions         int                                  // at most; of no use when session is nil
	member           bool                                 // of a cluster: what the desk takes is agreed on first
	feeds            bool                                 // control feeds make the gate ready; else it is at once
	session          func(*core) (*session.Server, error) // shared-memory order entry; nil: off
	genesis          func() (*matcher.Genesis, error)     // of a new journal
	approve          func(*core) error                    // may refuse the start, before a byte of the journal is changed; nil: does not
	fatal            func(error)
	onDisk           func(*journal.Options) // tests: another disk; nil: the system's
}

// Tickets beside those of requests: a session has half of its own, the other half is
// common (session's shares); a sidecar has a few out at a time.
const (
	sessionTickets = 128
	sidecarTickets = 64
)

// shares are the desk's tickets. Callers that hold on to all of one kind's, such as clients
// that do not read their answers, are in no other kind's way.
func (o *coreOptions) shares() desk.Shares {
	s := desk.Shares{Requests: o.tickets, Sidecars: sidecarTickets}
	if o.session != nil {
		s.Sessions = o.sessions * sessionTickets
	}
	return s
}

// core is the path of an order without its edges: gate, desk, rings, matcher,
// recorder, journal, blotter and views, recovered and running.
type core struct {
	o       coreOptions
	genesis *matcher.Genesis

	journal  *journal.Journal
	engine   *matcher.Engine
	views    *blotter.Views
	blotter  *blotter.Blotter
	gate     *gate.Gate
	desk     *desk.Desk
	regions  []*ring.Region
	in       *ring.MPSC[matcher.Command]
	out      *ring.Fanout[matcher.Event]
	stage    *matcher.Stage
	recorder *journal.Recorder
	shadow   *journal.Snapshotter
	session  *session.Server // nil: off

	// Of a member: where the desk's commands wait for agreement, nil on a single node,
	// and the client ids of what other members have proposed.
	proposals *ring.MPSC[matcher.Command]
	foreign   foreign
	applied   appliedMark
	handed    atomic.Uint64 // the last agreed command that was handed to the engine; writer: clusterHost.Apply
	markers   seenMarkers

	found    history               // what the start has found
	compared bool                  // and the database agreed with it
	held     atomic.Pointer[error] // why nothing is admitted; nil: it is

	watermark   watermark
	recovered   recovery
	stageDone   chan error
	recordDone  chan error
	sessionDone chan error
	procs       *processors
	floor       []byte // of the heap
	ahead       *ring.Ahead
	stopLoops   context.CancelFunc
	loops       sync.WaitGroup // the shadow's, keepAhead and the processors'

	beforeDiscard func() // tests look at the engine here, when nobody owns it any more
}

// recovery says what a start found.
type recovery struct {
	sequence, tradeSeq uint64
	snapshot           uint64 // 0: replayed from the first command
	replayed           uint64
	took               time.Duration
	notes              []string // snapshots that were skipped, and why
	room               error    // why memory is given to orders only as they come; nil: it is there before them
}

// openCore recovers what the journal holds and starts the stages. The order of
// the steps is the order in which they depend on each other; stop undoes them
// in reverse.
func openCore(o coreOptions) (_ *core, err error) {
	c := &core{o: o, stageDone: make(chan error, 1), recordDone: make(chan error, 1), sessionDone: make(chan error, 1)}
	defer func() {
		if err != nil {
			c.discard()
		}
	}()
	begun := time.Now()
	// 1. The journal, verified against its anchor and only read.
	if c.journal, err = journal.Prepare(o.dir, o.journalOptions()); err != nil {
		return nil, err
	}
	// 2. Engine, views and blotter as of the journal's head, which is written to from then
	// on; a new one gets its genesis first.
	if err = c.recoverAndBegin(); err != nil {
		return nil, err
	}
	c.recovered.took = time.Since(begun)
	// 3. The gate's image of them.
	if err = c.fillGate(); err != nil {
		return nil, err
	}
	// 4. Rings, desk, matcher, recorder: the last one first, so that nothing is produced unread.
	if err = c.buildPath(); err != nil {
		return nil, err
	}
	c.makeRoom()
	c.start()
	return c, nil
}

func (o *coreOptions) journalOptions() journal.Options {
	j := journal.Options{
		Durability: o.durability, FlushInterval: o.flushInterval, ReserveBytes: uint64(o.reserveBytes), Fatal: o.fatal,
		Tail: o.durability == journal.DurabilityOS && !o.member, // a member's answers wait for a majority, not for its journal
	}
	if o.onDisk != nil {
		o.onDisk(&j)
	}
	return j
}

// recoverAndBegin changes nothing of the journal before it has read all that the start
// needs of it, and before the start has been approved.
func (c *core) recoverAndBegin() (err error) {
	text, created := c.journal.Genesis()
	if created {
		if c.genesis, err = matcher.ParseGenesis(text); err == nil {
			err = c.recover()
		}
	}
	if err == nil && c.o.approve != nil {
		err = c.o.approve(c)
	}
	if err == nil {
		err = c.journal.Begin()
	}
	if err == nil && !created {
		if err = c.create(); err == nil {
			err = c.recover()
		}
	}
	return err
}

// create gives a new journal its genesis.
func (c *core) create() error {
	g, err := c.o.genesis()
	if err != nil {
		return err
	}
	c.genesis = g
	return c.journal.Create(g.Marshal())
}

// recover brings engine and views to the journal's head and reads the newest
// fills. A snapshot without its views image, or a damaged one, is passed over;
// with none left the journal is replayed from its first command.
func (c *core) recover() error {
	r, err := journal.Recover(context.Background(), c.journal, rebuildFrom(c.genesis), func(err error) {
		c.recovered.notes = append(c.recovered.notes, err.Error())
	})
	if err != nil {
		return err
	}
	c.engine, c.views = r.Engine.(*matcher.Engine), r.Views.(viewsImage).Views
	c.recovered.snapshot, c.recovered.replayed = r.Snapshot, r.Replayed
	c.recovered.sequence, c.recovered.tradeSeq = c.journal.Head()
	if trades := c.engine.TradeSeq(); trades != c.recovered.tradeSeq {
		return fmt.Errorf("recovery: the journal ends with trade %d, its replay with %d", c.recovered.tradeSeq, trades)
	}
	return c.recoverBlotter()
}

// viewsImage gives the views the form in which the journal writes them beside a snapshot.
type viewsImage struct{ *blotter.Views }

func (v viewsImage) Write(w io.Writer) error {
	_, err := v.WriteTo(w)
	return err
}

// rebuildFrom makes engines and views for recovery, snapshots and verification.
func rebuildFrom(g *matcher.Genesis) journal.Rebuild {
	return journal.Rebuild{
		Engine: func(state io.Reader) (journal.Engine, error) {
			if state == nil {
				return matcher.New(g)
			}
			return matcher.ReadSnapshot(g, state)
		},
		Views: func(image io.Reader) (journal.Views, error) {
			var v *blotter.Views
			var err error
			if image == nil {
				v, err = blotter.NewViews(g)
			} else {
				v, err = blotter.ReadImage(g, image)
			}
			return viewsImage{v}, err
		},
	}
}

func (c *core) recoverBlotter() (err error) {
	if c.blotter, err = blotter.New(c.o.blotterCapacity); err != nil {
		return err
	}
	fills, err := c.journal.LastFills(c.o.blotterCapacity)
	if err != nil {
		return err
	}
	for i := range fills {
		c.blotter.Append(&fills[i])
	}
	return nil
}

// fillGate gives the gate the universe, the limits and the last prices, as the
// journal knows them. Without control feeds that is all there is, and both
// sources are ready at once; with them each becomes ready when it has caught up.
func (c *core) fillGate() error {
	room := c.views.Capacities()
	g := gate.New(room.Accounts, room.Securities)
	err := errors.Join(g.SetLimits(c.genesis.Limits), g.SetTick(c.genesis.TickPx))
	for _, a := range c.views.Accounts() {
		err = errors.Join(err, g.SetAccount(a.ID, a.Enabled, a.Version))
		if a.ByHand {
			err = errors.Join(err, g.HoldAccount(a.ID))
		}
	}
	for _, s := range c.views.Securities() {
		err = errors.Join(err, g.Register(s.ID, s.Ticker))
		if s.Known {
			err = errors.Join(err, g.SetSecurity(s.ID, s.Ticker, s.Enabled, s.Halted, s.Version),
				g.HoldSecurity(s.ID, s.EnabledByHand, s.HaltedByHand))
		}
		if s.Restricted {
			err = errors.Join(err, g.SetRestricted(s.ID, true, s.Version))
		}
		if s.MarketPx > 0 {
			err = errors.Join(err, g.SetPrice(s.ID, s.MarketPx, s.MarketMillis))
		}
	}
	p := c.views.Policy()
	g.SetPolicy(p.Version, p.KillSwitch, p.MaxPositionQty, p.MaxConcentrationNotional)
	if !c.o.feeds {
		g.SetReady()
	}
	c.gate = g
	return err
}

// unready closes the gate until the control sources have been followed again;
// without feeds the gate needs none.
func (c *core) unready() {
	if !c.o.feeds {
		return
	}
	for _, s := range c.gate.Snapshot().Sources {
		if err := c.gate.SetSource(s.Name, gate.Bootstrapping, s.Epoch, s.Watermark, s.HighWatermark, ""); err != nil {
			panic(err) // the names are the gate's own
		}
	}
}

func (c *core) buildPath() (err error) {
	if c.in, err = c.commandRing(); err != nil {
		return err
	}
	submissions := c.in
	if c.o.member {
		if c.proposals, err = c.commandRing(); err != nil {
			return err
		}
		submissions = c.proposals
	}
	outRegion, err := c.region(ring.FanoutBytes[matcher.Event](c.o.outputSlots))
	if err != nil {
		return err
	}
	if c.out, err = ring.NewFanout[matcher.Event](outRegion, c.o.outputSlots); err != nil {
		return err
	}
	if c.desk, err = desk.NewShared(submissions, c.o.shares()); err != nil {
		return err
	}
	observers := []journal.Observer{c.blotter, c.views, gateObserver{c.gate}}
	if c.o.session != nil {
		if c.session, err = c.o.session(c); err != nil {
			return err
		}
		observers = append(observers, c.session)
	}
	c.stage = matcher.NewStage(c.engine, c.in, c.out, c.o.idle, c.o.matcherCPU)
	c.recorder = journal.NewRecorder(c.journal, c.out, c, journal.RecorderOptions{
		Idle: c.o.idle, IdleSet: true, CPU: c.o.recorderCPU, Pinned: c.o.recorderCPU >= 0, Flush: c.flush,
	}, observers...)
	c.stage.DriveNext(c.recorder.Drive)
	if !c.o.member { // there the commands that have been agreed on come from elsewhere
		c.desk.Drives(failStop(c.stage.Drive))
	}
	c.watermark.durable.Store(c.recovered.sequence)
	c.views.SetWake(c.recorder.Wake)
	c.shadow, err = journal.NewSnapshotter(c.journal, rebuildFrom(c.genesis), uint64(c.o.snapshotInterval))
	return err
}

// gateObserver keeps the gate's image true from the engine's own events.
type gateObserver struct{ gate *gate.Gate }

func (g gateObserver) Observe(ev *matcher.Event, _ []byte) { g.gate.Observe(ev) }

// Observe, ClientID, Durable and Fail are the answers' side of the recorder: the
// desk's tickets, and the readers that wait for what they saw to be durable.
func (c *core) Observe(ev *matcher.Event) {
	c.desk.Observe(ev)
	if ev.Flags&matcher.EventLast != 0 {
		c.applied.seen = ev.InputSeq
	}
}

// Durable is what the journal answers for. On a member it lets nothing go: what the
// matcher is given there is on a majority's disks already, so its answers leave when
// it is applied, without waiting for a journal that is brought up from there anyway.
func (c *core) Durable(inputSeq uint64) {
	if !c.o.member {
		c.release(inputSeq)
	}
}

// release lets the answers up to a sequence go. One goroutine calls it: the journal's
// committer, or the recorder, on a member and in mode "os".
func (c *core) release(inputSeq uint64) {
	c.watermark.raise(inputSeq)
	c.desk.Durable(inputSeq)
	c.wakeSessions()
}

// appliedMark is how far a member has applied what was agreed; of the recorder.
type appliedMark struct{ seen, released uint64 }

// flush is called by the recorder after every batch of events.
func (c *core) flush() (more bool) {
	if m := &c.applied; c.o.member && m.seen > m.released {
		m.released = m.seen
		c.release(m.seen)
	}
	return c.views.Flush()
}

func (c *core) Fail(err error) {
	c.desk.Fail(err)
	c.watermark.fail(err)
	c.wakeSessions()
}

// wakeSessions has the sessions look at their answers.
func (c *core) wakeSessions() {
	if c.session != nil {
		c.session.Wake()
	}
}

// ClientID is the client id of a command: the desk has it, or it came with the
// agreed commands of another member.
func (c *core) ClientID(ref uint64) []byte {
	if ref == desk.Foreign {
		return c.foreign.pop()
	}
	return c.desk.ClientID(ref)
}

// commandRing is a ring of commands with room for ring.input-slots.
func (c *core) commandRing() (*ring.MPSC[matcher.Command], error) {
	region, err := c.region(ring.MPSCBytes[matcher.Command](c.o.inputSlots))
	if err != nil {
		return nil, err
	}
	return ring.NewMPSC[matcher.Command](region, c.o.inputSlots)
}

func (c *core) region(bytes int) (*ring.Region, error) {
	r, err := ring.Anonymous(bytes)
	if err == nil {
		ring.LargePages(r.Bytes())
		c.regions = append(c.regions, r)
	}
	return r, err
}

func (c *core) start() {
	spare := hotThreads + spareProcs
	if c.session != nil {
		spare += sessionThreads
		go func() { c.sessionDone <- c.session.Run() }()
	}
	c.procs, c.floor = newProcessors(spare), newHeapFloor()
	c.procs.raise()
	go func() { c.recordDone <- c.recorder.Run() }()
	go func() { c.stageDone <- c.stage.Run() }()
	ctx, cancel := context.WithCancel(context.Background())
	c.stopLoops = cancel
	c.loops.Go(func() { c.keepAhead(ctx) })
	c.loops.Go(func() { c.procs.follow(ctx) })
	c.loops.Go(func() { c.shadow.Run(ctx) })
}

// stop is end, and gives back what the start has taken. Nobody may be on the core
// any more.
func (c *core) stop() error {
	err := c.end()
	c.discard()
	return err
}

// end takes no new commands, ends the stages in the order of the path, so that
// every command that was handed in is decided, journaled and answered, and closes
// the journal. Who is late finds the desk closed, and memory as it was left.
func (c *core) end() error {
	c.desk.Close()
	c.stopLoops()
	c.loops.Wait()
	var err error
	if c.session != nil {
		err = errors.Join(c.session.Close(), <-c.sessionDone)
	}
	c.stage.Stop()
	err = errors.Join(err, <-c.stageDone)
	c.recorder.Stop()
	err = errors.Join(err, <-c.recordDone, c.journal.Close())
	c.journal = nil
	c.procs.restore()
	if c.beforeDiscard != nil {
		c.beforeDiscard()
	}
	c.session = nil // it is closed
	return err
}

// discard gives back what a start has taken; it does not wait for anything.
func (c *core) discard() {
	if c.session != nil {
		c.session.Close()
	}
	if c.journal != nil {
		c.journal.Close()
	}
	if c.blotter != nil {
		c.blotter.Close()
	}
	if c.views != nil {
		c.views.Close()
	}
	if c.engine != nil {
		c.engine.Close()
	}
	for _, r := range slices.Backward(c.regions) {
		r.Close()
	}
	c.floor = nil
}
