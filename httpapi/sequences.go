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
//
// Two headers of that name are refused: nothing says which of them counts.
func minSequence(ctx *fasthttp.RequestCtx) (inputSeq uint64, p problem) {
	value, p := onlyHeader(ctx, headerMinSequence)
	if value == nil {
		return 0, p
	}
	inputSeq, ok := number(value, 0, 1<<63-1)
	if !ok {
		return 0, badHeader(headerMinSequence, "it is not a sequence")
	}
	return inputSeq, problem{}
}

// onlyHeader is the value of a header that may be there once, nil when it is not there.
func onlyHeader(ctx *fasthttp.RequestCtx, name string) (value []byte, p problem) {
	switch values := ctx.Request.Header.PeekAll(name); len(values) {
	case 0:
		return nil, problem{}
	case 1:
		return values[0], problem{}
	}
	return nil, badHeader(name, "it is there twice")
}

// await waits until the views have the sequence that the request asks for, and notes what they have
// in them before the read begins.
//
// Only a caller that may read at all can make it wait. Errors: those of reader; problemNotYet after
// sequencePatience, problemJournal when the journal has failed. The noted sequence is what
// markSequence later writes: what the read shows may be newer, never older.
func (x *exchange) await(r route) problem {
	if len(x.ctx.Request.Header.Peek(headerMinSequence)) > 0 {
		if p := x.reader(r); p.status != 0 {
			return p
		}
	}
	wanted, p := minSequence(x.ctx)
	if p.status != 0 {
		return p
	}
	x.late = time.Now().Add(sequencePatience)
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

// awaitShown waits, behind await, until what an endpoint shows has the sequence that the request
// asks for, where that is less than the views have. It notes what is shown before the read begins.
//
// What is shown sends no signal. Errors: those of lookAgain.
func (x *exchange) awaitShown(shown func() uint64) problem {
	wanted, p := minSequence(x.ctx)
	if p.status != 0 {
		return p
	}
	for {
		if x.asOf, x.marked = shown(), true; x.asOf >= wanted {
			return problem{}
		}
		if p := x.m.lookAgain(x.late); p.status != 0 {
			return p
		}
	}
}

// reader checks the token of a read, as its endpoint does again before anything else.
func (x *exchange) reader(r route) problem {
	switch r {
	case routeBook, routeLogMember, routeCheckpoint, routeTile:
		return problem{}
	case routeOrders, routeOrder, routePositions, routeCredit, routeContracts, routeContract,
		routeOrderWhy, routeContractWhy, routeWhy, routeProof:
		return x.admit()
	}
	return x.admin()
}

// markSequence writes the sequence that the answer has in it. A write's answer leaves when its
// command is durable, so the durable sequence has it.
//
// It runs for every answer, refusals too. A moment of the past is marked with its own sequence.
func (x *exchange) markSequence() {
	if x.asOf == 0 && !x.marked {
		x.asOf = x.m.Durable.Durable()
	}
	x.digits = appendUint(x.digits[:0], x.asOf)
	x.ctx.Response.Header.SetCanonical(headerAsOfBytes, x.digits)
	x.asOf, x.marked = 0, false
}

// rowsLook is how often a read looks whether the rows have what it asks for.
//
// A look at rows costs a load from memory, or one small query.
const rowsLook = 5 * time.Millisecond

// await waits until the rows that an endpoint reads have the sequence that the request asks for,
// and notes which they have. The loops that write rows send no signal, so it looks again and again.
//
// The wait is sequencePatience at most, and ends with the service. The sequence is read before the
// rows are, so they have it.
func (q *inquiry) await(r route) problem {
	wanted, p := minSequence(q.ctx)
	if p.status != 0 {
		return p
	}
	for late := time.Now().Add(sequencePatience); ; {
		q.asOf, q.known, p = q.rowsHave(r)
		if p.status != 0 || q.asOf >= wanted {
			return p
		}
		if p = q.p.lookAgain(late); p.status != 0 {
			return p
		}
	}
}

// lookAgain waits until a read looks again whether what it asks for is there. The wait is over with
// problemNotYet when it is late, and with problemStopping when the service ends.
func (s *service) lookAgain(late time.Time) problem {
	if !time.Now().Before(late) {
		return problemNotYet
	}
	select {
	case <-time.After(rowsLook):
		return problem{}
	case <-s.lasting.Done():
		return problemStopping
	}
}

// rowsHave is the sequence that the rows of an endpoint have in them, if it is known. Those of the
// reconciliation have what is projected when every projected trade has been compared, else what
// is before the first that has not; costs need the price history too.
//
// Each case says what the endpoint's own rows have: rows are written by different loops, each with
// a cursor of its own.
func (q *inquiry) rowsHave(r route) (asOf uint64, known bool, p problem) {
	if q.p.Projected == nil {
		return 0, false, problem{}
	}
	switch r {
	case routeReconStatus, routeBreaks, routeLastSweep:
	case routeTCAReport, routeTCASummary:
		return min(q.p.Projected(), q.p.TCA.Applied()), true, problem{}
	default:
		return q.p.Projected(), true, problem{}
	}
	return q.compared()
}

// compared is the sequence up to which every projected trade has been compared, if it is known.
//
// It reads the status of the reconciliation from the database.
func (q *inquiry) compared() (asOf uint64, known bool, p problem) {
	if q.p.ProjectedTrades == nil {
		return 0, false, problem{}
	}
	asOf = q.p.Projected() // before the trades: these may be newer, not older
	trades := q.p.ProjectedTrades()
	ctx, cancel := quick()
	defer cancel()
	s, err := q.p.Recon.Status(ctx)
	switch {
	case err != nil:
		return 0, false, q.p.failed(err)
	case s.Cursor < trades:
		asOf = q.p.Recon.Before(s.Cursor + 1)
		return asOf, asOf != 0, problem{} // 0: the journal cannot tell
	}
	return asOf, true, problem{}
}

// reads reports an endpoint that shows rows.
func (q *inquiry) reads(r route) bool {
	switch r {
	case routeTradeList, routeTrade, routeCalendar, routeReconStatus, routeBreaks, routeLastSweep,
		routeTCAReport, routeTCASummary:
		return true
	}
	return false
}

// markSequence writes into the answer the sequence that it has in it, if that is known.
func (q *inquiry) markSequence() {
	if q.known {
		q.ctx.Response.Header.SetCanonical(headerAsOfBytes, appendUint(nil, q.asOf))
	}
}
