package journal

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// exactly is views that know every event and every id that they were given, and their order.
type exactly struct {
	tally
	sum  [32]byte
	at   uint64 // the last whole command
	seen func(ev *matcher.Event)
}

func (v *exactly) Observe(ev *matcher.Event, id []byte) {
	v.sum = sha256.Sum256(fmt.Appendf(v.sum[:], "%v %q", *ev, id))
	v.events++
	if ev.Flags&matcher.EventLast != 0 {
		v.at = ev.InputSeq
	}
	if v.seen != nil {
		v.seen(ev)
	}
}

// watched makes shadows with such views.
func watched(views *exactly, engine func() Engine) Rebuild {
	return Rebuild{
		Engine: func(io.Reader) (Engine, error) { return engine(), nil },
		Views:  func(io.Reader) (Views, error) { return views, nil },
	}
}

// TestViewsApartSeeWhatTheyWouldHere replays histories with views on the replay's goroutine and on
// one of their own: small blocks, a block that is larger than a portion, and commands whose events
// are more than a portion holds.
func TestViewsApartSeeWhatTheyWouldHere(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 7, idsEvery: 3}
	appendAll(t, j, f, 5, 1, 1, 30, 1, portionEvents, 100)
	head := f.inputSeq
	for name, engine := range map[string]func() Engine{
		"toy":    func() Engine { return &toy{flow: flow{seed: 7}} },
		"chatty": func() Engine { return &chatty{many: 2*portionEvents + 1} },
	} {
		here, apart := &exactly{}, &exactly{}
		for _, to := range []uint64{9, 200, head} {
			for _, views := range []*exactly{here, apart} {
				sh, _, err := newShadow(j, watched(views, engine), 0, nil)
				must.OK(t, err)
				*views = exactly{}
				if views == here {
					must.OK(t, sh.Follow(context.Background(), to, nil))
				} else {
					must.OK(t, sh.followApart(context.Background(), to))
				}
				if sh.Applied() != to || views.at != to || len(sh.out.Slots) != shadowEvents {
					t.Errorf("%s: the engine stands at %d, the views at %d, want %d; %d slots", name,
						sh.Applied(), views.at, to, len(sh.out.Slots))
				}
			}
			if here.sum != apart.sum || here.events != apart.events {
				t.Errorf("%s up to %d: %d events here, %d apart, or they differ", name, to, here.events,
					apart.events)
			}
		}
	}
	must.OK(t, j.Close())
}

// TestALongStartThatEndsEarly ends the views, the context and the engine in the middle of a replay.
func TestALongStartThatEndsEarly(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 7, idsEvery: 3}
	for range 8 {
		appendAll(t, j, f, portionEvents)
	}
	const middle = 3 * portionEvents
	head := f.inputSeq
	if head < readAhead {
		t.Fatalf("%d commands are a short start", head)
	}
	plain := func() Engine { return &toy{flow: flow{seed: 7}} }

	t.Run("panic", func(t *testing.T) {
		views := &exactly{seen: func(ev *matcher.Event) {
			if ev.InputSeq == middle {
				panic(errToy)
			}
		}}
		defer func() {
			met, ok := recover().(*Panic)
			if !ok || met.Cause != errToy {
				t.Errorf("panicked with %v, want that of the views", met)
			}
		}()
		_, err := Recover(context.Background(), j, watched(views, plain), nil)
		t.Errorf("no panic, %v", err)
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		views := &exactly{seen: func(ev *matcher.Event) {
			if ev.InputSeq == middle {
				cancel()
			}
		}}
		engine := &toy{flow: flow{seed: 7}, closed: new(int)}
		_, err := Recover(ctx, j, watched(views, func() Engine { return engine }), nil)
		must.Be(t, err, context.Canceled)
		if views.at != engine.applied || views.at == head || *engine.closed != 1 {
			t.Errorf("the engine stands at %d, the views at %d of %d; closed %d times", engine.applied,
				views.at, head, *engine.closed)
		}
	})
	t.Run("engine", func(t *testing.T) {
		engine := &stopping{toy{flow: flow{seed: 7}}, middle + 10}
		views := &exactly{}
		_, err := Recover(context.Background(), j, watched(views, func() Engine { return engine }), nil)
		must.Be(t, err, errToy)
		if views.at != middle+9 || engine.applied != views.at {
			t.Errorf("the engine stands at %d, the views at %d", engine.applied, views.at)
		}
	})
	must.OK(t, j.Close())
}

// stopping refuses one command.
type stopping struct {
	toy
	refused uint64
}

func (e *stopping) ReplayBatch(batch []matcher.Command, out *matcher.Outlet) (int, error) {
	for i := range batch {
		if batch[i].InputSeq == e.refused {
			return i, errToy
		}
		if err := e.Replay(&batch[i], out); err != nil {
			return i, err
		}
	}
	return len(batch), nil
}
