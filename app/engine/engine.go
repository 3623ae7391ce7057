package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/session"
	"posttrade/ring"
)

// Tickets beside those of requests. A session has half of SessionTickets for itself; the sessions
// share the other half. A sidecar has a few tickets in use at a time.
const (
	SessionTickets = 128
	sidecarTickets = 64
)

// shares are the desk's tickets of each kind. A caller that keeps all tickets of one kind, such as
// a client that does not read its answers, does not hold up the other kinds.
func (o *Options) shares() desk.Shares {
	s := desk.Shares{Requests: o.Tickets, Sidecars: sidecarTickets}
	if o.Session != nil {
		s.Sessions = o.Sessions * SessionTickets
	}
	return s
}

// Engine is the path of an order without its edges: gate, desk, rings, matcher,
// recorder, journal, blotter and views, recovered and running.
type Engine struct {
	Options Options
	Genesis *matcher.Genesis

	Journal  *journal.Journal
	Engine   *matcher.Engine
	Views    *blotter.Views
	Blotter  *blotter.Blotter
	Gate     *gate.Gate
	Desk     *desk.Desk
	Regions  []*ring.Region
	In       *ring.MPSC[matcher.Command]
	Out      *ring.Fanout[matcher.Event]
	Stage    *matcher.Stage
	Recorder *journal.Recorder
	Shadow   *journal.Snapshotter
	Session  *session.Server // nil: off

	// On a member: the ring where the desk's commands wait for agreement (nil on a single node), and
	// the client ids of commands that other members have proposed.
	Proposals *ring.MPSC[matcher.Command]
	foreign   foreign
	applied   appliedMark
	// the last agreed command that the engine was given; writer: ClusterHost.Apply
	Handed  atomic.Uint64
	Markers seenMarkers

	Found    History               // what the start has found
	Compared bool                  // true: the database agreed with Found
	Held     atomic.Pointer[error] // why no order is admitted; nil: orders are admitted

	Watermark   watermark
	Recovered   recovery
	StageDone   chan error
	recordDone  chan error
	sessionDone chan error
	Procs       *Processors
	floor       []byte // counts as live heap; see heapFloor
	Ahead       *ring.Ahead
	stopLoops   context.CancelFunc
	loops       sync.WaitGroup // the shadow's, KeepAhead's and the processors'

	BeforeDiscard func() // tests look at the engine here, when no other goroutine uses it
}

// recovery says what a start found.
type recovery struct {
	Sequence, TradeSeq uint64
	Snapshot           uint64 // 0: replayed from the first command
	Replayed           uint64
	Took               time.Duration
	Notes              []string // snapshots that were skipped, and why
	// why the system gives memory only when orders come; nil: it is there before them
	Room error
}

// Open recovers what the journal holds and starts the stages. The order of the steps is the order
// in which they depend on each other; Stop undoes them in reverse.
func Open(o Options) (_ *Engine, err error) {
	c := &Engine{Options: o, StageDone: make(chan error, 1), recordDone: make(chan error, 1),
		sessionDone: make(chan error, 1)}
	defer func() {
		if err != nil {
			c.Discard()
		}
	}()
	begun := time.Now()
	// 1. The journal, verified against its anchor and only read.
	if c.Journal, err = journal.Prepare(o.Dir, o.JournalOptions()); err != nil {
		return nil, err
	}
	// 2. Matching engine, views and blotter as of the journal's head. From then on the journal is open
	// for writing. A new journal gets its genesis first.
	if err = c.recoverAndBegin(); err != nil {
		return nil, err
	}
	c.Recovered.Took = time.Since(begun)
	// 3. The gate's image of engine and views.
	if err = c.fillGate(); err != nil {
		return nil, err
	}
	// 4. Rings, desk, matcher, recorder. The last is built first, so that each event has a reader.
	if err = c.buildPath(); err != nil {
		return nil, err
	}
	c.makeRoom()
	c.start()
	return c, nil
}

func (o *Options) JournalOptions() journal.Options {
	j := journal.Options{
		Durability: o.Durability, FlushInterval: o.FlushInterval, ReserveBytes: uint64(o.ReserveBytes),
		ArchiveDir: o.ArchiveDir,
		Fatal:      o.Fatal,
		// a member's answers wait for a majority, not for its own journal
		Tail: !o.Member,
	}
	if o.OnDisk != nil {
		o.OnDisk(&j)
	}
	return j
}

// recoverAndBegin changes nothing in the journal until it has read all that the start needs, and
// until the start is approved.
func (c *Engine) recoverAndBegin() (err error) {
	text, created := c.Journal.Genesis()
	if created {
		if c.Genesis, err = matcher.ParseGenesis(text); err == nil {
			err = c.recover()
		}
	}
	if err == nil && c.Options.Approve != nil {
		err = c.Options.Approve(c)
	}
	if err == nil {
		err = c.Journal.Begin()
	}
	if err == nil && !created {
		if err = c.create(); err == nil {
			err = c.recover()
		}
	}
	return err
}

// create writes the genesis of a new journal.
func (c *Engine) create() error {
	g, err := c.Options.Genesis()
	if err != nil {
		return err
	}
	c.Genesis = g
	return c.Journal.Create(g.Marshal())
}

// recover brings engine and views to the journal's head and reads the newest fills. It skips a
// snapshot that is damaged or has no views image. When no snapshot is left, it replays the journal
// from the first command.
func (c *Engine) recover() error {
	r, err := journal.Recover(context.Background(), c.Journal, RebuildFrom(c.Genesis),
		func(err error) {
			c.Recovered.Notes = append(c.Recovered.Notes, err.Error())
		})
	if err != nil {
		return err
	}
	c.Engine, c.Views = r.Engine.(*matcher.Engine), r.Views.(asof.Image).Views
	c.Recovered.Snapshot, c.Recovered.Replayed = r.Snapshot, r.Replayed
	c.Recovered.Sequence, c.Recovered.TradeSeq = c.Journal.Head()
	if trades := c.Engine.TradeSeq(); trades != c.Recovered.TradeSeq {
		return fmt.Errorf("recovery: the journal ends with trade %d, its replay with %d",
			c.Recovered.TradeSeq, trades)
	}
	return c.recoverBlotter()
}

// RebuildFrom makes engines and views for recovery, snapshots and verification.
func RebuildFrom(g *matcher.Genesis) journal.Rebuild { return asof.Rebuild(g) }

func (c *Engine) recoverBlotter() (err error) {
	if c.Blotter, err = blotter.New(c.Options.BlotterCapacity); err != nil {
		return err
	}
	fills, err := c.Journal.LastFills(c.Options.BlotterCapacity)
	if err != nil {
		return err
	}
	for i := range fills {
		c.Blotter.Append(&fills[i])
	}
	return nil
}

// fillGate gives the gate the universe, the limits and the last prices, as the journal knows them.
// Without control feeds the gate needs no more, and both sources are ready at once. With control
// feeds each source becomes ready when it has caught up.
func (c *Engine) fillGate() error {
	room := c.Views.Capacities()
	g := gate.New(room.Accounts, room.Securities)
	err := g.SetTick(c.Genesis.TickPx)
	for _, a := range c.Views.Accounts() {
		err = errors.Join(err, g.SetAccount(a.ID, a.Enabled, a.Version))
		if a.ByHand {
			err = errors.Join(err, g.HoldAccount(a.ID))
		}
	}
	for _, s := range c.Views.Securities() {
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
	p := c.Views.Policy()
	g.SetPolicy(p.Version, p.KillSwitch, p.MaxPositionQty, p.MaxConcentrationNotional)
	g.SetRiskLimits(c.Engine.RiskLimits())
	c.Engine.EachOwnLimits(func(o matcher.OwnLimits) bool {
		err = errors.Join(err, g.SetOwnLimits(o))
		return err == nil
	})
	c.Engine.EachRevocation(func(r matcher.Revocation) bool {
		g.Revoke(r)
		return true
	})
	if !c.Options.Feeds {
		g.SetReady()
	}
	c.Gate = g
	return err
}

// Unready closes the gate until the control sources are followed again. Without feeds it does
// nothing: the gate needs none.
func (c *Engine) Unready() {
	if !c.Options.Feeds {
		return
	}
	for _, s := range c.Gate.Snapshot().Sources {
		if err := c.Gate.SetSource(s.Name, gate.Bootstrapping, s.Epoch,
			s.Watermark, s.HighWatermark, ""); err != nil {
			panic(err) // the names are the gate's own
		}
	}
}

func (c *Engine) buildPath() (err error) {
	if c.In, err = c.CommandRing(); err != nil {
		return err
	}
	submissions := c.In
	if c.Options.Member {
		if c.Proposals, err = c.CommandRing(); err != nil {
			return err
		}
		submissions = c.Proposals
	}
	outRegion, err := c.region(ring.FanoutBytes[matcher.Event](c.Options.OutputSlots))
	if err != nil {
		return err
	}
	if c.Out, err = ring.NewFanout[matcher.Event](outRegion, c.Options.OutputSlots); err != nil {
		return err
	}
	if c.Desk, err = desk.NewShared(submissions, c.Options.shares()); err != nil {
		return err
	}
	observers := []journal.Observer{c.Blotter, c.Views, gateObserver{c.Gate}}
	if c.Options.Session != nil {
		if c.Session, err = c.Options.Session(c); err != nil {
			return err
		}
		observers = append(observers, c.Session)
	}
	c.Stage = matcher.NewStage(c.Engine, c.In, c.Out, c.Options.Idle, c.Options.MatcherCPU)
	c.Recorder = journal.NewRecorder(c.Journal, c.Out, c, journal.RecorderOptions{
		Idle: c.Options.Idle, IdleSet: true, CPU: c.Options.RecorderCPU,
		Pinned: c.Options.RecorderCPU >= 0, Flush: c.flush,
	}, observers...)
	c.Stage.DriveNext(c.Recorder.Drive)
	if !c.Options.Member { // a member's matcher gets its commands from ClusterHost
		c.Desk.Drives(failStop(c.Stage.Drive))
	}
	c.Watermark.durable.Store(c.Recovered.Sequence)
	c.Views.SetWake(c.Recorder.Wake)
	c.Shadow, err = journal.NewSnapshotter(c.Journal, RebuildFrom(c.Genesis),
		uint64(c.Options.SnapshotInterval))
	return err
}

// gateObserver keeps the gate's image up to date from the engine's events.
type gateObserver struct{ gate *gate.Gate }

func (g gateObserver) Observe(ev *matcher.Event, _ []byte) { g.gate.Observe(ev) }

// Observe, ClientID, Durable and Fail are the recorder's way to the callers: to the desk's tickets,
// and to the readers that wait until what they saw is durable.
func (c *Engine) Observe(ev *matcher.Event) {
	c.Desk.Observe(ev)
	if ev.Flags&matcher.EventLast != 0 {
		c.applied.seen = ev.InputSeq
	}
}

// Durable tells how far the journal is durable. On a member it releases no answers: the commands
// that the matcher is given there are already on the disks of a majority. A member's answers leave
// when their commands are applied. They do not wait for the member's own journal, which can be
// restored from the majority's log.
func (c *Engine) Durable(inputSeq uint64) {
	if !c.Options.Member {
		c.release(inputSeq)
	}
}

// release sends the answers up to a sequence. One goroutine calls it: the journal's committer, or
// the recorder on a member and in mode "os".
func (c *Engine) release(inputSeq uint64) {
	c.Watermark.raise(inputSeq)
	c.Desk.Durable(inputSeq)
	c.wakeSessions()
}

// appliedMark is how far a member has applied the agreed commands; the recorder's goroutine owns
// it.
type appliedMark struct{ seen, released uint64 }

// flush is the recorder's call after every batch of events.
func (c *Engine) flush() (more bool) {
	if m := &c.applied; c.Options.Member && m.seen > m.released {
		m.released = m.seen
		c.release(m.seen)
	}
	return c.Views.Flush()
}

func (c *Engine) Fail(err error) {
	c.Desk.Fail(err)
	c.Watermark.fail(err)
	c.wakeSessions()
}

// wakeSessions wakes the sessions, so that they look for answers.
func (c *Engine) wakeSessions() {
	if c.Session != nil {
		c.Session.Wake()
	}
}

// ClientID returns the client id of a command: from the desk, or, for a command that another member
// has proposed, from the id that came with it.
func (c *Engine) ClientID(ref uint64) []byte {
	if ref == desk.Foreign {
		return c.foreign.pop()
	}
	return c.Desk.ClientID(ref)
}

// CommandRing makes a ring of commands of the size ring.input-slots.
func (c *Engine) CommandRing() (*ring.MPSC[matcher.Command], error) {
	region, err := c.region(ring.MPSCBytes[matcher.Command](c.Options.InputSlots))
	if err != nil {
		return nil, err
	}
	return ring.NewMPSC[matcher.Command](region, c.Options.InputSlots)
}

func (c *Engine) region(bytes int) (*ring.Region, error) {
	r, err := ring.Anonymous(bytes)
	if err == nil {
		ring.LargePages(r.Bytes())
		c.Regions = append(c.Regions, r)
	}
	return r, err
}

func (c *Engine) start() {
	spare := HotThreads + SpareProcs
	if c.Session != nil {
		spare += sessionThreads
		go func() { c.sessionDone <- c.Session.Run() }()
	}
	c.Procs, c.floor = NewProcessors(spare), newHeapFloor()
	c.Procs.Raise()
	go func() { c.recordDone <- c.Recorder.Run() }()
	go func() { c.StageDone <- c.Stage.Run() }()
	ctx, cancel := context.WithCancel(context.Background())
	c.stopLoops = cancel
	c.loops.Go(func() { c.KeepAhead(ctx) })
	c.loops.Go(func() { c.Procs.follow(ctx) })
	c.loops.Go(func() { c.Shadow.Run(ctx) })
}

// Stop is End and then Discard. No caller may use the engine any more.
func (c *Engine) Stop() error {
	err := c.End()
	c.Discard()
	return err
}

// End takes no new commands and ends the stages in the order of the path. So every command that was
// handed in is decided, journaled and answered. Then it closes the journal. A caller that comes
// later finds the desk closed, and the engine's memory still mapped.
func (c *Engine) End() error {
	c.Desk.Close()
	c.stopLoops()
	c.loops.Wait()
	var err error
	if c.Session != nil {
		err = errors.Join(c.Session.Close(), <-c.sessionDone)
	}
	c.Stage.Stop()
	err = errors.Join(err, <-c.StageDone)
	c.Recorder.Stop()
	err = errors.Join(err, <-c.recordDone, c.Journal.Close())
	c.Journal = nil
	c.Procs.restore()
	if c.BeforeDiscard != nil {
		c.BeforeDiscard()
	}
	c.Session = nil // End has closed it
	return err
}

// Discard releases what a start has taken. It does not wait for anything.
func (c *Engine) Discard() {
	if c.Session != nil {
		c.Session.Close()
	}
	if c.Journal != nil {
		c.Journal.Close()
	}
	if c.Blotter != nil {
		c.Blotter.Close()
	}
	if c.Views != nil {
		c.Views.Close()
	}
	if c.Engine != nil {
		c.Engine.Close()
	}
	for _, r := range slices.Backward(c.Regions) {
		r.Close()
	}
	c.floor = nil
}
