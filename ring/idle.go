//perf:hot

package ring

// Queue is where an idle consumer looks once more before it parks. The rings and
// Reader are Queues.
type Queue interface{ Empty() bool }

// Idler decides what a consumer does while it has nothing to do. It belongs to
// one consumer goroutine, which calls
// Idle after a look that found nothing, Reset after one that found work (see
// the example).
type Idler struct {
	step    int // idle calls since the last Reset, up to spins+yields
	spins   int // constant, as is the rest: calls that pause
	yields  int // calls after them that yield; the ones after those park
	forever bool
	locked  bool // the goroutine owns its thread: yield the thread, not the goroutine
	reach   reach
	waiter  *Waiter
	lease   *Lease // nil: only the consumer's own goroutine consumes
	napNs   int64
	stats   IdleStats
}

// pausesPerSpin keeps a spin step near 100 ns, so that spinning does not flood the
// publisher's line with requests.
const pausesPerSpin = 2

// Pause is one step of an Idler's spinning, for a consumer that has a waiting loop of its own.
func Pause() { pause(pausesPerSpin) }

// Idle spends one step: it spins, yields or parks as the strategy says. It may return early or
// late; the consumer then looks at its ring again. q is the ring. No allocation. Consumer only.
func (i *Idler) Idle(q Queue) {
	if i.step < i.spins {
		i.step++
		pause(pausesPerSpin)
		return
	}
	i.backOff(q)
}

// Reset makes the next idle time start with the first step. The consumer calls it after it found
// work.
func (i *Idler) Reset() { i.step = 0 }
