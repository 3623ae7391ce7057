package acts

import (
	"cmp"
	"slices"
	"sync"

	"posttrade/matcher"
)

// policies are the policies that the engine has taken. The engine refuses one whose version does
// not rise, so which were taken follows from the policies before: they are judged in their order.
type policies struct {
	mu    sync.Mutex
	upTo  uint64        // every policy up to here has been judged
	taken []takenPolicy // ascending
}

type takenPolicy struct {
	inputSeq uint64
	version  int64
}

// versionsRise is the version of records from which on the version of a policy must rise.
const versionsRise = 2

// refused reports that the engine has refused a policy: a POLICY_CONTROL, or the last part of a
// change of limits that is there whole. Every policy before it has been judged.
func (p *policies) refused(c *matcher.Command) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.InputSeq <= p.upTo {
		_, taken := slices.BinarySearchFunc(p.taken, c.InputSeq, func(t takenPolicy, seq uint64) int {
			return cmp.Compare(t.inputSeq, seq)
		})
		return !taken
	}
	p.upTo = c.InputSeq
	inForce := int64(0)
	if n := len(p.taken); n > 0 {
		inForce = p.taken[n-1].version
	}
	if c.Version >= versionsRise && c.PriceTicks <= inForce ||
		c.Type == matcher.PolicyControl && (c.Side > 1 || c.Qty < 0 || c.LimitPx < 0) {
		return true
	}
	p.taken = append(p.taken, takenPolicy{c.InputSeq, c.PriceTicks})
	return false
}

// seen is the sequence up to which every policy has been judged.
func (p *policies) seen() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upTo
}

// pass notes that there is no other policy up to a sequence, or none that can be read.
func (p *policies) pass(inputSeq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upTo = max(p.upTo, inputSeq)
}
