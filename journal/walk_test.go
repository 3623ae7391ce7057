package journal

import (
	"errors"
	"io"
	"testing"
)

// A commit's commands may claim any number of fills. Memory is allocated only for as many as there
// are.
func TestNoMemoryForFillsThatAreNotThere(t *testing.T) {
	missing := errors.New("no such block")
	w := newWalker(nil, [chainBytes]byte{})
	defer w.close()
	w.get = func([]byte) ([]byte, io.Closer, error) { return nil, nil, missing }
	b := &decoded{}
	b.envelope.fills = 1 << 20
	if err := w.companions(b); !errors.Is(err, missing) {
		t.Errorf("got %v, want what reading them said", err)
	}
	if got := cap(b.fills); got != 0 {
		t.Errorf("memory for %d fills was taken", got)
	}
}
