package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"posttrade/journal/evidence"
	"posttrade/matcher"
)

// Evidence is the transparency log of the journal; *evidence.Service is one.
//
// Any goroutine calls it. The files are described in docs/evidence.md.
type Evidence interface {
	// Checkpoint is the newest published head, nil for none.
	Checkpoint() []byte
	// Tile reads the tile of a path below /log/; full is false for a partial one. Neither changes.
	Tile(path string) (data []byte, full bool, err error)
	// MemberTree is what this member says of its first leaves, at most size of them; 0: of all.
	MemberTree(size uint64) (evidence.MemberTree, error)
	// Find returns where a record is and which account it is of.
	Find(ctx context.Context, w evidence.Wanted) (evidence.Place, error)
	// Proof waits until a published head covers the record, and proves it.
	Proof(ctx context.Context, at evidence.Place) ([]byte, error)
}

// The headers of the log's files.
const (
	// A tile's content follows from its path, so any cache may keep it for ever; the newest head is
	// asked for again each time.
	cacheForever = "public, max-age=31536000, immutable"
	cacheNever   = "no-cache"
)

// proofPatience is how long a request waits for a head that covers its record, and for its replay.
//
// It is below the write time-out.
const proofPatience = 25 * time.Second

var (
	problemRecord = problem{status: 404, code: CodeNotFound, detail: "no such record"}
	problemTile   = problem{status: 404, code: CodeNotFound, detail: "no such tile"}
	// What is asked for is still to come: a later request may find it.
	problemNoHead = problem{status: 503, code: CodeNotYet,
		detail: "no published head of the log covers this yet", notSequenced: true}
	problemProofs = problem{status: 503, code: CodeBusy,
		detail: "as many proofs as may be are being made", notSequenced: true}
)

// showCheckpoint is GET /log/checkpoint. It needs no token: the note holds hashes only.
//
// The answer is marked with the head of the note, which X-Min-Sequence waits for.
func (x *exchange) showCheckpoint() problem {
	if x.m.Evidence == nil {
		return problemRoute
	}
	if p := x.noParameters(); p.status != 0 {
		return p
	}
	note := x.m.Evidence.Checkpoint()
	if note == nil {
		return problemNoHead
	}
	if p := x.awaitShown(func() uint64 {
		note = x.m.Evidence.Checkpoint()
		head, _ := evidence.ParseNote(note) // the log's own: it can be read
		return head.Head
	}); p.status != 0 {
		return p
	}
	return x.sendFile(note, contentTextUTF8, cacheNever)
}

// showTile is GET /log/tile/... of C2SP tlog-tiles.
//
// All tiles are immutable, also the partial ones: the width is part of the path, so the content too
// follows from the path. A partial tile may be gone when the full one is there. rest has passed
// plainPath, so it cannot leave the folder; Tile refuses what is no path of a tile.
func (x *exchange) showTile(rest []byte) problem {
	if x.m.Evidence == nil {
		return problemRoute
	}
	if p := x.noParameters(); p.status != 0 {
		return p
	}
	data, _, err := x.m.Evidence.Tile("tile/" + string(rest))
	switch {
	case errors.Is(err, evidence.ErrNoTile):
		return problemTile
	case err != nil:
		return x.m.failed(err)
	}
	return x.sendFile(data, contentBytes, cacheForever)
}

// showMember is GET /log/member, with which the members of a cluster compare their trees. It needs
// no token: hashes only.
func (x *exchange) showMember() problem {
	if x.m.Evidence == nil {
		return problemRoute
	}
	size := uint64(0)
	if p := x.eachParameter(func(name string, value []byte) (ok bool) {
		if name == "size" {
			size, ok = number(value, 0, 1<<62)
		}
		return ok
	}); p.status != 0 {
		return p
	}
	said, err := x.m.Evidence.MemberTree(size)
	if err != nil {
		return x.noProof(err)
	}
	text, err := json.Marshal(said)
	if err != nil {
		return x.m.failed(err)
	}
	return x.send(200, append(x.begin(), text...))
}

// sendFile answers with a file's bytes as they are. The response keeps data.
func (x *exchange) sendFile(data []byte, kind, cache string) problem {
	x.ctx.Response.SetBody(data)
	x.ctx.Response.SetStatusCode(200)
	x.ctx.Response.Header.SetContentType(kind)
	x.ctx.Response.Header.Set("Cache-Control", cache)
	return problem{}
}

// showProof is GET /evidence/proof, for a caller that may see the account of the record. A record
// of no account is an operator's or a feed's, and for admins; that of an act on record is so in
// every configuration, as in /audit.
//
// The account of a record is known only after it was found, so 404 comes before 403. Find and Proof
// together have proofPatience.
func (x *exchange) showProof() problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if x.m.Evidence == nil {
		return problemRoute
	}
	wanted, p := x.wantedRecord()
	if p.status != 0 {
		return p
	}
	ctx, cancel := context.WithTimeout(x.m.lasting, proofPatience)
	defer cancel()
	at, err := x.m.Evidence.Find(ctx, wanted)
	if err != nil {
		return x.noProof(err)
	}
	switch {
	case at.Act:
		if p := x.admin(); p.status != 0 {
			return p
		}
	case x.m.Enforced && !x.claims.Admin && (!at.Owned || !x.entitled(at.AccountID)):
		return problemEntitled
	}
	text, err := x.m.Evidence.Proof(ctx, at)
	if err != nil {
		return x.noProof(err)
	}
	return x.send(200, append(x.begin(), text...))
}

// noProof is the problem of an error of the log. A time-out counts as a head that is still to come.
func (x *exchange) noProof(err error) problem {
	switch {
	case errors.Is(err, evidence.ErrUnknown):
		return problemRecord
	case errors.Is(err, evidence.ErrNotYet), errors.Is(err, context.DeadlineExceeded):
		return problemNoHead
	case errors.Is(err, evidence.ErrBusy):
		return problemProofs
	}
	return x.m.failed(err)
}

// wantedRecord reads the one parameter of a proof. Two or none are 400.
func (x *exchange) wantedRecord() (w evidence.Wanted, p problem) {
	given := 0
	p = x.eachParameter(func(name string, value []byte) (ok bool) {
		given++
		switch name {
		case "inputSeq":
			w.InputSeq, ok = number(value, 1, 1<<63-1)
		case "tradeId":
			w.TradeSeq, ok = matcher.ParseTradeID(value)
		case "orderId":
			w.Order, ok = matcher.ParseOrderID(value)
		case "contractId":
			w.Contract, ok = string(value), len(value) <= maxID
		}
		return ok
	})
	if p.status == 0 && given != 1 {
		p = badQuery("one of inputSeq, tradeId, orderId and contractId is needed")
	}
	return w, p
}
