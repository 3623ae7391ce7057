package httpapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/matcher/note"
)

// Revocation says how the trade-processor revokes tokens.
//
// The zero value switches the endpoint off.
type Revocation struct {
	Gate *gate.Gate // knows which tokens are revoked
	// Act sequences a command behind its note; note.Act behind a desk is one. nil: the endpoint does
	// not exist.
	Act   func(ctx context.Context, n *note.Note, act matcher.Command) (inputSeq uint64, err error)
	Pause func(time.Duration) // time.Sleep
}

// What a revocation is about, on record, and its values.
type (
	bySubject struct {
		Subject string `json:"subject"`
	}
	revokedValue struct {
		IssuedUpTo string `json:"issuedUpTo"`
	}
)

var problemRevocations = problem{status: 409, code: CodeCapacity,
	detail: "no room for another subject whose tokens are refused: change auth.jwt.secret instead"}

// subject reads the body of POST /auth/revoke. It is required and not blank.
func (d *decoder) subject() (subject string) {
	seen := false
	for key := range d.members {
		if string(key) != "subject" {
			d.unknown(key)
			continue
		}
		d.field, seen = "subject", true
		if subject = string(d.json.String()); strings.TrimSpace(subject) == "" {
			d.fail(errBlank)
		}
	}
	d.require("subject", seen)
	return subject
}

// revokeTokens is POST /auth/revoke: from now on, no token of the subject that was issued before is
// accepted by any service. It works for rows of another history too: it is not about rows.
//
// A repetition moves the moment: tokens issued between the two are refused too. The revocation is a
// sequenced command, so every member and every replay refuses the same tokens.
func (q *inquiry) revokeTokens() problem {
	if q.p.Revocation.Act == nil {
		return problemRoute
	}
	if p := q.serviceRequest.admin(); p.status != 0 {
		return p
	}
	if p := q.readBody(); p.status != 0 {
		return p
	}
	subject := q.body.subject()
	if p := q.bodyRead(); p.status != 0 {
		return p
	}
	n, p := q.byHand(q.p.NeedReason)
	if p.status != 0 {
		return p
	}
	now, hash := q.p.Mint.Now().UnixMilli(), matcher.HashSubject(subject)
	about := act{kind: note.Revoke, object: bySubject{subject}, new: issuedUpTo(now)}
	if before, found := q.p.Revocation.Gate.Revoked(hash); found {
		about.old = issuedUpTo(before)
	}
	about.fill(&n)
	ctx, cancel := q.p.long()
	defer cancel()
	inputSeq, err := q.p.Revocation.Act(ctx, &n, matcher.NewTokenRevoke(hash, now))
	if p := q.actProblem(&n, err); p.status != 0 {
		return p
	}
	n.Log(q.p.log, inputSeq)
	q.asOf, q.known = inputSeq, true
	// Tokens say in whole seconds when they were issued. The answer comes in the next second: so a
	// token that is minted after it is a good one.
	q.p.Revocation.Pause(time.Duration(1000-now%1000) * time.Millisecond)
	b := append(q.begin(), `{"applied":true,"subject":`...)
	b = appendString(b, subject)
	b = append(b, `,"issuedUpTo":"`...)
	b = append(append(b, issuedUpTo(now).IssuedUpTo...), `","sequence":`...)
	return q.send(200, append(appendUint(b, inputSeq), '}'))
}

// issuedUpTo is a time as records and answers show it, in whole seconds like the claim iat.
func issuedUpTo(millis int64) revokedValue {
	return revokedValue{time.UnixMilli(millis).UTC().Format(time.RFC3339)}
}

// actProblem is the answer to an act that has failed; no problem when it has not.
//
// A refusal of the engine is on record as refused. An unknown outcome is logged without a sequence.
func (q *inquiry) actProblem(n *note.Note, err error) problem {
	var refused note.Refused
	switch {
	case err == nil:
		return problem{}
	case errors.As(err, &refused) && refused.Reason == matcher.Capacity:
		n.LogRefused(q.p.log, refused.InputSeq, string(CodeCapacity))
		return problemRevocations.under(refused.InputSeq)
	}
	p := q.recordProblem(err)
	if !p.notSequenced && p.status >= 500 {
		n.Log(q.p.log, 0)
	}
	return p
}
