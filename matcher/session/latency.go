package session

import (
	"math/bits"
	"sync/atomic"
	"time"

	"posttrade/matcher/session/wire"
)

// Times is how long commands took, from the moment the server saw them in the client's ring to the
// moment their answers could be read: bucket b counts the commands below 2^b ns that bucket b-1
// does not count; the last bucket also counts all longer ones. Commands that were taken together
// have the same start, and answers that were shown together have the same end.
type Times [TimeBuckets]uint64

// TimeBuckets is how many buckets Times have; the last begins at half a minute.
const TimeBuckets = 36

// Count is how many commands were timed.
func (t *Times) Count() (n uint64) {
	for _, c := range t {
		n += c
	}
	return n
}

// At is an upper bound of the time within which the given share of the commands was answered; 0
// without commands.
func (t *Times) At(share float64) time.Duration {
	rest := share * float64(t.Count())
	for b, n := range t {
		if rest -= float64(n); n > 0 && rest <= 0 {
			return time.Duration(1) << b
		}
	}
	return 0
}

// add sums bucket by bucket, for sessions that have ended.
func (t *Times) add(other *Times) {
	for b, n := range other {
		t[b] += n
	}
}

// times are Times that are being counted. Writer: the goroutine that has the session. Readers: any,
// so that Sessions and Metrics stop no session.
type times [TimeBuckets]atomic.Uint64

// count counts n commands of one duration.
func (t *times) count(nanos int64, n int) {
	t[bucketOf(nanos)].Add(uint64(n))
}

// bucketOf is the bucket of a duration: the number of its bits. A negative one counts as 0.
func bucketOf(nanos int64) int {
	return min(bits.Len64(uint64(max(nanos, 0))), TimeBuckets-1)
}

func (t *times) load() (out Times) {
	for b := range t {
		out[b] = t[b].Load()
	}
	return out
}

// nanos is a clock for durations: nanoseconds since the server was opened, which never go back.
func (s *Server) nanos() int64 { return int64(time.Since(s.born)) }

// SessionInfo is one session as operators see it, a copy. ID counts the sessions of this server
// from 1.
type SessionInfo struct {
	ID    uint64
	Role  wire.Role
	Peer  int32 // process id, 0 when the kernel does not say
	Times Times // of an order session's commands
}

// Sessions appends every session that exists to dst, in the order in which they began. Any
// goroutine.
func (s *Server) Sessions(dst []SessionInfo) []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.live {
		dst = append(dst, SessionInfo{ID: one.id, Role: one.role, Peer: one.peer,
			Times: one.times.load()})
	}
	return dst
}
