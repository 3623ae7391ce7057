package main

import (
	"math"
	"time"

	"posttrade/journal"
	"posttrade/matcher/session"
)

// statsClock says when the figures were taken.
type statsClock struct {
	Tick        uint64 // looks since the start
	WallNanos   uint64 // Unix time of the last one
	UptimeNanos uint64 // of the process, monotonic: what rates are divided by
	Stopped     uint64 // 1: the process has ended in order
}

// statsPath is how far the path of an order is. The sums grow by one look each, so
// that the mean over any time is a difference of sums by a difference of looks.
type statsPath struct {
	Looks         uint64
	Input, Output statsRing
	Proposals     statsRing // of a member, before its input ring; without slots on a single node
	Stages        [len(statsStages)]statsStage
	Events        uint64 // taken off the output ring
	Stalls        uint64 // times that the matcher found the output ring full
	Ready         uint64 // 1: orders are let in
}

// statsStages are the names of statsPath.Stages, in the order of the path.
var statsStages = [...]string{"matcher", "recorder", "views", "durable"}

// The places in statsPath.Stages.
const (
	stageMatcher = iota
	stageRecorder
	stageViews
	stageDurable
)

type statsRing struct{ Depth, Slots, DepthSum uint64 }

// statsStage is one stage: its last input sequence, and how many commands the
// stage before it is ahead.
type statsStage struct{ Sequence, Behind, BehindSum uint64 }

// statsCommits are the journal's.
type statsCommits struct {
	Commits, Commands, Bytes uint64
	Nanos, MaxNanos          uint64
	InFlight                 uint64
	StorageFull, Poisoned    uint64
	Bounds                   [len(journal.CommitBuckets)]uint64     // ns
	Buckets                  [len(journal.CommitBuckets) + 1]uint64 // not cumulative; the last has no bound
}

// statsAnswers are the order-matcher's decisions on requests, and the time of its answers.
type statsAnswers struct {
	Accepted, Rejected, Duplicate uint64
	SumNanos                      uint64
	Latency                       statsDistribution
}

// statsRuntime is the Go runtime's.
type statsRuntime struct {
	Heap, HeapGoal, Mapped uint64 // bytes: objects, where the next collection begins, all that is mapped
	Allocated              uint64 // bytes since the start
	Goroutines, GCCycles   uint64
	Pauses                 statsDistribution
}

// Where the sidecars are whose figures a block has; without them it is all zero.
const (
	statsHere      = 1
	statsElsewhere = 2 // at the leader: nothing else in the block counts
)

// statsFeeds are the control sources, in the order of control.Sources.
type statsFeeds struct {
	Present uint64 // statsHere, statsElsewhere; 0: there are no sidecars
	Sources [2]statsFeed
}

type statsFeed struct {
	State                    uint64 // statsFeedStates
	Watermark, HighWatermark uint64 // last version applied, last version seen
	Unpublished              uint64 // rows of the outbox
	PublishLagNanos          uint64
}

// statsFeedStates are the names of statsFeed.State.
var statsFeedStates = [...]string{"seeds only", "bootstrapping", "installed", "ready", "quarantined"}

// statsLags are what follows the journal.
type statsLags struct {
	Present                uint64 // statsHere, statsElsewhere; 0: there are no sidecars
	Projection, Recon, TCA uint64 // records that are durable and not taken in
	OpenBreaks             uint64
	Database, Broker       uint64 // 1: reachable
	Failed                 uint64 // loops that have ended with an error
}

// statsSessions are the shared-memory sessions.
type statsSessions struct {
	Present             uint64 // 0: there is no socket
	Orders, Feeds       uint64 // that are open, by kind
	Commands            uint64 // taken from sessions
	Accepted, Duplicate uint64
	Refused             uint64 // decided against, or refused by the gate
	NotTaken            uint64 // malformed, not entitled, not ready, too much in flight: answered and not decided
	TurnedAway          uint64 // clients that asked for a session and got none
	Records, Missed     uint64 // given to feeds, and those that their readers were too slow for
	Times               session.Times
	Busiest             [statsSessionRows]statsSession // that are open, by the commands answered; ID 0: no more of them
}

// statsSessionRows is how many sessions are shown one by one.
const statsSessionRows = 8

type statsSession struct {
	ID, Peer uint64 // Peer: process id of the client, 0 when it is not known
	Times    session.Times
}

// statsCluster is this member's place among the members; all zero on a single node.
type statsCluster struct {
	Members, Member uint64
	Role            uint64 // statsRoles
	Term, Leader    uint64
	Index, Applied  uint64 // of the agreed log: its end here, and what is handed to the engine
	Commit          statsDistribution
}

// statsRoles are the names of statsCluster.Role.
var statsRoles = [...]string{"single", "follower", "candidate", "leader"}

// statsDistribution counts durations in buckets, four to an octave: bucket b holds
// those up to 2^((b-statsOffset)/4) seconds that the one before it does not.
type statsDistribution [statsBuckets]uint64

const (
	statsBuckets = 160
	statsOffset  = 120 // the bucket that ends at one second
)

// statsBound is the upper bound of a bucket.
func statsBound(bucket int) time.Duration {
	return time.Duration(math.Exp2(float64(bucket-statsOffset)/4) * 1e9)
}

// statsBucket is where a duration in seconds is counted.
func statsBucket(seconds float64) int {
	if seconds <= 0 {
		return 0
	}
	at := math.Ceil(4 * math.Log2(seconds))
	return int(min(max(at+statsOffset, 0), statsBuckets-1))
}
