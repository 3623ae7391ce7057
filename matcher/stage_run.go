package matcher

import (
	"context"
	"runtime/pprof"

	"posttrade/ring"
)

// NewStage ties an engine to its rings. idle is how it waits for commands. cpu is the core that its
// thread is bound to, -1 for any. The output ring must have a gating reader that does not end
// before Run does.
func NewStage(engine *Engine, in *ring.MPSC[Command], out *ring.Fanout[Event], idle ring.Strategy,
	cpu int) *Stage {
	s := &Stage{
		engine: engine, in: in, out: out, cpu: cpu,
		idle: ring.NewIdler(idle, in.Waiter()),
		wait: ring.NewIdler(idle, nil),
	}
	s.idle.Lends(&s.lease)
	s.outlet = Outlet{
		Slots: out.Slots(), Mask: out.Mask(),
		Next: out.Published(), Limit: out.Limit(), More: s.more,
	}
	s.applied.Store(int64(engine.applied))
	return s
}

// Run decides until Stop, on the calling goroutine, which stays tied to its thread and has the
// label stage=matcher in profiles. It returns an error at once when the thread cannot be bound to
// its core. After Stop it returns nil, once every command that was published before is decided and
// its events are published.
//
// While the output ring is full Run waits: stop its reader only after Run has returned.
func (s *Stage) Run() (err error) {
	pprof.Do(context.Background(), pprof.Labels("stage", "matcher"), func(context.Context) {
		if err = s.idle.Lock(s.cpu); err == nil {
			s.loop()
		}
	})
	return err
}

// DriveNext sets what drives the reader of the output ring; Drive calls it after its turns. Without
// it the stage wakes the reader. The caller sets it before Run.
func (s *Stage) DriveNext(drive func()) { s.next = drive }

// Stop asks Run to return. Any goroutine may call it, any number of times, also before Run.
func (s *Stage) Stop() {
	s.stopping.Store(true)
	s.in.Waiter().Wake()
}

// Applied returns the last sequence decided. It is at or above everything that a reader of the
// output ring has seen. Any goroutine may call it.
func (s *Stage) Applied() uint64 { return uint64(s.applied.Load()) }

// Stalls returns how often the stage found the output ring full. Any goroutine may call it.
func (s *Stage) Stalls() uint64 { return uint64(s.stalls.Load()) }
