package matcher

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"testing"
	"unsafe"

	"posttrade/ring/must"
)

// hasher feeds events into a hash, as the bytes in the ring.
func hasher(h hash.Hash) func([]Event) {
	return func(events []Event) {
		h.Write(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(events))), len(events)*EventBytes))
	}
}

// history is a run: the commands as they were sequenced, cut into sections, and for each section
// the hash of its events and the snapshot at its end.
type history struct {
	commands  []Command
	ends      []int
	events    [][sha256.Size]byte
	snapshots [][]byte
}

func record(t *testing.T, g *Genesis, commands, sections int) *history {
	t.Helper()
	rnd := seeded(t)
	e := must.Get(New(g))(t)
	defer e.Close()
	p := newPilot()
	h := &history{}
	sum := sha256.New()
	add := hasher(sum)
	out := NewOutlet(16, func(events []Event) {
		add(events)
		p.saw(events)
		for i := range events {
			if events[i].Flags&EventFirst != 0 {
				h.commands = append(h.commands, *events[i].Cmd())
			}
		}
	})
	var word [wordBytes]byte
	for n := 1; n <= commands; n++ {
		for i := range word {
			word[i] = byte(rnd.Uint32())
		}
		c := p.command(word[:])
		e.Apply(&c, out)
		out.Flush()
		if n*sections/commands > len(h.ends) {
			h.cut(t, e, sum)
		}
	}
	return h
}

// cut ends a section.
func (h *history) cut(t *testing.T, e *Engine, sum hash.Hash) {
	t.Helper()
	h.ends = append(h.ends, int(e.AppliedSeq()))
	h.events = append(h.events, [sha256.Size]byte(sum.Sum(nil)))
	h.snapshots = append(h.snapshots, snapshotOf(t, e))
	sum.Reset()
}

func snapshotOf(t testing.TB, e *Engine) []byte {
	t.Helper()
	var b bytes.Buffer
	must.OK(t, e.WriteSnapshot(&b))
	if hash := e.StateHash(); hash != sha256.Sum256(b.Bytes()) {
		t.Fatalf("state hash %x is not the snapshot's", hash)
	}
	return b.Bytes()
}

// follow replays a history into an engine from a section on and compares the
// events and the snapshot of every section.
func (h *history) follow(t *testing.T, e *Engine, section int) {
	t.Helper()
	sum := sha256.New()
	out := NewOutlet(4, hasher(sum)) // another size than the live one's
	for ; section < len(h.ends); section++ {
		if n, err := e.ReplayBatch(h.commands[e.AppliedSeq():h.ends[section]], out); err != nil {
			t.Fatalf("after %d: %v", n, err)
		}
		out.Flush()
		if got := [sha256.Size]byte(sum.Sum(nil)); got != h.events[section] {
			t.Fatalf("section %d: other events", section)
		}
		if !bytes.Equal(snapshotOf(t, e), h.snapshots[section]) {
			t.Fatalf("section %d: another snapshot", section)
		}
		sum.Reset()
	}
}

// All post-trade services depend on this property: a live run, its replay from the start, and its
// replay from any of its snapshots are the same to the last byte of every event and of every
// snapshot.
func TestReplayFromAnywhereIsTheSame(t *testing.T) {
	const sections = 20
	g := crowded()
	g.Limits.MaxContracts = 1 << 16 // so that bookings are accepted to the end
	h := record(t, g, runLength(), sections)
	if len(h.ends) != sections || h.ends[sections-1] != runLength() {
		t.Fatalf("sections end at %v", h.ends)
	}
	e := must.Get(New(g))(t)
	defer e.Close()
	h.follow(t, e, 0)
	for section, snapshot := range h.snapshots {
		e := must.Get(ReadSnapshot(g, bytes.NewReader(snapshot)))(t)
		if !bytes.Equal(snapshotOf(t, e), snapshot) {
			t.Fatalf("section %d: restored is not what was written", section)
		}
		if err := e.check(); err != nil {
			t.Fatalf("section %d: restored: %v", section, err)
		}
		h.follow(t, e, section+1)
		must.OK(t, e.Close())
	}
}
