package httpapi

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// TestEdgeIsLabelledInProfiles reads the labels of the connection's goroutine while its order waits
// for a journal that is held.
func TestEdgeIsLabelledInProfiles(t *testing.T) {
	r := newRig(t)
	r.price("AAA", "100")
	before := r.stage.Applied()
	r.recorder.hold()
	done := make(chan answer, 1)
	go func() { done <- r.order("1", "Buy", "1", "100", "") }()
	for r.stage.Applied() == before {
		select {
		case a := <-done:
			t.Fatalf("order was answered before it was sequenced: %d %s", a.status, a.body)
		default:
			runtime.Gosched()
		}
	}
	var text bytes.Buffer
	must.OK(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	r.recorder.letGo()
	if a := <-done; a.status != 201 {
		t.Fatalf("order: %d %s", a.status, a.body)
	}
	for _, label := range []string{`{"stage":"http"}`, `{"stage":"matcher"}`} {
		if !strings.Contains(text.String(), label) {
			t.Errorf("no goroutine is labelled %s", label)
		}
	}
}
