package httpapi

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"posttrade/matcher"
)

// Code is the stable, upper snake case name of an error. Every problem document carries one. Client
// programs depend on it: a name never changes.
type Code string

// The codes.
const (
	CodeBadRequest    Code = "BAD_REQUEST"    // framing, path, query
	CodeMalformedBody Code = "MALFORMED_BODY" // the body cannot be read or represented
	// CodeUnauthorized: token missing, malformed, badly signed, expired
	CodeUnauthorized     Code = "UNAUTHORIZED"
	CodeNotEntitled      Code = "NOT_ENTITLED"   // token valid, not for this account
	CodeAdminRequired    Code = "ADMIN_REQUIRED" // token valid, not admin
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
type problem struct {
	status int
	code   Code
	detail string
	field  string             // the member, parameter or header that is wrong; "": none is
	reason matcher.RiskReason // 0: none

	allow methods // in a 405: the methods of the endpoint

	// notSequenced adds "sequenced":false: the request may be sent again.
	notSequenced bool
}

// append renders the document without its closing brace, so that a caller can
// add members; close it with '}'.
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
	return b
}

// write makes p the answer of ctx.
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
	headerAuthenticate = []byte("Www-Authenticate")
	headerRetryAfter   = []byte("Retry-After")
	headerDurability   = []byte("X-Durability")
	headerAllow        = []byte("Allow")
	headerMemberBytes  = []byte(headerMember)
	valueBearer        = []byte("Bearer")
	valueOne           = []byte("1")
)

// The problems that carry no detail of the request.
var (
	problemFraming = problem{status: 400, code: CodeBadRequest,
		detail: "the request's framing is malformed or ambiguous"}
	problemPath = problem{status: 400, code: CodeBadRequest,
		detail: "paths are plain: no percent-encoding, no empty or dot segments, ids of 1 to 64 of A-Z " +
			"a-z 0-9 . _ -"}
	problemURI = problem{status: 414, code: CodeURITooLong,
		detail: "the URI is longer than 4096 bytes"}
	problemHeader = problem{status: 431, code: CodeHeaderTooLarge,
		detail: "the header block is larger than 8192 bytes"}
	problemBody = problem{status: 413, code: CodeBodyTooLarge,
		detail: "the body is larger than this endpoint accepts"}
	problemTimeout = problem{status: 408, code: CodeRequestTimeout,
		detail: "the request did not arrive in time"}
	problemMedia = problem{status: 415, code: CodeUnsupportedMediaType,
		detail: "the body must be application/json"}
	problemRoute  = problem{status: 404, code: CodeNotFound, detail: "no such endpoint"}
	problemMethod = problem{status: 405, code: CodeMethodNotAllowed,
		detail: "the endpoint does not know this method"}
	problemCrash = problem{status: 500, code: CodeInternal,
		detail: "internal error; the outcome is unknown"}

	problemInflight = problem{status: 429, code: CodeTooManyRequests,
		detail: "too many requests in flight", notSequenced: true}
	problemBusy = problem{status: 503, code: CodeBusy,
		detail: "request bodies use all of http.max-body-memory", notSequenced: true}
	problemToken = problem{status: 401, code: CodeUnauthorized,
		detail: "a valid bearer token is required"}
	problemMetricsToken = problem{status: 403, code: CodeNotEntitled,
		detail: "the token is for metrics alone: it opens /metrics and /readyz of the admin listener"}
	problemAdmin = problem{status: 403, code: CodeAdminRequired,
		detail: "the token does not carry the admin claim"}
	problemEntitled = problem{status: 403, code: CodeNotEntitled, reason: matcher.NotEntitled,
		detail: "the token does not cover this account"}
	problemOrder = problem{status: 404, code: CodeOrderNotFound, detail: "no such order"}
	problemDone  = problem{status: 409, code: CodeOrderTerminal,
		detail: "the order is filled, cancelled or rejected and can no longer change"}
	problemTerms = problem{status: 409, code: CodeTermsDiffer,
		detail: "this clientOrderId was used before with other terms"}
	problemReady = problem{status: 503, code: CodeNotReady, reason: matcher.ControlStateStale,
		detail: "the control state is not current", notSequenced: true}
	problemRing = problem{status: 503, code: CodeOverloaded,
		detail: "the input ring is full", notSequenced: true}
	problemStorage = problem{status: 503, code: CodeStorageFull,
		detail: "the journal's reserve is used up", notSequenced: true}
	problemHistory = problem{status: 503, code: CodeHistoryAhead,
		detail:       "the database knows more of the history than the journal: nothing is admitted",
		notSequenced: true}
	problemJournal = problem{status: 503, code: CodeJournalFailed,
		detail: "the journal has failed", notSequenced: true}
	problemJournalUnknown = problem{status: 503, code: CodeJournalFailed,
		detail: "the journal failed before it confirmed this request: the outcome is unknown"}
	problemUnknown = problem{status: 504, code: CodeOutcomeUnknown,
		detail: "no durable decision in time: the outcome is unknown, repeat with the same clientOrderId"}
	problemReadUnknown = problem{status: 504, code: CodeOutcomeUnknown,
		detail: "what was read did not become durable in time"}

	problemSlowDisk = problem{status: 503, code: CodeSlowDisk,
		detail: "the disk is slow: what would be shown did not become durable in time; see /readyz"}

	problemMaster = problem{status: 401, code: CodeUnauthorized,
		detail: "the header X-Auth-Master-Secret is missing or wrong"}
	problemTrade   = problem{status: 404, code: CodeTradeNotFound, detail: "no such trade"}
	problemNoCosts = problem{status: 404, code: CodeTradeNotFound,
		detail: "a booking from outside: the journal has no price history for it"}
	problemNoSweep = problem{status: 404, code: CodeSweepNotFound,
		detail: "no orphan sweep was made yet"}
	problemSweeping = problem{status: 409, code: CodeSweepRunning,
		detail: "an orphan sweep is under way"}
	problemRepairing = problem{status: 409, code: CodeRepairRunning,
		detail: "a repair is under way"}
	problemIndexing = problem{status: 409, code: CodeReindexRunning,
		detail: "a reindex of the full history is under way"}
	problemReports = problem{status: 429, code: CodeTooManyRequests,
		detail: "as many reports as may be are being made", notSequenced: true}
	problemDatabase = problem{status: 503, code: CodeDatabaseUnavailable,
		detail: "the database cannot be reached", notSequenced: true}
	problemLocked = problem{status: 503, code: CodeDatabaseLocked,
		detail:       "another session of the database holds a lock that this request waited for",
		notSequenced: true}
	problemForeign = problem{status: 503, code: CodeForeignDatabase,
		detail: "the database belongs to another history than this server's journal, or knows " +
			"more of it",
		notSequenced: true}
	problemBehind = problem{status: 503, code: CodeNotCaughtUp,
		detail: "the price history has not caught up with this trade", notSequenced: true}
	problemNotIndexed = problem{status: 503, code: CodeNotIndexed,
		detail: "the full history was not indexed yet", notSequenced: true}
	problemStopping = problem{status: 503, code: CodeStopping,
		detail: "the service is being stopped", notSequenced: true}
	problemLate = problem{status: 504, code: CodeOutcomeUnknown,
		detail: "no answer in time: the outcome is unknown; the request may be repeated"}

	problemContract = problem{status: 404, code: CodeContractNotFound, detail: "no such contract"}
	problemMarks    = problem{status: 409, code: CodeMarksDiffer,
		detail: "other closing marks are published under this date and version; they stay"}
	problemMarksPath = problem{status: 400, code: CodeBadRequest, field: "sessionDate",
		detail: "the path is a date, yyyy-MM-dd, of 1970-01-01 to 2149-06-06 and v with a version of 1 " +
			"to 4294967295"}

	problemAccount   = problem{status: 404, code: CodeAccountNotFound, detail: "no such account"}
	problemAccountID = problem{status: 400, code: CodeBadRequest, field: "accountId",
		detail: "an account id is a whole number of 1 to 4294967295 without leading zeros"}
)
