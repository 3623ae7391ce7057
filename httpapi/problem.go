package httpapi

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"posttrade/matcher"
)

// Code is the stable, upper snake case name of an error. Every problem document carries one. Client
// programs depend on it: a name never changes. docs/http.md says what a client does with each.
type Code string

// The codes.
const (
	CodeBadRequest    Code = "BAD_REQUEST"    // framing, path, query
	CodeMalformedBody Code = "MALFORMED_BODY" // the body cannot be read or represented
	// CodeUnauthorized: token missing, malformed, badly signed, expired
	CodeUnauthorized     Code = "UNAUTHORIZED"
	CodeNotEntitled      Code = "NOT_ENTITLED"   // token valid, not for this account
	CodeAdminRequired    Code = "ADMIN_REQUIRED" // token valid, not admin
	CodeForeignOrigin    Code = "FOREIGN_ORIGIN" // a web page of another origin, without a token
	CodeNotFound         Code = "NOT_FOUND"      // no such route
	CodeTradeNotFound    Code = "TRADE_NOT_FOUND"
	CodeSweepNotFound    Code = "SWEEP_NOT_FOUND" // no orphan sweep was made yet
	CodeOrderNotFound    Code = "ORDER_NOT_FOUND"
	CodeContractNotFound Code = "CONTRACT_NOT_FOUND"
	CodeAccountNotFound  Code = "ACCOUNT_NOT_FOUND"
	CodeSecurityNotFound Code = "SECURITY_NOT_FOUND"
	CodeMethodNotAllowed Code = "METHOD_NOT_ALLOWED"
	CodeRequestTimeout   Code = "REQUEST_TIMEOUT" // the request did not arrive in time
	CodeOrderTerminal    Code = "ORDER_TERMINAL"  // the order can no longer change
	CodeTermsDiffer      Code = "TERMS_DIFFER"    // the clientOrderId is known with different terms
	CodeStaleVersion     Code = "STALE_VERSION"   // the version of a control is not above the last one
	// CodeMarksDiffer: different closing marks are published under this version
	CodeMarksDiffer Code = "MARKS_DIFFER"
	// CodeCapacity: the engine has no room for the record: nothing was written
	CodeCapacity             Code = "CAPACITY"
	CodeBodyTooLarge         Code = "BODY_TOO_LARGE"
	CodeURITooLong           Code = "URI_TOO_LONG"
	CodeUnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	CodeRiskRefused          Code = "RISK_REFUSED" // see reason
	CodeTooManyRequests      Code = "TOO_MANY_REQUESTS"
	CodeHeaderTooLarge       Code = "HEADER_TOO_LARGE"
	CodeInternal             Code = "INTERNAL_ERROR"
	CodeNotReady             Code = "NOT_READY"  // control state stale: not sequenced
	CodeOverloaded           Code = "OVERLOADED" // the input ring is full: not sequenced
	// CodeBusy: too many requests of a bounded kind: not sequenced
	CodeBusy Code = "BUSY"
	// CodeNotYet: what is asked for is still to come
	CodeNotYet      Code = "NOT_YET"
	CodeStorageFull Code = "STORAGE_FULL" // not sequenced
	// CodeArchiveNeeded: the history that is asked for was moved into an archive that is not here
	CodeArchiveNeeded Code = "ARCHIVE_NEEDED"
	CodeHistoryAhead  Code = "HISTORY_AHEAD" // not sequenced
	// CodeJournalFailed: with "sequenced":false safe to repeat, else unknown
	CodeJournalFailed  Code = "JOURNAL_FAILED"
	CodeOutcomeUnknown Code = "OUTCOME_UNKNOWN" // repeat with the same clientOrderId
	CodeSlowDisk       Code = "SLOW_DISK"       // a read would show something that is not durable yet
)

// The codes of the parts that follow the journal.
const (
	CodeDatabaseUnavailable Code = "DATABASE_UNAVAILABLE" // SQL cannot be reached
	// CodeDatabaseLocked: another session of the database holds a lock; the detail says which
	CodeDatabaseLocked Code = "DATABASE_LOCKED"
	// CodeForeignDatabase: the database holds the rows of another history than the journal's
	CodeForeignDatabase Code = "FOREIGN_DATABASE"
	CodeNotCaughtUp     Code = "NOT_CAUGHT_UP"   // the price history has not reached the trade
	CodeNotIndexed      Code = "NOT_INDEXED"     // no full-history index was made yet
	CodeSweepRunning    Code = "SWEEP_RUNNING"   // an orphan sweep is under way
	CodeRepairRunning   Code = "REPAIR_RUNNING"  // a repair of rows is under way
	CodeReindexRunning  Code = "REINDEX_RUNNING" // a full-history reindex is under way
	CodeStopping        Code = "STOPPING"        // the service is being stopped
)

// The codes of a cluster, both of a 503 with "sequenced":false.
const (
	CodeNotLeader Code = "NOT_LEADER" // the member that was asked does not lead
	// CodeNoLeader: the leader is unknown, unreachable or not confirmed; see the member leader
	CodeNoLeader Code = "NO_LEADER"
)

// problemType is the URI prefix of a problem document's type.
const problemType = "urn:posttrade:problem:"

const (
	contentProblem = "application/problem+json"
	contentJSON    = "application/json"
	contentNDJSON  = "application/x-ndjson"
	contentText    = "text/plain"
	contentBytes   = "application/octet-stream"

	contentTextUTF8 = contentText + "; charset=utf-8"
)

// problem is an answer that is not a success.
//
// It is a value: handlers return one, and a status of 0 means that the answer is made. So a handler
// writes an answer in one place, and a check that fails cannot forget to return. A copy may be
// changed before it is returned; the package variables never are.
type problem struct {
	status int
	code   Code
	// detail is for people, and may hold what the client sent only in quoted form (see quoted), or as
	// plain ASCII that was checked before. Tokens and secrets are never in it.
	detail string
	field  string             // the member, parameter or header that is wrong; "": none is
	reason matcher.RiskReason // 0: none

	allow methods // in a 405: the methods of the endpoint

	// notSequenced adds "sequenced":false: the request may be sent again.
	notSequenced bool
	sequence     uint64 // of a 4xx: where the request was sequenced; 0: it was not
}

// under is p with the sequence of the request, if p says what became of it.
func (p problem) under(inputSeq uint64) problem {
	if p.status/100 == 4 {
		p.sequence = inputSeq
	}
	return p
}

// append renders the document without its closing brace, so that a caller can add members; close it
// with '}'.
//
// The type is problemType and the code in small letters with dashes. The order of the members is
// fixed: RFC 9457's first, then code and those that apply.
func (p problem) append(b []byte) []byte {
	b = append(b, `{"type":"`+problemType...)
	for i := 0; i < len(p.code); i++ {
		ch := p.code[i]
		switch {
		case ch == '_':
			ch = '-'
		case ch >= 'A' && ch <= 'Z':
			ch |= 0x20
		}
		b = append(b, ch)
	}
	b = append(b, `","title":"`...)
	b = append(b, fasthttp.StatusMessage(p.status)...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"detail":`...)
	b = appendString(b, p.detail)
	b = append(b, `,"code":"`...)
	b = append(b, p.code...)
	b = append(b, '"')
	if p.field != "" {
		b = append(b, `,"field":`...)
		b = appendString(b, p.field)
	}
	if p.reason != matcher.Accepted {
		b = append(b, `,"reason":"`...)
		b = append(b, p.reason.String()...)
		b = append(b, '"')
	}
	if p.notSequenced {
		b = append(b, `,"sequenced":false`...)
	}
	if p.sequence != 0 {
		b = append(b, `,"sequence":`...)
		b = appendUint(b, p.sequence)
	}
	return b
}

// write makes p the answer of ctx.
//
// It drops what a handler has put into the response until then, headers too. A 401 says which
// scheme to use, a 405 which methods, and 429 and 503 ask for a second of patience.
func (p problem) write(ctx *fasthttp.RequestCtx) {
	ctx.Response.Reset()
	ctx.Response.SetStatusCode(p.status)
	ctx.Response.Header.SetContentType(contentProblem)
	switch p.status {
	case fasthttp.StatusUnauthorized:
		ctx.Response.Header.SetCanonical(headerAuthenticate, valueBearer)
	case fasthttp.StatusMethodNotAllowed:
		ctx.Response.Header.SetCanonical(headerAllow, []byte(allowValues[p.allow]))
	case fasthttp.StatusServiceUnavailable, fasthttp.StatusTooManyRequests:
		ctx.Response.Header.SetCanonical(headerRetryAfter, valueOne)
	}
	ctx.Response.SetBody(append(p.append(nil), '}'))
}

var (
	// The names are in canonical form: SetCanonical does not normalise them. All goroutines share the
	// slices, so they must not change.
	headerAuthenticate = []byte("Www-Authenticate")
	headerRetryAfter   = []byte("Retry-After")
	headerDurability   = []byte("X-Durability")
	headerAllow        = []byte("Allow")
	headerMemberBytes  = []byte(headerMember)
	valueBearer        = []byte("Bearer")
	valueOne           = []byte("1")
)
