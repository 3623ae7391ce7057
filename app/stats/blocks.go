package stats

import (
	"math"
	"time"

	"posttrade/journal"
	"posttrade/matcher/session"
	"posttrade/ring/timing"
)

// Clock says when the figures were taken.
//
// A reader that sees Tick stand still for some time looks at a writer that hangs.
type Clock struct {
	Tick        uint64 // looks since the start
	WallNanos   uint64 // Unix time of the last one
	UptimeNanos uint64 // of the process, monotonic: what rates are divided by
	Stopped     uint64 // 1: the process has ended in an orderly way
}

// Path is how far the path of an order is. Each look adds to the sums, so that the mean over any
// time is a difference of sums divided by a difference of looks.
//
// Sequences, counts and sums only rise while the process runs; depths and behinds are those of the
// last look.
type Path struct {
	Looks         uint64
	Input, Output Ring
	// Of a member, before its input ring; Slots is 0 on a single node.
	Proposals Ring
	Stages    [len(Stages)]Stage
	Events    uint64 // that the recorder has taken off the output ring
	Stalls    uint64 // times that the matcher found the output ring full
	Ready     uint64 // 1: the gate admits orders
	Killed    uint64 // 1: the kill switch is on
}

// Stages are the names of Path.Stages, in the order of the path.
var Stages = [...]string{"matcher", "recorder", "views", "durable"}

// The indexes in Path.Stages.
const (
	StageMatcher = iota
	StageRecorder
	StageViews
	StageDurable
)

// Ring is one ring: entries that are published and not yet released, how many it has room for, and
// the sum of the depths at all looks.
type Ring struct{ Depth, Slots, DepthSum uint64 }

// Stage is one stage: its last input sequence, and how many commands the
// stage before it is ahead.
//
// BehindSum is the sum of Behind over all looks.
type Stage struct{ Sequence, Behind, BehindSum uint64 }

// Commits are the commits of the journal.
//
// Times are in nanoseconds. Commands is the last durable sequence, so what a start has recovered
// is in it; the other counts begin with the process.
type Commits struct {
	Commits, Commands, Bytes uint64
	Nanos, MaxNanos          uint64
	InFlight                 uint64
	// 1: orders are refused for want of disk space; 1: the journal has failed.
	StorageFull, Poisoned uint64
	// The upper bounds of the buckets in nanoseconds, so that a reader needs no table of its own.
	Bounds [len(journal.CommitBuckets)]uint64
	// Buckets are not cumulative; the last has no bound.
	Buckets [len(journal.CommitBuckets) + 1]uint64
}

// Answers are the order-matcher's decisions on requests, and the time of its answers.
//
// Latency is the time from a request to its answer, SumNanos the sum over all of them.
type Answers struct {
	// Requests by decision since the start.
	Accepted, Rejected, Duplicate uint64
	SumNanos                      uint64
	Latency                       Distribution
}

// Runtime has the figures of the Go runtime.
type Runtime struct {
	// bytes: objects, heap size at which the next collection begins, all that is mapped
	Heap, HeapGoal, Mapped uint64
	Allocated              uint64 // bytes since the start
	// Goroutines that exist now, and collections since the start.
	Goroutines, GCCycles uint64
	// The times for which the collector stopped all goroutines.
	Pauses Distribution
}

// Where the sidecars of a block run. A process without sidecars leaves the block all zero.
const (
	Here      = 1
	Elsewhere = 2 // at the leader: nothing else in the block counts
)

// Feeds are the control sources, in the order of control.Sources.
type Feeds struct {
	Present uint64 // Here, Elsewhere; 0: there are no sidecars
	Sources [2]Feed
}

// Feed is one control source, as the replica and the outbox of this process see it.
type Feed struct {
	State                    uint64 // an index of FeedStates
	Watermark, HighWatermark uint64 // last version applied, last version seen
	Unpublished              uint64 // rows of the outbox
	// The age of the oldest row that is not published.
	PublishLagNanos uint64
}

// FeedStates are the names of Feed.State.
var FeedStates = [...]string{"seeds only", "bootstrapping", "installed", "ready", "quarantined"}

// Lags are how far the followers of the journal are behind it.
//
// They are 0 for a follower that has caught up.
type Lags struct {
	Present                uint64 // Here, Elsewhere; 0: there are no sidecars
	Projection, Recon, TCA uint64 // records that are durable and not yet taken in
	OpenBreaks             uint64
	Database, Broker       uint64 // 1: reachable
	Failed                 uint64 // loops that have ended with an error
}

// Sessions are the shared-memory sessions.
type Sessions struct {
	Present             uint64 // 0: there is no socket
	Orders, Feeds       uint64 // open sessions, by kind
	Commands            uint64 // taken from sessions
	Accepted, Duplicate uint64
	Refused             uint64 // decided with a refusal, or refused by the gate
	// malformed, not entitled, not ready, too much in flight: answered and not decided
	NotTaken   uint64
	TurnedAway uint64 // clients that asked for a session and got none
	// records given to feeds, and records that their readers were too slow for
	Records, Missed uint64
	Times           session.Times
	// open sessions, by the commands answered; ID 0: no more sessions
	Busiest [sessionRows]Session
}

// sessionRows is the number of sessions that are shown one by one.
const sessionRows = 8

// Session is one open session for orders; its Times count the commands since it was opened.
type Session struct {
	ID, Peer uint64 // Peer: process id of the client, 0 when it is not known
	Times    session.Times
}

// Cluster is this member's place among the members; all zero on a single node.
//
// Member and Leader are numbers of the list of members, 0 for none.
type Cluster struct {
	Members, Member uint64
	Role            uint64 // an index of Roles
	// The term of the consensus, and the member that leads it as far as this one knows.
	Term, Leader   uint64
	Index, Applied uint64 // of the agreed log: its end here, and what the engine was given
	Commit         Distribution
}

// Roles are the names of Cluster.Role.
var Roles = [...]string{"single", "follower", "candidate", "leader"}

// Distribution counts durations in buckets, four to an octave. Bucket b holds the durations up to
// 2^((b-Offset)/4) seconds that are over the bound of the bucket before it.
//
// Counts only rise, so what happened between two looks is the difference of two Distributions. A
// bucket is 19 % wide: 2^(1/4).
type Distribution [buckets]uint64

const (
	buckets = 160
	// The bucket that ends at one second. The first bucket ends at about a nanosecond, the last one
	// at about 14 minutes.
	Offset = 120
)

// Take adds what d has counted. Its buckets are the same, by the exponent of their bound.
//
// What lies outside of the buckets counts in the first or the last one.
func (t *Distribution) Take(d timing.Distribution) {
	for at, n := range d.Native {
		t[min(max(at+Offset, 0), buckets-1)] += uint64(n)
	}
}

// Bound is the upper bound of a bucket.
func Bound(bucket int) time.Duration {
	return time.Duration(math.Exp2(float64(bucket-Offset)/4) * 1e9)
}

// Bucket is the bucket that counts a duration in seconds.
//
// seconds above the last bound count in the last bucket; 0 and less in the first.
func Bucket(seconds float64) int {
	if seconds <= 0 {
		return 0
	}
	at := math.Ceil(4 * math.Log2(seconds))
	return int(min(max(at+Offset, 0), buckets-1))
}

// SessionBound is the upper bound of a bucket of session.Times: 2^bucket nanoseconds, Unbounded
// for the last one.
func SessionBound(bucket int) time.Duration {
	if bucket == session.TimeBuckets-1 {
		return Unbounded
	}
	return time.Duration(1) << bucket
}

// SessionMiddle is the middle of a bucket of session.Times: three quarters of its upper bound.
func SessionMiddle(bucket int) time.Duration { return time.Duration(3) << bucket >> 2 }

// The durations that are no measurement. posttrade top shows them as a dash and in words.
const (
	// Stands for a duration that is not known.
	None = time.Duration(-1)
	// Stands for a duration beyond the last bound.
	Unbounded = time.Duration(math.MaxInt64)
)
