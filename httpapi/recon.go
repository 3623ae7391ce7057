package httpapi

import (
	"context"
	"errors"
	"strconv"

	"posttrade/sidecars/recon"
)

// Recon compares the journal with the projection; *recon.Recon is one.
//
// Any goroutine calls it. OrphanSweep, Repair and TakeStatement may take as long as a walk through
// the history; one sweep and one repair run at a time, and a second one is an error at once.
type Recon interface {
	Status(ctx context.Context) (recon.Status, error)
	// Before is the last input sequence before the command of a durable trade; 0: it is not known.
	Before(tradeSeq uint64) (inputSeq uint64)
	// Breaks lists the open breaks; recon.ErrKey for an AfterKey that Breaks did not return.
	Breaks(ctx context.Context, q recon.BreakQuery) (page []recon.Break, next string, err error)
	OrphanSweep(ctx context.Context) (recon.SweepResult, error)
	LastOrphanSweep(ctx context.Context) (r recon.SweepResult, found bool, err error)
	// Repair makes rows again from the journal; recon.ErrRange above the durable head.
	Repair(ctx context.Context, q recon.RepairQuery) (recon.RepairResult, error)
	TakeStatement(ctx context.Context, lines []recon.StatementLine) (recon.Statement, error)
}

// showReconStatus is GET /recon/status. Any valid token is enough: it shows counts only.
func (q *inquiry) showReconStatus() problem {
	if p := q.plain(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	s, err := q.p.Recon.Status(ctx)
	if err != nil {
		return q.p.failed(err)
	}
	b := append(q.begin(), `{"cursor":`...)
	b = appendUint(b, s.Cursor)
	b = append(b, `,"matched":`...)
	b = appendUint(b, s.Matched)
	b = append(b, `,"missingInProjection":`...)
	b = appendUint(b, s.MissingInProjection)
	b = append(b, `,"fieldMismatch":`...)
	b = appendUint(b, s.FieldMismatch)
	b = append(b, `,"orphans":`...)
	b = appendUint(b, s.Orphans)
	b = append(b, `,"lag":`...)
	b = appendUint(b, s.Lag)
	b = append(b, `,"external":`...)
	b = appendUint(b, s.External)
	b = append(b, `,"externalUnmatched":`...)
	b = appendUint(b, s.ExternalUnmatched)
	b = append(b, `,"lastSweepAt":`...)
	b = appendMoment(b, s.LastSweepMillis)
	b = append(b, `,"lastOrphanSweepAt":`...)
	return q.send(200, append(appendMoment(b, s.LastOrphanSweepMillis), '}'))
}

// appendMoment appends a time; null for 0, not yet.
func appendMoment(b []byte, millis int64) []byte {
	if millis == 0 {
		return append(b, "null"...)
	}
	return appendTime(b, millis)
}

// listBreaks is GET /recon/breaks.
//
// The cursor is the reconciliation's own key, a text, and not one of appendCursor.
func (q *inquiry) listBreaks() problem {
	if p := q.admin(); p.status != 0 {
		return p
	}
	query := recon.BreakQuery{Limit: defaultPage}
	if p := q.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "class":
			query.Class, ok = recon.ParseClass(string(value))
		case "limit":
			var limit uint64
			limit, ok = number(value, 1, maxPage)
			query.Limit = int(limit)
		case "cursor":
			query.AfterKey, ok = string(value), true
		}
		return ok
	}); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	page, next, err := q.p.Recon.Breaks(ctx, query)
	switch {
	case errors.Is(err, recon.ErrKey):
		return badParameter("cursor", "it is not one of this list")
	case err != nil:
		return q.p.failed(err)
	}
	b := append(q.begin(), `{"items":[`...)
	b = appendEach(b, page, appendBreak)
	b = append(b, `],"nextCursor":`...)
	return q.send(200, append(appendOptional(b, []byte(next)), '}'))
}

// appendBreak appends the document of an open break.
//
// statement is a member of EXTERNAL alone, null there for a booking that no line confirms.
func appendBreak(b []byte, k *recon.Break) []byte {
	b = append(b, `{"class":`...)
	b = appendString(b, string(k.Class))
	b = append(b, `,"tradeId":`...)
	b = appendString(b, k.TradeID)
	b = append(b, `,"tradeSeq":`...)
	if k.Class == recon.External {
		b = append(b, "null"...)
	} else {
		b = appendUint(b, k.TradeSeq)
	}
	b = append(b, `,"fields":`...)
	b = appendStrings(b, k.Fields)
	b = append(b, `,"journal":`...)
	b = appendSideOfBreak(b, k.Journal, k.JournalDetails)
	b = append(b, `,"projection":`...)
	b = appendSideOfBreak(b, k.Projection, k.ProjectionDetails)
	if k.Class == recon.External {
		b = append(b, `,"statement":`...)
		b = appendSideOfBreak(b, k.Statement, nil)
	}
	b = append(b, `,"firstSeenAt":`...)
	b = appendTime(b, k.FirstSeenMillis)
	b = append(b, `,"lastSeenAt":`...)
	return append(appendTime(b, k.LastSeenMillis), '}')
}

// appendSideOfBreak appends the fill, the row or the statement's line of a break, null for none.
func appendSideOfBreak(b []byte, t *recon.Trade, details *recon.Details) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	b = appendTerms(append(b, '{'), t.AccountID, t.Security, t.Side, t.Quantity, t.Price)
	b = append(b, `,"timestamp":`...)
	return appendDetails(appendTime(b, t.TimeMillis), details)
}

// appendStrings appends an array of strings.
func appendStrings(b []byte, texts []string) []byte {
	b = appendEach(append(b, '['), texts, func(b []byte, text *string) []byte {
		return appendString(b, *text)
	})
	return append(b, ']')
}

// sweepOrphans is POST /recon/orphan-sweep.
//
// It reindexes the full history first. It ends when the service stops, and keeps what it has found.
func (q *inquiry) sweepOrphans() problem {
	if p := q.admin(); p.status != 0 {
		return p
	}
	if p := q.emptyBody(); p.status != 0 {
		return p
	}
	ctx, cancel := q.p.long()
	defer cancel()
	r, err := q.p.Recon.OrphanSweep(ctx)
	if err != nil {
		return q.p.failed(err)
	}
	return q.send(200, appendSweep(q.begin(), &r))
}

// showLastSweep is GET /recon/orphan-sweep/last.
//
// The result is read from the database, so it survives a restart; a sweep under way is not in it.
func (q *inquiry) showLastSweep() problem {
	if p := q.admin(); p.status != 0 {
		return p
	}
	if p := q.noParameters(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	r, found, err := q.p.Recon.LastOrphanSweep(ctx)
	switch {
	case err != nil:
		return q.p.failed(err)
	case !found:
		return problemNoSweep
	}
	return q.send(200, appendSweep(q.begin(), &r))
}

// appendSweep appends the result of a sweep. orphanIds may be fewer than orphanCount: then
// truncated is true.
func appendSweep(b []byte, r *recon.SweepResult) []byte {
	b = append(b, `{"sweptAt":`...)
	b = appendTime(b, r.SweptMillis)
	b = append(b, `,"localTradeCount":`...)
	b = appendUint(b, r.LocalTradeCount)
	b = append(b, `,"fullHistoryTradeCount":`...)
	b = appendUint(b, r.FullHistoryTradeCount)
	b = append(b, `,"orphanCount":`...)
	b = appendUint(b, r.OrphanCount)
	b = append(b, `,"orphanIds":`...)
	b = appendStrings(b, r.OrphanIDs)
	b = append(b, `,"truncated":`...)
	return append(strconv.AppendBool(b, r.Truncated), '}')
}
