package stats

import (
	"math"
	"time"

	"posttrade/journal"
	"posttrade/matcher/session"
)

// Clock says when the figures were taken.
type Clock struct {
	Tick        uint64 // looks since the start
	WallNanos   uint64 // Unix time of the last one
	UptimeNanos uint64 // of the process, monotonic: what rates are divided by
	Stopped     uint64 // 1: the process has ended in order
}

// Path is how far the path of an order is. The sums grow by one look each, so
// that the mean over any time is a difference of sums by a difference of looks.
type Path struct {
	Looks         uint64
	Input, Output Ring
	Proposals     Ring // of a member, before its input ring; without slots on a single node
	Stages        [len(Stages)]Stage
	Events        uint64 // taken off the output ring
	Stalls        uint64 // times that the matcher found the output ring full
	Ready         uint64 // 1: orders are let in
}

// Stages are the names of statsPath.Stages, in the order of the path.
var Stages = [...]string{"matcher", "recorder", "views", "durable"}

// The places in statsPath.Stages.
const (
	StageMatcher = iota
	StageRecorder
	StageViews
	StageDurable
)

type Ring struct{ Depth, Slots, DepthSum uint64 }

// Stage is one stage: its last input sequence, and how many commands the
// stage before it is ahead.
type Stage struct{ Sequence, Behind, BehindSum uint64 }

// Commits are the journal's.
type Commits struct {
	Commits, Commands, Bytes uint64
	Nanos, MaxNanos          uint64
	InFlight                 uint64
	StorageFull, Poisoned    uint64
	Bounds                   [len(journal.CommitBuckets)]uint64     // ns
	Buckets                  [len(journal.CommitBuckets) + 1]uint64 // not cumulative; the last has no bound
}

// Answers are the order-matcher's decisions on requests, and the time of its answers.
type Answers struct {
	Accepted, Rejected, Duplicate uint64
	SumNanos                      uint64
	Latency                       Distribution
}

// Runtime is the Go runtime's.
type Runtime struct {
	Heap, HeapGoal, Mapped uint64 // bytes: objects, where the next collection begins, all that is mapped
	Allocated              uint64 // bytes since the start
	Goroutines, GCCycles   uint64
	Pauses                 Distribution
}

// Where the sidecars are whose figures a block has; without them it is all zero.
const (
	Here      = 1
	Elsewhere = 2 // at the leader: nothing else in the block counts
)

// Feeds are the control sources, in the order of control.Sources.
type Feeds struct {
	Present uint64 // statsHere, statsElsewhere; 0: there are no sidecars
	Sources [2]Feed
}

type Feed struct {
	State                    uint64 // statsFeedStates
	Watermark, HighWatermark uint64 // last version applied, last version seen
	Unpublished              uint64 // rows of the outbox
	PublishLagNanos          uint64
}

// FeedStates are the names of statsFeed.State.
var FeedStates = [...]string{"seeds only", "bootstrapping", "installed", "ready", "quarantined"}

// Lags are what follows the journal.
type Lags struct {
	Present                uint64 // statsHere, statsElsewhere; 0: there are no sidecars
	Projection, Recon, TCA uint64 // records that are durable and not taken in
	OpenBreaks             uint64
	Database, Broker       uint64 // 1: reachable
	Failed                 uint64 // loops that have ended with an error
}

// Sessions are the shared-memory sessions.
type Sessions struct {
	Present             uint64 // 0: there is no socket
	Orders, Feeds       uint64 // that are open, by kind
	Commands            uint64 // taken from sessions
	Accepted, Duplicate uint64
	Refused             uint64 // decided against, or refused by the gate
	NotTaken            uint64 // malformed, not entitled, not ready, too much in flight: answered and not decided
	TurnedAway          uint64 // clients that asked for a session and got none
	Records, Missed     uint64 // given to feeds, and those that their readers were too slow for
	Times               session.Times
	Busiest             [sessionRows]Session // that are open, by the commands answered; ID 0: no more of them
}

// sessionRows is how many sessions are shown one by one.
const sessionRows = 8

type Session struct {
	ID, Peer uint64 // Peer: process id of the client, 0 when it is not known
	Times    session.Times
}

// Cluster is this member's place among the members; all zero on a single node.
type Cluster struct {
	Members, Member uint64
	Role            uint64 // statsRoles
	Term, Leader    uint64
	Index, Applied  uint64 // of the agreed log: its end here, and what is handed to the engine
	Commit          Distribution
}

// Roles are the names of statsCluster.Role.
var Roles = [...]string{"single", "follower", "candidate", "leader"}

// Distribution counts durations in buckets, four to an octave: bucket b holds
// those up to 2^((b-statsOffset)/4) seconds that the one before it does not.
type Distribution [buckets]uint64

const (
	buckets = 160
	Offset  = 120 // the bucket that ends at one second
)

// Bound is the upper bound of a bucket.
func Bound(bucket int) time.Duration {
	return time.Duration(math.Exp2(float64(bucket-Offset)/4) * 1e9)
}

// Bucket is where a duration in seconds is counted.
func Bucket(seconds float64) int {
	if seconds <= 0 {
		return 0
	}
	at := math.Ceil(4 * math.Log2(seconds))
	return int(min(max(at+Offset, 0), buckets-1))
}

// SessionBound is the upper bound of a bucket of session.Times, sessionMiddle its middle.
func SessionBound(bucket int) time.Duration {
	if bucket == session.TimeBuckets-1 {
		return Unbounded
	}
	return time.Duration(1) << bucket
}

func SessionMiddle(bucket int) time.Duration { return time.Duration(3) << bucket >> 2 }

// None is a duration of which nothing is known; unbounded one beyond the last bound.
const (
	None      = time.Duration(-1)
	Unbounded = time.Duration(math.MaxInt64)
)
