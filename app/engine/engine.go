package engine

import (
	"context"
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

// Tickets beside those of requests. A session has half of SessionTickets for itself; the sessions
// share the other half. A sidecar has a few tickets in use at a time.
//
// Both numbers count tickets; a ticket carries one command or one batch.
const (
	SessionTickets = 128
	sidecarTickets = 64
)

// shares are the desk's tickets of each kind. A caller that keeps all tickets of one kind, such as
// a client that does not read its answers, does not hold up the other kinds.
//
// The pools are made once, in buildPath, and never grow. A pool without free tickets refuses its
// own callers and no others.
func (o *Options) shares() desk.Shares {
	s := desk.Shares{Requests: o.Tickets, Sidecars: sidecarTickets}
	if o.Session != nil {
		s.Sessions = o.Sessions * SessionTickets
	}
	return s
}

// Engine is the path of an order without its edges: gate, desk, rings, matcher,
// recorder, journal, blotter and views, recovered and running.
//
// The exported parts are set by Open and stay the same until End, unless their comment names a
// writer. They are exported because services, sidecars, figures and the measuring tools of perf
// are built over them. Each part says itself which goroutine may call it.
//
// Invariants between Open and End:
//
//   - Every event in Out is read by Recorder before its slot is used again.
//   - Watermark.Durable never exceeds what the mode of durability promises: stable storage in
//     "fsync", the operating system in "os", a majority's disks on a member.
//   - Memory in Regions, Engine, Views and Blotter is mapped. It is unmapped in Discard only,
//     because a late caller would otherwise read memory that is gone.
type Engine struct {
	// What Open was given.
	Options Options
	// The first record of the journal: universe, limits and keys that it began with.
	Genesis *matcher.Genesis

	Journal *journal.Journal
	// The deterministic state. While the stage runs, only the holder of its lease may touch Engine;
	// every other reader asks Views.
	Engine  *matcher.Engine
	Views   *blotter.Views
	Blotter *blotter.Blotter
	Gate    *gate.Gate
	Desk    *desk.Desk
	// The memory of the rings, in the order in which it was mapped.
	Regions []*ring.Region
	// The journal has failed, and its committer may still run. End sets it.
	late bool
	// Commands on their way to the matcher. On a single node the desk is its producer, on a member it
	// is ClusterHost.Apply.
	In *ring.MPSC[matcher.Command]
	// Events on their way to the recorder, which is the reader that gates the matcher.
	Out      *ring.Fanout[matcher.Event]
	Stage    *matcher.Stage
	Recorder *journal.Recorder
	// Writes the snapshots, from a second engine that follows the journal.
	Shadow *journal.Snapshotter
	// Shared-memory order entry; nil when it is off. End sets it to nil after it has closed it.
	Session *session.Server

	// On a member: the ring where the desk's commands wait for agreement (nil on a single node), and
	// the client ids of commands that other members have proposed.
	Proposals *ring.MPSC[matcher.Command]
	foreign   foreign
	applied   appliedMark
	// The sequence of the last agreed command that the engine was given; 0 before the first. Its
	// writer is ClusterHost.Apply. A member that begins to lead waits until the journal has Handed on
	// stable storage before it compares its history with the database.
	Handed atomic.Uint64
	// The extract markers that a member has been given; unused on a single node.
	Markers seenMarkers

	// The journal as the start has found it; its writer is Options.Approve. On a member it stays
	// zero: the commands come from the others, so the comparison waits until the member leads.
	Found History
	// True when the start has compared the database with Found, or there was none to compare. Its
	// writer is Options.Approve.
	Compared bool
	// Why no order is admitted; nil when orders are admitted. It is written by the guard of the
	// history, which takes back its own reason only, and when a member stands aside, which lasts. It
	// is read at each admission.
	Held atomic.Pointer[error]

	// Up to where answers may leave.
	Watermark watermark
	// What the start found, for the log and for /readyz. Its last writer is makeRoom.
	Recovered recovery
	// The result of Stage.Run, once. It is exported so that a measurement can put another loop in the
	// place of the stage; that loop then sends its result here, and End receives it.
	StageDone chan error
	// The results of Recorder.Run and Session.Run, once each.
	recordDone  chan error
	sessionDone chan error
	// The number of processors of the Go scheduler, raised by start and restored by End.
	Procs *Processors
	floor []byte // counts as live heap; see heapFloor
	// The tables whose memory KeepAhead makes resident before orders need it.
	Ahead *ring.Ahead
	// Ends the goroutines in loops.
	stopLoops context.CancelFunc
	loops     sync.WaitGroup // the shadow's, KeepAhead's and the processors'

	BeforeDiscard func() // tests look at the engine here, when no other goroutine uses it
}

// Open recovers what the journal holds and starts the stages. The order of the steps is the order
// in which they depend on each other; Stop undoes them in reverse.
//
//   - Errors: those of journal.Prepare, which refuse a journal that is locked, damaged, shorter
//     than its anchor or not whole; the error of Options.Approve; and errors of memory and rings.
//     Up to Approve no byte of an existing journal is changed. After any error everything that was
//     opened is closed and unmapped.
//   - Cost: it reads the newest snapshot, replays the journal behind it and reads the newest fills
//     for the blotter, so the time grows with the commands since that snapshot. It blocks.
//   - The result takes commands at once. On a single node the desk decides them; on a member they
//     wait in Proposals until a node is attached.
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

// JournalOptions are the options of this engine's journal. A member's node takes its file system
// from them, so that a test that breaks a disk breaks both.
func (o *Options) JournalOptions() journal.Options {
	j := journal.Options{
		Durability: o.Durability, FlushInterval: o.FlushInterval, ReserveBytes: journal.NoReserve,
		ArchiveDir: o.ArchiveDir,
		Fatal:      o.Fatal,
		// a member's answers wait for a majority, not for its own journal
		Tail: !o.Member,
	}
	if o.ReserveBytes > 0 {
		j.ReserveBytes = uint64(o.ReserveBytes)
	}
	if o.OnDisk != nil {
		o.OnDisk(&j)
	}
	return j
}

// start begins the goroutines. The recorder runs before the stage: the stage waits while the
// output ring is full, and only the recorder empties it. The spare processors are counted before
// any of the pinned threads begins to hold one.
func (c *Engine) start() {
	spare := SpareProcs
	if c.Session != nil {
		spare += sessionThreads
		go c.run("sessions", c.Session.Run, c.sessionDone)
	}
	c.Procs, c.floor = NewProcessors(spare), newHeapFloor()
	c.Procs.Raise()
	go c.run("recorder", c.Recorder.Run, c.recordDone)
	go c.run("matcher", c.Stage.Run, c.StageDone)
	ctx, cancel := context.WithCancel(context.Background())
	c.stopLoops = cancel
	c.loops.Go(func() { c.KeepAhead(ctx) })
	c.loops.Go(func() { c.Procs.follow(ctx) })
	c.loops.Go(func() { c.Shadow.Run(ctx) })
}
