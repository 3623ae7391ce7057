package perf

import (
	"strings"
	"testing"
	"testing/synctest"
)

// rising is an engine that reports a higher durable sequence at every look, up to a limit.
type rising struct{ durable, limit uint64 }

func (r *rising) next() uint64 {
	r.durable = min(r.durable+1, r.limit)
	return r.durable
}

func TestAnswersMayComeJustBeforeTheNumberButNotWithoutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := awaitDurable((&rising{limit: 5}).next, 5); err != nil {
			t.Errorf("a number that comes late: %v", err)
		}
		if err := awaitDurable((&rising{limit: 4}).next, 5); err == nil ||
			!strings.Contains(err.Error(), "4 commands durable, 5 were answered") {
			t.Errorf("a number that never comes: %v", err)
		}
	})
}
