//perf:hot

package ring

// A consumer that has caught up and reads the producer's line without a break takes that line away
// with every look. It takes the slots behind the line too, because its prefetcher runs ahead. The
// producer waits for the lines to come back, publishes a few slots, and loses the lines again. Both
// sides then work at the speed of the lines' round trip, a tenth of what the same lines carry in
// bursts.
//
// So while messages flow, and only then, looks keep a distance of lookNs. Messages flow when two
// looks in a row found some, but less than a burst. A look that finds nothing ends the flow, so
// single messages, as in a request and its answer, are never delayed.

const (
	// burstSlots is how many slots a look must find so that the next look need not wait.
	burstSlots = 256
	// lookNs is the distance of looks while messages flow, roughly: clocks differ.
	lookNs = 500
	// maxPauses bounds that wait, independent of the clock.
	maxPauses = 256
)

// pacer keeps a consumer's looks apart. Its writer is the consumer.
type pacer struct {
	short  int64 // looks in a row that found something, but less than a burst
	looked int64 // ticks at the last of them, from the second on
	burst  int64 // constant: slots
	apart  int64 // constant: ticks between looks, 0 where there is no clock
}

// await waits until the distance has passed. The time since the last look counts, so a consumer
// that works on its messages for longer, or looks at many rings, does not wait at all. A clock that
// was set back ends the wait.
func (p *pacer) await() {
	for n := 0; n < maxPauses && uint64(ticks()-p.looked) < uint64(p.apart); n++ {
		pause(1)
	}
}

// note records how many slots, at least one, a look found. refresh sets short to 0 after a look
// that found none.
func (p *pacer) note(found int64) {
	if found >= p.burst {
		p.short = 0
		return
	}
	if p.short++; p.flowing() {
		p.looked = ticks()
	}
}

// flowing reports that the next look is to keep its distance.
func (p *pacer) flowing() bool { return p.short >= 2 }
