package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals says when requests are due. A value is for one run and one goroutine: it counts.
type Arrivals interface {
	// Next returns the next request's time after the start; it never decreases. It has no end: Run
	// stops at the first one that is due at or after Options.For.
	Next() time.Duration
}

// checkRate refuses a rate for which no schedule exists: 0, a negative one, one that is no number,
// and more than one request a nanosecond.
func checkRate(perSecond float64) error {
	if !(perSecond > 0) || perSecond > 1e9 {
		return fmt.Errorf("load: make arrivals rate=%g: want more than 0 and at most 1e9 a second",
			perSecond)
	}
	return nil
}

// Constant returns requests at equal distances, the first at once. The n-th is due at n times the
// distance, rounded down to a nanosecond, so that rounding does not add up. An error says which
// rate was refused.
func Constant(perSecond float64) (Arrivals, error) {
	if err := checkRate(perSecond); err != nil {
		return nil, err
	}
	return &constant{gapNs: 1e9 / perSecond}, nil
}

// constant counts the requests; a distance may be less than a nanosecond.
type constant struct {
	gapNs float64
	n     int
}

func (c *constant) Next() time.Duration {
	due := time.Duration(float64(c.n) * c.gapNs)
	c.n++
	return due
}

// Poisson returns the requests of many independent callers: the distances are exponential and
// perSecond is their long-term rate. The same seed gives the same times. Two requests may be due in
// the same nanosecond. The first one comes after a distance, not at once.
func Poisson(perSecond float64, seed uint64) (Arrivals, error) {
	if err := checkRate(perSecond); err != nil {
		return nil, err
	}
	return &poisson{gapNs: 1e9 / perSecond, random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))},
		nil
}

// poisson has the sum of the distances so far, in nanoseconds, unrounded.
type poisson struct {
	gapNs  float64
	random *rand.Rand
	at     float64
}

// Next stops growing at half of the largest duration, some 146 years: a low rate must not overflow.
func (p *poisson) Next() time.Duration {
	p.at += p.random.ExpFloat64() * p.gapNs
	return time.Duration(math.Min(p.at, math.MaxInt64/2))
}
