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
// Only a caller that may read at all can make it wait. Errors: those of reader; problemWaits;
// problemNotYet after sequencePatience, problemJournal when the journal has failed. The noted
// sequence is what markSequence later writes: what the read shows may be newer, never older.
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
	if x.m.Durable.Durable() < wanted {
		if p := x.awaitDurable(wanted); p.status != 0 {
			return p
		}
	}
	x.asOf = x.m.Durable.Durable()
	return problem{}
}

// awaitDurable waits until the sequence that a read asks for is durable.
func (x *exchange) awaitDurable(wanted uint64) problem {
	end, p := x.m.waits.begin(x.identified())
	if p.status != 0 {
		return p
	}
	defer end()
	switch {
	case x.m.Durable.WaitDurable(wanted, sequencePatience) == nil:
		return problem{}
	case x.m.Failed() != nil:
		return problemJournal
	}
	return problemNotYet
}

// awaitShown waits, behind await, until what an endpoint shows has the sequence that the request
// asks for, where that is less than the views have. It notes what is shown before the read begins.
//
// What is shown sends no signal. Errors: problemWaits and those of lookAgain.
func (x *exchange) awaitShown(shown func() uint64) problem {
	wanted, p := minSequence(x.ctx)
	if p.status != 0 {
		return p
	}
	if x.asOf, x.marked = shown(), true; x.asOf >= wanted {
		return problem{}
	}
	end, p := x.m.waits.begin(x.identified())
	if p.status != 0 {
		return p
	}
	defer end()
	for x.asOf < wanted {
		if p := x.m.lookAgain(x.late); p.status != 0 {
			return p
		}
		x.asOf = shown()
	}
	return problem{}
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
// A look at rows costs a load from memory, or one small query for all reads that wait.
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
	at := q.p.rowsHave(r)
	q.asOf, q.known = at.asOf, at.known
	if at.p.status != 0 || at.asOf >= wanted {
		return at.p
	}
	end, p := q.p.waits.begin(true)
	if p.status != 0 {
		return p
	}
	defer end()
	for late := time.Now().Add(sequencePatience); q.asOf < wanted; {
		if at, p = q.p.rowsHaveNext(r, late); p.status != 0 {
			return p
		}
		q.asOf, q.known = at.asOf, at.known
		if at.p.status != 0 {
			return at.p
		}
	}
	return problem{}
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

// rowsAt is the sequence that the rows of an endpoint have in them, if it is known, or the problem
// of reading it.
type rowsAt struct {
	asOf  uint64
	known bool
	p     problem
}

// rowsHave is what the rows of an endpoint have in them. Those of the reconciliation have what is
// projected when every projected trade has been compared, else what is before the first that has
// not; costs need the price history too.
//
// Each case says what the endpoint's own rows have: rows are written by different loops, each with
// a cursor of its own.
func (p *TradeProcessor) rowsHave(r route) rowsAt {
	if p.Projected == nil {
		return rowsAt{}
	}
	switch r {
	case routeReconStatus, routeBreaks, routeLastSweep:
		return p.compared()
	case routeTCAReport, routeTCASummary:
		return rowsAt{asOf: min(p.Projected(), p.TCA.Applied()), known: true}
	}
	return rowsAt{asOf: p.Projected(), known: true}
}

// rowsHaveNext is rowsHave after a pause. Reads that wait for the reconciliation share its queries.
//
// Problems are those of lookAgain; that of the rows is in the rowsAt.
func (p *TradeProcessor) rowsHaveNext(r route, late time.Time) (rowsAt, problem) {
	switch r {
	case routeReconStatus, routeBreaks, routeLastSweep:
		return p.comparisons.next(&p.service, late, p.compared)
	}
	if late := p.lookAgain(late); late.status != 0 {
		return rowsAt{}, late
	}
	return p.rowsHave(r), problem{}
}

// compared is the sequence up to which every projected trade has been compared, if it is known.
//
// It reads the status of the reconciliation from the database.
func (p *TradeProcessor) compared() rowsAt {
	if p.Projected == nil || p.ProjectedTrades == nil {
		return rowsAt{}
	}
	asOf := p.Projected() // before the trades: these may be newer, not older
	trades := p.ProjectedTrades()
	ctx, cancel := quick()
	defer cancel()
	s, err := p.Recon.Status(ctx)
	switch {
	case err != nil:
		return rowsAt{p: p.failed(err)}
	case s.Cursor < trades:
		asOf = p.Recon.Before(s.Cursor + 1)
		return rowsAt{asOf: asOf, known: asOf != 0} // 0: the journal cannot tell
	}
	return rowsAt{asOf: asOf, known: true}
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
