package journal

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Snapshotter takes snapshots beside the running engine: a second engine starts
// from the newest snapshot, or from genesis, replays what is durable, and is
// written out. The matcher never stops. The shadow lives only while a snapshot
// is taken, so it costs no memory otherwise.
type Snapshotter struct {
	// Constant after NewSnapshotter. interval is in commands; 0: only on demand.
	j        *Journal
	rebuild  Rebuild
	interval uint64

	// Held while a snapshot is taken: one at a time.
	mu sync.Mutex
	// The inputSeq of the newest snapshot. Writer, as of the number below it: Take.
	last atomic.Uint64
	at   atomic.Int64 // when the last was written, in nanoseconds; without one, when this was made
}

// NewSnapshotter takes a snapshot whenever interval commands have become durable since the last; 0
// = only on demand. It starts nothing: the caller runs Run on a goroutine. An error is one of
// reading the manifests.
func NewSnapshotter(j *Journal, rebuild Rebuild, interval uint64) (*Snapshotter, error) {
	s := &Snapshotter{j: j, rebuild: rebuild, interval: interval}
	list, _, err := listSnapshots(j.db)
	if err != nil {
		return nil, err
	}
	s.at.Store(time.Now().UnixNano())
	if len(list) > 0 {
		s.last.Store(list[0].InputSeq)
		if file, err := j.o.FS.Stat(j.o.FS.PathJoin(j.dir, list[0].State.Path)); err == nil {
			s.at.Store(file.ModTime().UnixNano())
		}
	}
	return s, nil
}

// Last is the sequence of the newest snapshot, 0 for none. Any goroutine.
func (s *Snapshotter) Last() uint64 { return s.last.Load() }

// LastAt is when the newest snapshot was written; without one, when the Snapshotter was made.
func (s *Snapshotter) LastAt() time.Time { return time.Unix(0, s.at.Load()) }

// snapshotPoll is how often Run looks at the durable head.
const snapshotPoll = time.Second

// Run takes snapshots as they fall due until ctx ends. A failure is logged, and Run
// tries again after as many further commands. An end of ctx cuts the replay of a snapshot short;
// one that is being written is completed.
func (s *Snapshotter) Run(ctx context.Context) {
	if s.interval == 0 {
		<-ctx.Done()
		return
	}
	t := time.NewTicker(snapshotPoll)
	defer t.Stop()
	next := s.last.Load() + s.interval
	for {
		if s.j.Durable() >= next {
			if _, err := s.Take(ctx); err != nil && ctx.Err() == nil {
				s.j.o.Logger.Errorf("journal: snapshot: %v", err)
			}
			next = s.j.Durable() + s.interval
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Take writes a snapshot at the durable head and returns it. If the newest snapshot is already at
// the head, it returns that one. It blocks while the shadow replays, on a thread of the lowest
// priority (Politely), so on a busy machine it may take long. Any goroutine.
func (s *Snapshotter) Take(ctx context.Context) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var snap Snapshot
	err := Politely(Bulk, func() (err error) {
		snap, err = s.take(ctx)
		return err
	})
	if err != nil {
		return snap, err
	}
	if s.last.Swap(snap.InputSeq) != snap.InputSeq {
		s.at.Store(time.Now().UnixNano())
	}
	return snap, nil
}

// take is Take on its own thread. The shadow lives only in here.
func (s *Snapshotter) take(ctx context.Context) (_ Snapshot, err error) {
	sh, base, err := newShadow(s.j, s.rebuild, newest, s.j.report)
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	target, _ := s.j.Head()
	if base.InputSeq == target && target > 0 && (base.Views != nil || s.rebuild.Views == nil) {
		return base, nil
	}
	if err := sh.Follow(ctx, target, nil); err != nil {
		return Snapshot{}, err
	}
	var views func(io.Writer) error
	if sh.views != nil {
		views = sh.views.Write
	}
	return s.j.WriteSnapshot(target, sh.engine.WriteSnapshot, views)
}
