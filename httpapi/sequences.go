package httpapi

import (
	"time"

	"github.com/valyala/fasthttp"
)

// The headers by which a client reads what it has written, on any member.
const (
	// headerMinSequence is the sequence that a read must have in it.
	headerMinSequence = "X-Min-Sequence"
	// headerAsOf is a sequence that an answer has in it: of a read everything up to it, of a write its
	// own command.
	headerAsOf = "X-As-Of-Sequence"

	// sequencePatience is how long a read waits for its X-Min-Sequence.
	sequencePatience = 2 * time.Second
)

var headerAsOfBytes = []byte(headerAsOf)

// minSequence reads X-Min-Sequence, 0 when it is not there.
func minSequence(ctx *fasthttp.RequestCtx) (inputSeq uint64, p problem) {
	value := ctx.Request.Header.Peek(headerMinSequence)
	if value == nil {
		return 0, problem{}
	}
	inputSeq, ok := number(value, 0, 1<<63-1)
	if !ok {
		return 0, badQuery("header " + headerMinSequence + ": it is not a sequence")
	}
	return inputSeq, problem{}
}

// await waits until the views have the sequence that the request asks for, and notes what they have
// in them before the read begins.
func (x *exchange) await() problem {
	wanted, p := minSequence(x.ctx)
	if p.status != 0 {
		return p
	}
	if x.m.Durable.Durable() < wanted &&
		x.m.Durable.WaitDurable(wanted, sequencePatience) != nil {
		if x.m.Failed() != nil {
			return problemJournal
		}
		return problemNotYet
	}
	x.asOf = x.m.Durable.Durable()
	return problem{}
}

// markSequence writes the sequence that the answer has in it. A write's answer leaves when its
// command is durable, so the durable sequence has it.
func (x *exchange) markSequence() {
	if x.asOf == 0 && !x.marked {
		x.asOf = x.m.Durable.Durable()
	}
	x.digits = appendUint(x.digits[:0], x.asOf)
	x.ctx.Response.Header.SetCanonical(headerAsOfBytes, x.digits)
	x.asOf, x.marked = 0, false
}
