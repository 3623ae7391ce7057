package matcher

import (
	"math/rand/v2"
	"testing"
)

// What the tests beside the package, which compare it with a model of its own types, use of the
// tests inside.

// Rig is an engine and all its events.
type Rig struct{ *rig }

// NewRig returns the rig of an empty engine. With reread it is restored from its own snapshot
// before every command.
func NewRig(t testing.TB, g *Genesis, reread bool) Rig {
	r := newRig(t, g)
	r.reread = reread
	return Rig{r}
}

// Engine returns the engine. It is another one after a restore.
func (r Rig) Engine() *Engine { return r.e }

// Reread restores the engine from its own snapshot.
func (r Rig) Reread() { r.e = r.restored() }

// Do gives the engine a command and returns its events.
func (r Rig) Do(c Command) []Event { return r.do(c) }

// Fly gives the engine the commands of a tape, each with its events to saw.
func (r Rig) Fly(tape []byte, saw func(Command, []Event)) {
	r.t.Helper()
	p := newPilot()
	for len(tape) >= wordBytes {
		c := p.command(tape[:wordBytes])
		tape = tape[wordBytes:]
		events := r.do(c)
		saw(c, events)
		p.saw(events)
	}
}

// RandomTape returns the words of so many commands.
func RandomTape(rnd *rand.Rand, commands int) []byte {
	tape := make([]byte, commands*wordBytes)
	for i := range tape {
		tape[i] = byte(rnd.Uint32())
	}
	return tape
}

// Crowded is a genesis record with limits that a run meets now and then.
func Crowded() *Genesis { return crowded() }

// Seeded returns the run's source of randomness and prints its seed.
func Seeded(t testing.TB) *rand.Rand { return seeded(t) }

// RunLength is how many commands a random run has.
func RunLength() int { return runLength() }

// Describe turns events into text.
func Describe(events []Event) []string { return describe(events) }
