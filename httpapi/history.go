package httpapi

import (
	"context"

	"posttrade/blotter"
	"posttrade/matcher"
)

// History is the on-demand index of every fill; *blotter.History pages, and the installation gives
// its Reindex the journal.
type History interface {
	// Reindex goes through the whole journal.
	Reindex(ctx context.Context) (blotter.HistoryInfo, error)
	// LastSequence is the command up to which every fill is in the index; false: there is none.
	LastSequence() (inputSeq uint64, ok bool)
	// Page appends fills with a trade sequence above sinceSeq; ok is false when
	// there is no index.
	Page(sinceSeq uint64, limit int, dst []matcher.Fill) (items []matcher.Fill, next uint64, ok bool)
}

// reindex is POST /recon/full-history/reindex.
//
// It takes as long as a walk through the whole journal, and ends when the service stops. A second
// one at the same time is 409. It is no act on record: the index is derived.
func (x *exchange) reindex() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	if x.m.History == nil {
		return problemRoute
	}
	if p := x.emptyBody(); p.status != 0 {
		return p
	}
	ctx, cancel := x.m.long()
	defer cancel()
	info, err := x.m.History.Reindex(ctx)
	if err != nil {
		return x.m.failed(err)
	}
	b := append(x.begin(), `{"indexedTrades":`...)
	b = appendUint(b, info.IndexedTrades)
	b = append(b, `,"lastSequence":`...)
	b = appendUint(b, info.LastSequence)
	b = append(b, `,"lastTradeSeq":`...)
	b = appendUint(b, info.LastTradeSeq)
	b = append(b, `,"durationMillis":`...)
	return x.send(200, append(appendInt(b, info.DurationMillis), '}'))
}

// showHistory is GET /recon/full-history/trades. The index holds durable fills only, up to where
// its reindex began: that is what the answer is marked with, and what X-Min-Sequence waits for.
//
// Without an index the answer is 503 NOT_INDEXED.
func (x *exchange) showHistory() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	if x.m.History == nil {
		return problemRoute
	}
	since, limit, p := x.fillPage(nil)
	if p.status != 0 {
		return p
	}
	if _, ok := x.m.History.LastSequence(); !ok {
		return problemNotIndexed
	}
	if p := x.awaitShown(func() uint64 {
		inputSeq, _ := x.m.History.LastSequence()
		return inputSeq
	}); p.status != 0 {
		return p
	}
	fills, next, ok := x.m.History.Page(since, limit, x.fills[:0])
	x.fills = fills
	if !ok {
		return problemNotIndexed
	}
	b := x.appendEntries(x.begin(), fills, next)
	return x.send(200, append(b, '}'))
}
