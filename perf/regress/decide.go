package regress

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sample is the result of one process.
type Sample struct {
	// Ns is the least time of an operation, in nanoseconds of processor time. It must be above 0.
	Ns float64
	// Allocs is the least number of allocations of an operation; a fraction if it is below one.
	Allocs float64
}

// Row is one thing measured in both builds, in turns: Base[2i] before Head[i] and Base[2i+1] after
// it.
type Row struct {
	Name       string
	Base, Head []Sample
}

// Rules say what counts as a change.
type Rules struct {
	// Floor is the smallest share of the time that counts as a change: two builds of the same source
	// differ by where the linker puts a loop.
	Floor float64
	// Margin is the factor by which a change must exceed the base's difference from itself.
	Margin float64
	// Unsure is the limit above which a row is too noisy for the verdict that nothing changed.
	Unsure float64
	// Rounds is how often a row is measured before it is judged; MostRounds is the maximum when the
	// noise asks for more. A round is base, head, base.
	Rounds, MostRounds int
}

// DefaultRules detect a change of a fifth with certainty and ignore one of a twentieth.
func DefaultRules() Rules {
	return Rules{Floor: 0.05, Margin: 1.5, Unsure: 0.15, Rounds: 8, MostRounds: 32}
}

// Outcome is the result of a row.
type Outcome int

// The outcomes. Slower and MoreAllocs are regressions.
const (
	Same Outcome = iota
	Faster
	Unsure // the run's noise would hide a change that matters
	Slower
	MoreAllocs
)

var outcomeNames = [...]string{"same", "faster", "unsure", "SLOWER", "MORE ALLOCATIONS"}

// String returns the word that the gate prints.
func (o Outcome) String() string {
	if o >= 0 && int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// Regressed reports whether a build with this outcome must not pass.
func (o Outcome) Regressed() bool { return o == Slower || o == MoreAllocs }

// Verdict is a decision with its figures. Shares are fractions: 0.05 is a twentieth.
type Verdict struct {
	Row     string
	Outcome Outcome
	// BaseNs and HeadNs are the low quantile of each side. Where turns were compared, Shift does not
	// follow from them.
	BaseNs, HeadNs float64
	// Shift is by how much the head is slower, as a share of the base; negative: faster.
	Shift float64
	// Noise is by how much the base differs from itself, measured in the same way.
	Noise float64
	// Limit is the shift beyond which there is a change.
	Limit float64
	// BaseAllocs is what three quarters of the base's samples do not exceed, HeadAllocs the least of
	// the head's.
	BaseAllocs, HeadAllocs float64
}

// String is one line for a reader.
func (v Verdict) String() string {
	text := fmt.Sprintf(
		"%-14s %-16s base %.4g ns/op, head %.4g ns/op: %+.1f %% (this run's noise %.1f %%, "+
			"limit %.1f %%)",
		v.Row, v.Outcome, v.BaseNs, v.HeadNs, 100*v.Shift, 100*v.Noise, 100*v.Limit)
	if v.BaseAllocs != v.HeadAllocs {
		text += fmt.Sprintf("; allocs/op base %.6g, head %.6g", v.BaseAllocs, v.HeadAllocs)
	}
	return text
}

// LeastSamples is the number of samples of the head that a decision needs; the base has twice as
// many.
const LeastSamples = 4

// ErrSamples reports a row that cannot be decided: too few samples, or a time or a count that no
// measurement can give. Test by errors.Is.
var ErrSamples = errors.New("too few or impossible samples")

// enoughTurns is the number of rounds for which the median of the turns can be trusted.
const enoughTurns = 24

// Decide judges one row. It compares the low quantiles of all samples, which a neighbour that is
// busy for a while does not affect. When even those are too noisy, because the machine is slow for
// seconds at a time, it compares turn by turn, if the base then differs less from itself. The
// head's figures do not influence that choice.
func Decide(rules Rules, row Row) (Verdict, error) {
	if len(row.Head) < LeastSamples || len(row.Base) != 2*len(row.Head) {
		return Verdict{}, fmt.Errorf("regress: decide row=%s: %d base and %d head samples: %w", row.Name,
			len(row.Base), len(row.Head), ErrSamples)
	}
	for _, s := range slices.Concat(row.Base, row.Head) {
		if !(s.Ns > 0) || math.IsInf(s.Ns, 0) || !(s.Allocs >= 0) {
			return Verdict{}, fmt.Errorf("regress: decide row=%s: sample %+v: %w", row.Name, s, ErrSamples)
		}
	}
	v := Verdict{Row: row.Name, BaseNs: low(times(row.Base)), HeadNs: low(times(row.Head))}
	v.Shift, v.Noise = v.HeadNs/v.BaseNs-1, lowNoise(times(row.Base))
	if len(row.Head) >= enoughTurns && rules.Margin*v.Noise > rules.Unsure {
		if noise := turnNoise(row); noise < v.Noise {
			v.Shift, v.Noise = turnShift(row), noise
		}
	}
	v.Limit = max(rules.Floor, rules.Margin*v.Noise)
	v.BaseAllocs, v.HeadAllocs = most(row.Base), least(row.Head)
	switch {
	case v.HeadAllocs > v.BaseAllocs:
		v.Outcome = MoreAllocs
	case v.Shift > v.Limit:
		v.Outcome = Slower
	case v.Limit > rules.Unsure:
		v.Outcome = Unsure
	case v.Shift < -v.Limit:
		v.Outcome = Faster
	}
	return v, nil
}

func times(samples []Sample) []float64 {
	ns := make([]float64, len(samples))
	for i, s := range samples {
		ns[i] = s.Ns
	}
	return ns
}

// lowQuantile is the quantile at which a side's time is read. It is close to the least, because
// every disturbance makes a process slower. It is not the least itself, which may depend on where
// memory happened to be.
const lowQuantile = 0.1

// low is the low quantile of values, which it sorts.
func low(values []float64) float64 {
	slices.Sort(values)
	at := lowQuantile * float64(len(values)-1)
	below := int(at)
	part := at - float64(below)
	return values[below]*(1-part) + values[min(below+1, len(values)-1)]*part
}

// splits is how often the base is split at random; noiseShare is the share of the splits that
// differ by at most the noise.
const (
	splits     = 400
	noiseShare = 0.99 // share of the splits that differ by at most the noise
)

// lowNoise splits values in two at random, many times, and returns how far the halves' low
// quantiles differ. The splits are the same in every call.
func lowNoise(values []float64) float64 {
	random := rand.New(rand.NewPCG(1, 2))
	apart := make([]float64, splits)
	half := len(values) / 2
	for i := range apart {
		random.Shuffle(len(values), func(i, k int) { values[i], values[k] = values[k], values[i] })
		apart[i] = math.Abs(low(slices.Clone(values[:half]))/low(slices.Clone(values[half:])) - 1)
	}
	return largest(apart)
}

// turnShift compares the head with the base before and after it, turn by turn, and returns the
// median. A machine that is slow for seconds is slow for a whole turn.
func turnShift(row Row) float64 {
	logs := make([]float64, len(row.Head))
	for i := range logs {
		logs[i] = math.Log(row.Head[i].Ns / math.Sqrt(row.Base[2*i].Ns*row.Base[2*i+1].Ns))
	}
	return math.Exp(median(logs)) - 1
}

// turnNoise is the same for the base against itself: after against before, or before against after,
// at random.
func turnNoise(row Row) float64 {
	random := rand.New(rand.NewPCG(3, 4))
	apart, logs := make([]float64, splits), make([]float64, len(row.Base)/2)
	for i := range apart {
		for k := range logs {
			logs[k] = math.Log(row.Base[2*k+1].Ns / row.Base[2*k].Ns)
			if random.IntN(2) == 0 {
				logs[k] = -logs[k]
			}
		}
		apart[i] = math.Abs(math.Exp(median(logs)) - 1)
	}
	return largest(apart)
}

// largest is the value that nearly all of the splits do not exceed.
func largest(apart []float64) float64 {
	slices.Sort(apart)
	return apart[int(noiseShare*float64(len(apart)-1))]
}

// median returns the median and sorts values.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// most is the number of allocations that three quarters of the samples do not exceed.
func most(samples []Sample) float64 {
	counts := allocations(samples)
	return counts[len(counts)*3/4]
}

// least is the least number of allocations of any sample: what a regression must raise in all of
// them.
func least(samples []Sample) float64 { return allocations(samples)[0] }

// allocations are the samples' counts in ascending order.
func allocations(samples []Sample) []float64 {
	counts := make([]float64, len(samples))
	for i, s := range samples {
		counts[i] = s.Allocs
	}
	slices.Sort(counts)
	return counts
}
