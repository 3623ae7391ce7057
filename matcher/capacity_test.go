package matcher

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// capacityFlow is a random flow over accounts and securities. The last of these only fit after the
// raises that are in the flow.
func capacityFlow(rng *rand.Rand, n int) (flow []Command) {
	room := Capacities{8, 8, 8}
	for i := range n {
		c := NewCommand(OrderNew)
		c.AccountID, c.SecurityID = 1+rng.Uint32N(20), 1+rng.Uint32N(12)
		c.Side, c.Qty, c.LimitPx = Side(rng.IntN(2)), 1+rng.Int32N(9), (95+rng.Int64N(10))*unit
		switch rng.IntN(12) {
		case 0:
			c = control(AccountControl, c.AccountID, 0, 1)
		case 1:
			c = NewSymbolRegister(string(rune('A' + rng.IntN(12))))
		case 2:
			c = control(SecurityControl, 0, 4+rng.Uint32N(9), SecurityEnabled)
		case 3:
			terms := swap()
			terms.AccountID = 1 + rng.Uint32N(20)
			c = booked(terms, noKey)
		case 4:
			if i > 20 && rng.IntN(4) == 0 {
				room = Capacities{room.Accounts + rng.IntN(8), room.Securities + rng.IntN(4),
					room.Contracts + rng.IntN(40)}
				c = NewCapacityControl(room)
			}
		}
		if c.TemplateID == TemplateCommand {
			c.EventTimeMillis = noon + int64(i)
		}
		flow = append(flow, c)
	}
	return flow
}

// decided applies a flow in batches of any size. It returns the events, without the fields that
// they do not use. For refusals for want of room it returns which commands they were.
func decided(t *testing.T, e *Engine, flow []Command, rng *rand.Rand) (events []Event) {
	t.Helper()
	out := NewOutlet(8, func(all []Event) { events = append(events, all...) })
	for at := 0; at < len(flow); {
		n := min(1+rng.IntN(20), len(flow)-at)
		e.ApplyBatch(flow[at:at+n], out)
		out.Flush()
		if err := e.check(); err != nil {
			t.Fatalf("after %d commands: %v", at+n, err)
		}
		at += n
	}
	return events
}

// TestARaisedEngineDecidesAsOneThatWasLarger: an engine is raised in the middle of a batch, with
// orders, positions and contracts in it. Once its room is as large, it decides like an engine that
// had the room from the beginning. So does an engine that is restored from its snapshot, or that
// replays the flow.
func TestARaisedEngineDecidesAsOneThatWasLarger(t *testing.T) {
	for seed := range uint64(20) {
		g := testGenesis()
		large := *g
		large.Limits.MaxAccounts, large.Limits.MaxSecurities, large.Limits.MaxContracts = 64, 40, 500
		rng := rand.New(rand.NewPCG(seed, 0))
		before := capacityFlow(rng, 300)
		raise := NewCapacityControl(Capacities{64, 40, 500})
		raise.EventTimeMillis = noon + 300
		after := capacityFlow(rng, 300)

		raised := newRig(t, g).e
		first := decided(t, raised, append(slices.Clone(before), raise), rng)
		if got := raised.Capacities(); got != (Capacities{64, 40, 500}) {
			t.Fatalf("seed %d: capacities %+v", seed, got)
		}
		// The larger engine gets only the commands that the smaller one had room for.
		larger := newRig(t, &large).e
		var taken []Command
		for i, c := range append(slices.Clone(before), raise) {
			refused := slices.ContainsFunc(first, func(ev Event) bool {
				return ev.InputSeq == uint64(i+1) && ev.Kind == EventRejected && ev.Reason == Capacity
			})
			if refused {
				c = NewCommand(SnapshotMark)
			}
			taken = append(taken, c)
		}
		decided(t, larger, taken, rng)

		var image bytes.Buffer
		if err := raised.WriteSnapshot(&image); err != nil {
			t.Fatal(err)
		}
		restored, err := ReadSnapshot(g, bytes.NewReader(image.Bytes()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		t.Cleanup(func() { restored.Close() })
		replayed := newRig(t, g).e
		out := NewOutlet(8, func([]Event) {})
		for i, c := range append(slices.Clone(before), raise) {
			c.InputSeq = uint64(i + 1)
			if _, err := replayed.ReplayBatch([]Command{c}, out); err != nil {
				t.Fatal(err)
			}
		}
		want := decided(t, raised, after, rng)
		for name, e := range map[string]*Engine{"larger": larger, "restored": restored,
			"replayed": replayed} {
			got := decided(t, e, after, rng)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: the %s engine decides otherwise", seed, name)
			}
		}
		var again, replay bytes.Buffer
		if err := errors.Join(restored.WriteSnapshot(&again),
			replayed.WriteSnapshot(&replay)); err != nil {
			t.Fatal(err)
		}
		image.Reset()
		if err := raised.WriteSnapshot(&image); err != nil ||
			!bytes.Equal(image.Bytes(), replay.Bytes()) || !bytes.Equal(image.Bytes(), again.Bytes()) {
			t.Fatalf("seed %d: snapshots differ, %v", seed, err)
		}
	}
}

// TestCapacitiesOnlyRise: a smaller value changes nothing, and impossible capacities are refused.
func TestCapacitiesOnlyRise(t *testing.T) {
	r := newRig(t, testGenesis())
	r.want(NewCapacityControl(Capacities{0, 0, 0}), "applied sec=0")
	r.want(NewCapacityControl(Capacities{4, 3, 2}), "applied sec=0")
	var image bytes.Buffer
	if err := r.e.WriteSnapshot(&image); err != nil ||
		bytes.Contains(image.Bytes(), []byte{recordCapacity, 0, 0, 0, 8, 0, 0, 0}) {
		t.Errorf("a snapshot of an engine that was not raised: %v", err)
	}
	r.want(NewCapacityControl(Capacities{9, 3, 0}), "applied sec=0")
	r.want(NewCapacityControl(Capacities{maxPositions, 2, 0}), "rejected sec=0 buy INVALID")
	r.want(NewCapacityControl(Capacities{1 << 20, 1 << 20, 0}), "rejected sec=0 buy INVALID")
	r.want(NewCapacityControl(Capacities{0, 0, maxContracts + 1}), "rejected sec=0 buy INVALID")
	if got, want := r.e.Capacities(), (Capacities{9, 8, 8}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for id := uint32(10); id < 15; id++ {
		r.must(control(AccountControl, id, 0, 1))
	}
	r.want(control(AccountControl, 15, 0, 1), "rejected acct=15 sec=0 sell CAPACITY")
}

// TestSnapshotCapacityRecord: the record is in its place, once, with possible values.
func TestSnapshotCapacityRecord(t *testing.T) {
	g := testGenesis()
	r := newRig(t, g)
	r.must(NewCapacityControl(Capacities{9, 10, 11}))
	var image bytes.Buffer
	if err := r.e.WriteSnapshot(&image); err != nil {
		t.Fatal(err)
	}
	record := func(a, s, c int64) []byte {
		b := binary.LittleEndian.AppendUint32(nil, recordCapacity)
		for _, column := range []int64{a, s, c} {
			b = binary.LittleEndian.AppendUint64(b, uint64(column))
		}
		return b
	}
	good := record(9, 10, 11)
	if at := bytes.Index(image.Bytes(), good); at != headerBytes+4+8*4 {
		t.Fatalf("the record is at %d", at)
	}
	tests := []struct {
		name string
		with []byte
		want error
	}{
		{"as it is", good, nil},
		{"twice", append(slices.Clone(good), good...), ErrSnapshotSequence},
		{"behind the accounts", nil, nil}, // no record: capacities of the genesis record, which hold all
		{"less than the genesis record", record(7, 10, 11), ErrSnapshotValue},
		{"what the genesis record says", record(8, 8, 8), ErrSnapshotValue},
		{"no securities", record(9, 0, 11), ErrSnapshotValue},
		{"more than there can be", record(1<<20, 1<<20, 11), ErrSnapshotValue},
		{"contracts without number", record(9, 10, 1<<40), ErrSnapshotValue},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := ReadSnapshot(g, bytes.NewReader(bytes.Replace(image.Bytes(), good, tt.with, 1)))
			if !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			if e != nil {
				e.Close()
			}
		})
	}
}
