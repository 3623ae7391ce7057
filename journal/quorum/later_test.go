package quorum

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/matcher"
)

// laterFSM is a state machine over a host in memory, and parts of one command each.
func laterFSM() (f *fsm, disk *memory, next func(n int) part) {
	disk = newMemory()
	f = &fsm{n: &Node{host: disk}}
	first := uint64(1)
	return f, disk, func(n int) part {
		p := part{first: first, commands: make([]matcher.Command, n)}
		for i := range p.commands {
			p.commands[i].Qty = int32(first) + int32(i)
		}
		first += uint64(n)
		return p
	}
}

// quantities are the commands that the host has.
func (m *memory) quantities() (q []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.commands {
		q = append(q, m.commands[i].Qty)
	}
	return q
}

func TestCommandsNobodyWaitsForComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, disk, next := laterFSM()
		for round := range 3 {
			before := disk.Head()
			f.hold(next(1))
			<-time.After(queuedTime / 2)
			f.hold(next(2))
			synctest.Wait()
			if got := disk.Head(); got != before {
				t.Fatalf("round %d: the host has %d commands at once, want %d", round, got, before)
			}
			<-time.After(queuedTime)
			synctest.Wait()
			if got := disk.Head(); got != before+3 || f.n.handed.Load() != got {
				t.Fatalf("round %d: the host has %d commands, %d are counted, want %d", round, got,
					f.n.handed.Load(), before+3)
			}
		}
	})
}

func TestManyCommandsAreHandedOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, disk, next := laterFSM()
		f.hold(next(1))
		f.hold(next(queuedCommands))
		if got := disk.Head(); got != queuedCommands+1 {
			t.Errorf("the host has %d commands, want %d", got, queuedCommands+1)
		}
		f.hold(next(1))
		<-time.After(queuedTime)
		synctest.Wait()
		if got := disk.Head(); got != queuedCommands+2 {
			t.Errorf("the host has %d commands, want %d", got, queuedCommands+2)
		}
	})
}

func TestWhatSomebodyWaitsForComesBehindWhatWasHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, disk, next := laterFSM()
		f.hold(next(1))
		f.hold(next(1))
		f.hand(next(1))
		if got := disk.quantities(); !slices.Equal(got, []int32{1, 2, 3}) {
			t.Errorf("the host has %v, want 1 2 3", got)
		}
		f.hold(next(1))
		if got := f.n; got.handed.Load() != 3 {
			t.Errorf("%d commands are counted, want 3", got.handed.Load())
		}
		f.n.fsm = f
		if got := f.n.has(); got != 4 {
			t.Errorf("the member has %d commands, want 4: a caller that asks gets all", got)
		}
	})
}

func TestNothingIsHandedOverAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, disk, next := laterFSM()
		f.hold(next(1))
		f.stop()
		f.hold(next(1))
		f.flush()
		<-time.After(2 * queuedTime)
		synctest.Wait()
		if got := disk.Head(); got != 0 {
			t.Errorf("the host has %d commands, want none", got)
		}
		f.stop() // for the timer that came behind the first
	})
}
