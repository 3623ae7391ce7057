package asof

import (
	"context"
	"path/filepath"
	"testing"
)

// fuse is a context that panics when it is asked for the last time.
type fuse struct {
	context.Context
	left *int
}

func (f fuse) Err() error {
	if *f.left--; *f.left == 0 {
		panic("planted")
	}
	return nil
}

// TestAPanicLosesNoShadow: a replay that panics, wherever it looks at its context, leaves room for
// the next moments, which are right, and Close ends.
func TestAPanicLosesNoShadow(t *testing.T) {
	j, states := record(t, filepath.Join(t.TempDir(), "j"), 400)
	h := open(t, j, Options{})
	panics := func(f func()) (does bool) {
		defer func() { does = recover() != nil }()
		f()
		return false
	}
	at := func(ctx context.Context, inputSeq uint64) {
		if m, err := h.At(ctx, inputSeq); err == nil {
			m.Release()
		}
	}
	for name, step := range map[string]func(ctx context.Context){
		"from the beginning": func(ctx context.Context) { at(ctx, 100) },
		"a short step": func(ctx context.Context) {
			at(context.Background(), 300)
			at(ctx, 330)
		},
		"a command": func(ctx context.Context) {
			at(context.Background(), 200)
			_, _ = h.Command(ctx, 201, func(StateBefore) error { return ctx.Err() })
		},
	} {
		looks := 1
		for left := looks; panics(func() { step(fuse{context.Background(), &left}) }); left = looks {
			looks++
			check(t, h, 50, states)
		}
		if looks == 1 {
			t.Errorf("%s: nothing has panicked", name)
		}
	}
	for _, inputSeq := range []uint64{100, 330, 200, 201, 400} {
		check(t, h, inputSeq, states)
	}
	if n := h.Warm(); n > MaxWarm {
		t.Errorf("%d warm shadows", n)
	}
}
