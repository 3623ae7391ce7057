package acts

import (
	"slices"
	"sync"

	"posttrade/matcher"
)

// judge knows which acts the engine has refused. It refuses a policy whose version does not rise,
// and a revocation when it has no room for another subject. Both follow from the acts before, so
// they are judged in their order, each once. The journal itself does not say what was refused.
//
// All readings of a Reader share one judge; mu guards its fields. It lives in memory only: after a
// start, the first act that it is asked about makes a reading from the beginning of the history.
type judge struct {
	mu sync.Mutex
	// upTo: every act up to this sequence has been judged. It only rises.
	upTo    uint64
	refused []uint64 // the sequences of the refused ones, ascending

	// version is that of the last policy that was taken; 0 before the first.
	version int64
	revoked *matcher.Revocations // nil: none was taken
}

// versionsRise is the version of records from which on the version of a policy must rise. The
// engine took any version in older records.
const versionsRise = 2

// refusable reports an act that is judged here: a policy or a revocation.
func refusable(c *matcher.Command) bool {
	switch c.Type {
	case matcher.PolicyControl, matcher.LimitsControl, matcher.TokenRevoke:
		return true
	}
	return false
}

// refuses reports that the engine has refused an act: a POLICY_CONTROL, a TOKEN_REVOKE, or the last
// part of a change of limits that is there whole. Every act before it has been judged.
//
// Below upTo it only looks the answer up, so a repeated reading judges nothing again.
func (j *judge) refuses(c *matcher.Command) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.InputSeq <= j.upTo {
		_, found := slices.BinarySearch(j.refused, c.InputSeq)
		return found
	}
	j.upTo = c.InputSeq
	if j.take(c) {
		return false
	}
	j.refused = append(j.refused, c.InputSeq)
	return true
}

// take decides an act as the engine does, and reports that it is taken. It must agree with
// matcher.Judge of POLICY_CONTROL, LIMITS_CONTROL and TOKEN_REVOKE.
func (j *judge) take(c *matcher.Command) bool {
	if c.Type == matcher.TokenRevoke {
		if j.revoked == nil {
			j.revoked = matcher.NewRevocations()
		}
		r := c.Revocation()
		return j.revoked.Take(&r)
	}
	if c.Version >= versionsRise && c.PriceTicks <= j.version ||
		c.Type == matcher.PolicyControl && (c.Side > 1 || c.Qty < 0 || c.LimitPx < 0) {
		return false
	}
	j.version = c.PriceTicks
	return true
}

// seen is the sequence up to which every act has been judged.
func (j *judge) seen() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.upTo
}

// pass notes that there is no other act up to a sequence, or none that can be read. It never goes
// back, so two readings may pass different sequences in any order.
func (j *judge) pass(inputSeq uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.upTo = max(j.upTo, inputSeq)
}
