package installation

import (
	"errors"
	"log/slog"
	"testing"

	"posttrade/app/apptest"
	"posttrade/httpapi"
	"posttrade/journal/quorum"
	"posttrade/ring/must"
)

// A leader that hands its role on takes back what its guard of the history has held. A member that
// stands aside admits nothing for good, whether it or the guard was first.
func TestALeadershipThatEndsTakesBackItsOwnHoldOnly(t *testing.T) {
	const guards, stands = "the guard holds", "the member stands aside"
	for _, steps := range [][]string{{}, {guards}, {stands}, {guards, stands}, {stands, guards}} {
		dir := t.TempDir()
		k, log := testCore(t, dir), slog.New(slog.DiscardHandler)
		zero := func() uint64 { return 0 }
		relay := must.Get(httpapi.NewRelay("order-matcher",
			httpapi.RelayOptions{Cluster: alwaysLeads{}, Applied: zero, Durable: zero}))(t)
		in := &Installation{Core: k, Member: &member{Node: new(quorum.Node),
			relays: map[string]*httpapi.Relay{"order-matcher": relay}}}
		l := &leading{c: apptest.Settled(t, anyPorts(dir)...), in: in, log: log}
		l.extracts = &memberExtracts{c: l.c, in: in, log: log}
		d := &downstream{loops: newLoops(log), guard: &historyGuard{k: k}}
		in.Beside.Store(d)
		aside, odd := errors.New("planted"), false
		for _, step := range steps {
			if step == guards {
				d.guard.hold(errOlderJournal)
				continue
			}
			in.standAside(aside, log)
			odd = true
		}
		if isHeld(k) != (len(steps) > 0) {
			t.Errorf("%q: held %v before the end", steps, isHeld(k))
		}
		l.end()
		l.extracts.stop()
		switch held := k.Held.Load(); {
		case odd != (held != nil):
			t.Errorf("%q: held %v behind the end", steps, !odd)
		case odd && !errors.Is(*held, aside):
			t.Errorf("%q: held for %v", steps, *held)
		}
		must.OK(t, k.Stop())
	}
}
