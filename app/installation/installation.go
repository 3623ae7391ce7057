package installation

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"posttrade/app/backups"
	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/blotter/feed"
	"posttrade/journal"
	"posttrade/ring"
	"posttrade/sidecars/riskextract"
)

// Installation is everything that `posttrade serve` runs, in one process.
//
// Open sets the fields and Stop uses them; in between they stay the same, except for the atomic
// ones and tokens. A nil part is one that is off, or that a failed Open has not reached.
type Installation struct {
	// The path of an order.
	Core *engine.Engine
	// The index over all fills, for HTTP and for reconciliation.
	history *fullHistory
	// The sidecars; nil without them, and on a member that does not lead. On a member the goroutine
	// of roles changes it. A reader takes it once for a request: it may be replaced before the next.
	Beside    atomic.Pointer[downstream]
	listeners *listeners
	Member    *member // nil on a single node
	// The stats file, the flight recorder, the heartbeat and the watch of the order numbers.
	watching  *watching
	scrubbing *scrubbing
	// Earlier states of the engine and their checkpoints.
	past     *past
	evidence *evidenceLog
	backups  *backups.Server
	// The scrub of scrubbing, for damaged: the node may ask before scrubbing is set.
	scrub   atomic.Pointer[journal.Scrub]
	healing *healing // nil on a single node
	feed    *feed.Hub
	// The secrets of access tokens, which SIGHUP exchanges.
	tokens tokens
	// The level of the log, which SIGHUP sets; nil when the log is not this package's.
	level *slog.LevelVar
}

// Open starts all parts in the order in which they depend on each other; Stop ends them in reverse.
// After an error no part is left running. A member that is new to its cluster waits for the others
// until ctx ends.
//
// The order is:
//
//   - the check that a restore has not left data.dir half-way, and the folder itself
//   - the engine: on a single node compared with the neighbours first, on a member behind the
//     consensus
//   - what reads the journal beside it: scrub, backups, past, evidence, full history
//   - sidecars and services, the administration's listener, the console
//
// Errors: usage errors of settings, and the refusals that have a row each in docs/operations.md. o
// is what EngineOptions has made; Open sets Feeds and Approve itself. The result admits orders when
// the control sources are ready, which is usually later.
func Open(ctx context.Context, c *settings.Config, o engine.Options,
	log *slog.Logger) (_ *Installation, err error) {
	in := &Installation{}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Stop())
		}
	}()
	if err := makeData(c); err != nil {
		return nil, err
	}
	if err := in.openEngine(ctx, c, o, log); err != nil {
		return nil, err
	}
	if err := in.openBeside(c, log); err != nil {
		return nil, err
	}
	// The followers of the journal, the services and the admin listener. A member's agreed commands
	// begin to flow when all is open.
	if o.Member {
		err = in.openMember(c, log)
	} else {
		err = in.openSingle(ctx, c, log)
	}
	return in, err
}

// openEngine opens the engine: journal, recovery, rings, matcher, recorder. It says in the log what
// was found and what cannot be read.
//
// The processors of the pinned threads are checked first, before the journal is touched. The
// settings that may contradict the journal are checked here, too, before a service listens:
// archives that sidecars need, capacities below those in force. Limits that differ are warned of
// only.
func (in *Installation) openEngine(ctx context.Context, c *settings.Config, o engine.Options,
	log *slog.Logger) (err error) {
	if err := pinnable(c); err != nil {
		return err
	}
	o.Log = log
	o.Feeds = c.Bool("sidecars.enabled") && c.Bool("risk.bootstrap.enabled")
	o.Approve = func(k *engine.Engine) error {
		if o.Member {
			return nil // the agreed commands come from the others: compared when this member leads
		}
		return startCheck{c, log}.core(ctx, k)
	}
	if o.Member {
		err = in.joinCluster(ctx, c, o, log)
	} else {
		in.Core, err = engine.Open(o)
	}
	if err != nil {
		return err
	}
	if err := in.Core.Journal.Archives(); err != nil {
		if c.Bool("sidecars.enabled") { // they read all of it
			return settings.Usagef("journal.archive-dir: %v", err)
		}
		log.Warn("a part of the history cannot be read", "error", err)
	}
	if _, err := in.wanted(c, log); err != nil {
		return err
	}
	warnOfLimits(c, in.Core.Gate.RiskLimits(), log)
	logRecovery(log, in.Core, journal.BootID())
	if err := in.Core.Journal.Copied(); err != nil {
		log.Warn("nothing is missing in the journal, but the rest of data.dir may not fit it", "error",
			err)
	}
	return nil
}

// pinnable refuses the settings of processors that threads cannot be bound to: the machine does not
// have them, or this process may not use them. Errors are usage errors. It binds no thread that
// goes on.
func pinnable(c *settings.Config) error {
	for _, name := range []string{"matcher.cpu", "recorder.cpu"} {
		if err := ring.CanPin(c.Int(name)); err != nil {
			return settings.Usagef("%s: %v", name, err)
		}
	}
	return nil
}

// openBeside opens what reads the journal beside the engine, and the listeners' certificates.
//
// None of them writes to the journal. Each has a loop of its own at a low priority, or none.
func (in *Installation) openBeside(c *settings.Config, log *slog.Logger) (err error) {
	in.scrubbing = startScrubbing(in.Core.Journal, c.Duration("journal.scrub-interval"), log)
	in.scrub.Store(in.scrubbing.scrub)
	if in.backups, err = newBackups(c, in, log); err != nil {
		return err
	}
	if in.past, err = startPast(c, in.Core.Journal, log); err != nil {
		return err
	}
	if in.evidence, err = openEvidence(c, in, log); err != nil {
		return err
	}
	if in.history, err = newFullHistory(c, in.Core); err != nil {
		return err
	}
	in.listeners, err = newListeners(c, log)
	return err
}

// openSingle opens database, broker, sidecars and control sources, then the services over them, and
// last the replicas of the sources, which fetch from those services.
//
// The capacities are raised before the services open, so that the first seeding finds the room.
func (in *Installation) openSingle(ctx context.Context, c *settings.Config,
	log *slog.Logger) error {
	if err := in.raise(ctx, c, log); err != nil {
		return err
	}
	if c.Bool("sidecars.enabled") {
		d, err := openDownstream(c, in.Core, in.history, riskextract.RoleSingle, log)
		if err != nil {
			return err
		}
		in.Beside.Store(d)
		if err := ownDatabase(c, ctx, d.Db); err != nil {
			return err
		}
	}
	m, err := openEdges(c, in, log)
	if err != nil {
		return err
	}
	if d := in.Beside.Load(); d != nil {
		d.follow(c, in)
	}
	in.watching = startWatching(c, statsSourcesOf(in, m), log)
	in.watchNumbers(log)
	return nil
}

// restart is closed when the installation must be opened again; nil when that cannot happen.
//
// A nil channel never receives, so a single node waits for its other reasons alone.
func (in *Installation) restart() <-chan struct{} {
	if in.healing == nil {
		return nil
	}
	return in.healing.again
}

// replaced gets the error of a member whose disk the cluster has replaced; nil on a single node.
func (in *Installation) replaced() <-chan error {
	if in.Member == nil {
		return nil
	}
	return in.Member.Node.Replaced()
}

// damaged reports that a part of the journal is known to be damaged. Any goroutine.
//
// The node tells it to the others: the leadership is not handed to a damaged member, and a damaged
// leader spares no vote.
func (in *Installation) damaged() bool {
	s := in.scrub.Load()
	return s != nil && len(s.State().Damaged) > 0
}

// shutdownTimeout is how long requests in flight may take to end.
//
// systemd's own limit for a stop must be longer.
const shutdownTimeout = 10 * time.Second

// Stop ends the parts: first the callers, last the engine, so that every command that was handed in
// is decided, journaled and answered. When a caller has not ended in time, the engine's memory
// stays mapped.
//
// The order:
//
//   - figures and flight recorder, which read every other part
//   - listeners, and the requests in flight
//   - healing, then the member with its node, or the sidecars
//   - what reads the journal: feed, full history, scrub, past, evidence
//   - the engine
//
// Every part is ended whatever the others return; the errors are joined. Stop also cleans up
// behind an Open that has failed, so each part may be nil. It may be called once.
func (in *Installation) Stop() (err error) {
	if in.watching != nil {
		in.watching.stop()
	}
	if in.listeners != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		err = in.listeners.shutdown(ctx)
	}
	drained := err == nil
	if in.healing != nil {
		in.healing.end()
	}
	if in.Member != nil {
		err = errors.Join(err, in.Member.stop())
	} else if d := in.Beside.Load(); d != nil {
		err = errors.Join(err, d.stop())
	}
	in.closeFeed()
	if in.history != nil {
		err = errors.Join(err, in.history.Close())
	}
	if in.scrubbing != nil {
		in.scrubbing.end()
	}
	err = errors.Join(err, in.past.end())
	in.evidence.end()
	if in.Core != nil {
		err = errors.Join(err, in.Core.End())
		if drained { // otherwise a request may still use its memory
			in.Core.Discard()
		}
	}
	return err
}
