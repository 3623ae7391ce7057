package gate

import (
	"maps"

	"posttrade/matcher"
)

// subjects are those whose tokens are refused, each with the time up to which they were issued, in
// epoch milliseconds. There are at most as many as the engine remembers (matcher.MaxRevocations),
// plus those that the engine has given up since the start.
type subjects map[matcher.SubjectHash]int64

// Revoke refuses the tokens of a subject that were issued up to a time.
func (g *Gate) Revoke(r matcher.Revocation) {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	g.revoke(r)
}

// revoke is Revoke for a caller that holds writers.mu. It copies the map: readers hold the old one
// without a lock. A revocation is rare, and the time of a subject never goes back.
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
