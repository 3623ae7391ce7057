package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"posttrade/journal/acts"
	"posttrade/matcher/note"
	"posttrade/ring/waittest"
)

// fakeActs answers every query with one act, or an error.
type fakeActs struct{ err error }

func (f fakeActs) Read(_ context.Context, _ acts.Query, fn func(*acts.Record) error) error {
	if f.err != nil {
		return f.err
	}
	return fn(&acts.Record{Kind: note.Halt, Sequence: 3, Subject: "a",
		Object: json.RawMessage(`{"security":"AAA"}`)})
}

func withActs(err error) func(r *rig) {
	return func(r *rig) { r.serve(func(d *Deps) { d.Acts = fakeActs{err} }) }
}

// An act without a reason that is required, or with one that would spoil a log or a table, is
// refused by the header's name, and nothing is sequenced.
func TestAnActNeedsAReasonThatCanBeShown(t *testing.T) {
	r, log := newRig(t), &waittest.Log{}
	r.serve(func(d *Deps) {
		d.NeedReason = true
		d.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	admin := r.token("admin")
	policy := func(header map[string]string) answer {
		return roundTrip(t, r.address, request{method: "POST", path: "/risk/control/policy",
			body: `{"policyVersion":1,"killSwitch":true}`, token: admin, header: header})
	}
	because := func(reason string) answer { return policy(map[string]string{"X-Reason": reason}) }
	for name, a := range map[string]answer{
		"none": policy(nil), "blank": because("  "),
		"10 kB": because(strings.Repeat("x", 6000)), "not UTF-8": because("a\xffb"),
		"an override of direction": because("a\u202eb"), "a line separator": because("a\u2028b"),
	} {
		if a.status != 400 || !strings.Contains(string(a.body), "X-Reason") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if n := r.stage.Applied(); n != 0 {
		t.Errorf("%d commands were sequenced", n)
	}
	because("prüfung").want(t, 200, "")
	if log.Count("operator act") != 1 || log.Count("reason=prüfung") != 1 {
		t.Errorf("the log has %s", log.String())
	}
}
