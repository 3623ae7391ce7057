package perf

import (
	"time"
)

// channelSingle is the peer of one message at a time: a buffered channel of as many places, between
// two pinned threads. Its messages are copied in and out; there is no sum, because a channel loses
// none.
func channelSingle(n int) time.Duration {
	c := make(chan message, perfRingSlots)
	return pair(func() {
		for i := range n {
			c <- message{[8]uint64{uint64(i)}}
		}
		close(c)
	}, func() {
		for range c {
		}
	})
}

// channelOfSlices is the peer of batches: slices of messages over one channel, and back over
// another one, so that it allocates nothing after its start. It is what a Go program without a ring
// would do.
func channelOfSlices(n, batch int) time.Duration {
	c := make(chan []message, perfRingSlots/batch)
	free := make(chan []message, perfRingSlots/batch+2)
	for range cap(free) {
		free <- make([]message, 0, batch)
	}
	return pair(func() {
		for i := 0; i < n; {
			b := (<-free)[:0]
			for len(b) < batch && i < n {
				b = append(b, message{[8]uint64{uint64(i)}})
				i++
			}
			c <- b
		}
		close(c)
	}, func() {
		var sum uint64
		for b := range c {
			for k := range b {
				sum += b[k].words[0]
			}
			free <- b
		}
	})
}
