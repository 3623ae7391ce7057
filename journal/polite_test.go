package journal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// panicOf runs f and returns what it panicked with.
func panicOf(f func()) (cause any) {
	defer func() { cause = recover() }()
	f()
	return nil
}

// plantedPanic is a name that the stack of a panic must show.
func plantedPanic() error { panic("planted") }

// A panic of polite work is its caller's: a caller that recovers does not end with it. The stack is
// that of the work, however often the panic is handed on.
func TestAPanicOfPoliteWorkIsItsCallers(t *testing.T) {
	own := errors.New("own")
	must.Be(t, Politely(Background, func() error { return own }), own)
	met, ok := panicOf(func() {
		_ = Politely(Bulk, func() error { return Politely(Background, plantedPanic) })
	}).(*Panic)
	if !ok || met.Cause != "planted" || !strings.Contains(string(met.Stack), "plantedPanic") ||
		!strings.HasPrefix(met.Error(), "planted\n\n") {
		t.Fatalf("%v", met)
	}
}

// A panic of a helper is that of the caller that joins it.
func TestAPanicOfAHelperIsItsCallers(t *testing.T) {
	met, ok := panicOf(alike(func() { _ = plantedPanic() })).(*Panic)
	if !ok || !strings.Contains(string(met.Stack), "plantedPanic") {
		t.Fatalf("%v", met)
	}
	alike(func() {})()
}

// A replay whose reader panics leaves nothing behind: the store closes, which it does not while
// something still reads it.
func TestAPanicInAReplay(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	appendAll(t, j, &flow{seed: 5}, 40, 40, 40, 40, 40, 40, 40, 40)
	for range 20 {
		if cause := panicOf(func() {
			_ = j.Replay(context.Background(), 1, func([]matcher.Command, ClientIDs) error {
				return plantedPanic()
			})
		}); cause != "planted" {
			t.Fatalf("panic %v", cause)
		}
	}
	must.OK(t, j.Close())
}
