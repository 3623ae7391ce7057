package gate

import (
	"maps"

	"posttrade/matcher"
)

// subjects are those whose tokens are refused, each with the time up to which they were issued, in
// milliseconds.
type subjects map[matcher.SubjectHash]int64

// Revoke refuses the tokens of a subject that were issued up to a time.
func (g *Gate) Revoke(r matcher.Revocation) {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	g.revoke(r)
}

// revoke is Revoke for a caller that holds writers.mu.
func (g *Gate) revoke(r matcher.Revocation) {
	next := subjects{}
	if now := g.revoked.Load(); now != nil {
		next = maps.Clone(*now)
	}
	next[r.Subject] = max(next[r.Subject], r.Millis)
	g.revoked.Store(&next)
}

// Revoked returns up to when the tokens of a subject must have been issued to be refused, in
// milliseconds; false when none is refused. Any goroutine.
func (g *Gate) Revoked(subject matcher.SubjectHash) (millis int64, found bool) {
	if now := g.revoked.Load(); now != nil {
		millis, found = (*now)[subject]
	}
	return millis, found
}
