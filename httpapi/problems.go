package httpapi

import "posttrade/matcher"

// The problems that carry no detail of the request. They are constant, like every problem in a
// package variable. Those with notSequenced promise that the command has no sequence and never will
// have one: the client may send the request again. One without it on a 5xx leaves the outcome of a
// write open.
var (
	// The requests that readError answers: no handler has seen them, and the connection is closed
	// behind the answer. problemTimeout is one of them, and so are the sizes of head and body.
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
	// A body of another type is refused before it is decoded.
	problemMedia = problem{status: 415, code: CodeUnsupportedMediaType,
		detail: "the body must be application/json"}
	// Beside unknown paths it is the answer of an endpoint whose part this process does not run: the
	// endpoint does not exist here.
	problemRoute  = problem{status: 404, code: CodeNotFound, detail: "no such endpoint"}
	problemMethod = problem{status: 405, code: CodeMethodNotAllowed,
		detail: "the endpoint does not know this method"}
	// A handler panicked, or a dependency returned an error that has no problem of its own (see
	// service.failed). The cause is in the log alone.
	problemCrash = problem{status: 500, code: CodeInternal,
		detail: "internal error; the outcome is unknown"}
	problemDamaged = problem{status: 500, code: CodeInternal,
		detail: "a part of the journal that the answer needs cannot be read; the log names it, and so " +
			"does journal-scrub of /readyz when a scrub has passed"}

	// No place: too many requests at this service, no ticket at the desk, no turn among the acts, or
	// no slot towards the leader. Nothing has begun.
	problemInflight = problem{status: 429, code: CodeTooManyRequests,
		detail: "too many requests in flight", notSequenced: true}
	// BodyMemory has no room for the body that the head announces.
	problemBusy = problem{status: 503, code: CodeBusy,
		detail: "request bodies use all of http.max-body-memory, or those without a valid token a " +
			"half of it", notSequenced: true}
	// One answer for every reason why a token is no good: a caller must not learn which check it
	// failed.
	problemToken = problem{status: 401, code: CodeUnauthorized,
		detail: "a valid bearer token is required"}
	problemMetricsToken = problem{status: 403, code: CodeNotEntitled,
		detail: "the token is for metrics alone: it opens /metrics and /readyz of the admin listener"}
	problemAdmin = problem{status: 403, code: CodeAdminRequired,
		detail: "the token does not carry the admin claim"}
	problemOrigin = problem{status: 403, code: CodeForeignOrigin,
		detail: "a web page of another origin sends this, without a token", notSequenced: true}
	// The order of checks tells a caller without the account whether the object exists: 404 comes
	// before 403.
	problemEntitled = problem{status: 403, code: CodeNotEntitled, reason: matcher.NotEntitled,
		detail: "the token does not cover this account"}
	// Never made, or ended so long ago that the views do not keep it.
	problemOrder = problem{status: 404, code: CodeOrderNotFound, detail: "no such order"}
	// It is given when the end of the order is durable: see terminal.
	problemDone = problem{status: 409, code: CodeOrderTerminal,
		detail: "the order is filled, cancelled or rejected and can no longer change"}
	// A batch shows its code and status in the item, see appendConflict.
	problemTerms = problem{status: 409, code: CodeTermsDiffer,
		detail: "this clientOrderId was used before with other terms"}
	// The verdicts of the admission room that are not about the request, see verdictProblem.
	// problemRing is the desk's: the ring had no room for all commands of the ticket.
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
	// The command was handed in before the journal failed. A start decides what became of it.
	problemJournalUnknown = problem{status: 503, code: CodeJournalFailed,
		detail: "the journal failed before it confirmed this request: the outcome is unknown"}
	// The command may still be decided: its ticket was given up, not taken back.
	problemUnknown = problem{status: 504, code: CodeOutcomeUnknown,
		detail: "no durable decision in time: the outcome is unknown, repeat with the same clientOrderId"}
	// Of a write whose answer waits for what it shows, such as the first decision on its key.
	problemReadUnknown = problem{status: 504, code: CodeOutcomeUnknown,
		detail: "what was read did not become durable in time"}

	// Of a read: it changes nothing, so it waits a shorter time, and there is no outcome to be
	// unknown.
	problemSlowDisk = problem{status: 503, code: CodeSlowDisk,
		detail: "the disk is slow: what would be shown did not become durable in time; see /readyz"}

	problemMaster = problem{status: 401, code: CodeUnauthorized,
		detail: "the header X-Auth-Master-Secret is missing or wrong"}
	problemTrade = problem{status: 404, code: CodeTradeNotFound, detail: "no such trade"}
	// Bookings from outside are not in the journal, which has the prices.
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
	// The trade-processor's and the sources' dependencies; see failed.
	problemDatabase = problem{status: 503, code: CodeDatabaseUnavailable,
		detail: "the database cannot be reached", notSequenced: true}
	problemNotRestored = problem{status: 503, code: CodeDatabaseUnavailable,
		detail: "the rows of the backup are not back in the database; when they cannot be, the part " +
			"\"restored\" or \"history check\" of /readyz says why",
		notSequenced: true}
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
	// A write that runs into its time-out may have been committed.
	problemLate = problem{status: 504, code: CodeOutcomeUnknown,
		detail: "no answer in time: the outcome is unknown; the request may be repeated"}

	problemContract = problem{status: 404, code: CodeContractNotFound, detail: "no such contract"}
	// Marks are published once under a version: other marks need another version.
	problemMarks = problem{status: 409, code: CodeMarksDiffer,
		detail: "other closing marks are published under this date and version; they stay"}
	problemSessionDate = problem{status: 400, code: CodeBadRequest, field: "sessionDate",
		detail: "a session date is yyyy-MM-dd, of 1970-01-01 to 2149-06-06"}
	problemPriceVersion = problem{status: 400, code: CodeBadRequest, field: "version",
		detail: "the path ends with v and a version of 1 to 4294967295"}

	problemAccount   = problem{status: 404, code: CodeAccountNotFound, detail: "no such account"}
	problemAccountID = problem{status: 400, code: CodeBadRequest, field: "accountId",
		detail: "an account id is a whole number of 1 to 4294967295 without leading zeros"}
)
