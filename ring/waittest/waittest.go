package waittest

import (
	"runtime"
	"testing"
	"time"
)

// Patience is how long a test waits for an expected event.
const Patience = 60 * time.Second

// Until waits until holds does. seen goes into the failure's text.
func Until(t testing.TB, what string, holds func() (ok bool, seen any)) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(Patience)
	for {
		ok, seen := holds()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not after %s, but %+v", what, Patience, seen)
		}
	}
}

// Spin is Until for what holds within microseconds: it looks again at its next turn on a core.
func Spin(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(Patience); !holds(); runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatalf("%s: not after %s", what, Patience)
		}
	}
}
