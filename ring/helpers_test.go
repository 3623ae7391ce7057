package ring

import (
	"math/rand/v2"
	"testing"

	"posttrade/ring/must"
)

// msg is a 64-byte slot in which one number determines all words.
type msg struct{ w [8]uint64 }

func (m *msg) fill(i uint64) {
	m.w[0], m.w[1], m.w[2], m.w[3] = i, i+1, i+2, i+3
	m.w[4], m.w[5], m.w[6], m.w[7] = i+4, i+5, i+6, i+7
}

// ok reports that the slot is whole and holds i.
func (m *msg) ok(i uint64) bool {
	var want msg
	want.fill(i)
	return *m == want
}

func (m *msg) sum() uint64 {
	return m.w[0] + m.w[1] + m.w[2] + m.w[3] + m.w[4] + m.w[5] + m.w[6] + m.w[7]
}

// event is a 128-byte slot.
type event struct{ a, b msg }

// newRegion is an anonymous region that lives as long as the test.
func newRegion(t testing.TB, bytes int) *Region {
	t.Helper()
	region := must.Get(Anonymous(bytes))(t)
	t.Cleanup(func() { region.Close() })
	return region
}

func newTestSPSC(t testing.TB, capacity int) *SPSC[msg] {
	t.Helper()
	return must.Get(NewSPSC[msg](newRegion(t, SPSCBytes[msg](capacity)), capacity))(t)
}

func newTestMPSC(t testing.TB, capacity int) *MPSC[msg] {
	t.Helper()
	return must.Get(NewMPSC[msg](newRegion(t, MPSCBytes[msg](capacity)), capacity))(t)
}

func newTestFanout(t testing.TB, capacity int) *Fanout[msg] {
	t.Helper()
	return must.Get(NewFanout[msg](newRegion(t, FanoutBytes[msg](capacity)), capacity))(t)
}

// seeded prints the seed that replays the test.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
