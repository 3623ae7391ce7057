package httpapi

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/note"
)

// revocation is POST /auth/revoke in front of a gate of its own; time passes in the rig's clock.
func (r *processorRig) revocation() Revocation {
	g := gate.New(1, 1)
	return Revocation{Gate: g,
		Act: func(_ context.Context, n *note.Note, act matcher.Command) (uint64, error) {
			if err := act.Verify(); err != nil {
				return 0, err
			}
			r.acted = append(r.acted, *n)
			g.Revoke(act.Revocation())
			return 77, r.actError
		},
		Pause: func(d time.Duration) { r.now.Add(d.Milliseconds()) }}
}

const goodRevoke = `{"subject":"x"}`

func revokeRows() (rows []row) {
	const request = "POST /auth/revoke"
	for _, body := range []string{"", "{", "[]", "{}", `{"subject":""}`, `{"subject":" "}`,
		`{"subject":null}`, `{"subject":1}`, `{"subject":"a","x":1}`, `{"subject":"a","subject":"a"}`} {
		rows = append(rows, row{request, body, "admin", 400, CodeMalformedBody})
	}
	return append(rows, row{request, goodRevoke, "", 401, CodeUnauthorized},
		row{request, goodRevoke, "one", 403, CodeAdminRequired},
		row{request, goodRevoke, "admin", 200, ""},
		row{"GET /auth/revoke", "", "admin", 405, CodeMethodNotAllowed})
}

// TestRevokedTokensAreRefused: what was issued before the answer is refused, of this subject alone;
// what is minted after the answer is good.
func TestRevokedTokensAreRefused(t *testing.T) {
	r := newProcessorRig(t)
	mint := func(subject string) string {
		body := fmt.Sprintf(`{"subject":%q,"accounts":[1],"ttlSeconds":3600}`, subject)
		return r.mint(body, nil).want(t, 200, "").field(t, "token").(string)
	}
	ann, bob := mint("ann"), mint("bob")
	// It is not said when this one was issued.
	timeless := sign(tokenHead, tokenBody(`"sub":"ann","accounts":[1]`))
	r.call(request{method: "GET", path: "/trades/trd-1", token: timeless}).want(t, 200, "")
	r.now.Add(700) // of the second in which ann was minted
	a := r.call(request{method: "POST", path: "/auth/revoke", body: `{"subject":"ann"}`,
		token:  namedToken(r.now.Load(), "admin"),
		header: map[string]string{"X-Reason": "left the desk"}}).want(t, 200, "")
	if a.field(t, "issuedUpTo") != "2026-03-02T10:00:00Z" || a.field(t, "subject") != "ann" ||
		!strings.Contains(string(a.body), `"sequence":77`) {
		t.Errorf("answer %s", a.body)
	}
	show := func(token string) answer {
		return r.call(request{method: "GET", path: "/trades/trd-1", token: token})
	}
	show(ann).want(t, 401, CodeUnauthorized)
	show(timeless).want(t, 401, CodeUnauthorized)
	show(bob).want(t, 200, "")
	show(mint("ann")).want(t, 200, "")
	n := r.acted[0]
	if n.Kind != note.Revoke || n.Subject != "tester" || n.Reason != "left the desk" ||
		string(n.Object) != `{"subject":"ann"}` || n.Old != nil ||
		string(n.New) != `{"issuedUpTo":"2026-03-02T10:00:00Z"}` {
		t.Errorf("note %+v", n)
	}
	if log := r.log.String(); strings.Count(log, "operator act") != 1 ||
		!strings.Contains(log, "kind=token-revoke sequence=77 subject=tester") {
		t.Errorf("log: %s", log)
	}
	r.call(request{method: "POST", path: "/auth/revoke", body: `{"subject":"ann"}`,
		token: namedToken(r.now.Load(), "admin")}).want(t, 200, "")
	if old := string(r.acted[1].Old); old != `{"issuedUpTo":"2026-03-02T10:00:00Z"}` {
		t.Errorf("the second time: old %s", old)
	}
}

// TestRevocationsThatFail: a full table is a conflict that names the way out; production asks for a
// reason by the header's name; an unknown outcome is logged as such.
func TestRevocationsThatFail(t *testing.T) {
	r := newProcessorRig(t, func(d *ProcessorDeps) { d.NeedReason = true })
	revoke := func(reason string) answer {
		return r.call(request{method: "POST", path: "/auth/revoke", body: goodRevoke,
			token: namedToken(r.now.Load(), "admin"), header: map[string]string{"X-Reason": reason}})
	}
	if a := revoke(""); a.status != 400 || !strings.Contains(string(a.body), "X-Reason") ||
		len(r.acted) != 0 {
		t.Errorf("no reason: %d %s", a.status, a.body)
	}
	for _, tt := range []struct {
		err    error
		status int
		code   Code
		logs   int
	}{
		{note.Refused{InputSeq: 7, Reason: matcher.Capacity}, 409, CodeCapacity, 0},
		{fmt.Errorf("x: %w", note.ErrSize), 400, CodeBadRequest, 0},
		{desk.ErrRefused, 503, CodeNotLeader, 0}, {desk.ErrClosed, 503, CodeStopping, 0},
		{desk.ErrFailed, 503, CodeJournalFailed, 1},
		{context.DeadlineExceeded, 504, CodeOutcomeUnknown, 1},
	} {
		r.actError = tt.err
		before := strings.Count(r.log.String(), "outcome is unknown")
		a := revoke("why").want(t, tt.status, tt.code)
		if got := a.field(t, "sequence"); (got == "7") != (tt.status == 409) {
			t.Errorf("%v: sequence %v", tt.err, got)
		}
		if got := strings.Count(r.log.String(), "outcome is unknown") - before; got != tt.logs {
			t.Errorf("%v: %d log lines, want %d", tt.err, got, tt.logs)
		}
	}
	if log := r.log.String(); strings.Count(log, "operator act: refused") != 1 ||
		!strings.Contains(log, "sequence=7") || !strings.Contains(log, "code=CAPACITY") {
		t.Errorf("the refused one is logged as\n%s", log)
	}
}
