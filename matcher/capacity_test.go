package matcher

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"posttrade/ring/must"
)

// roomFor are capacities that say nothing about orders.
func roomFor(accounts, securities, contracts int) Capacities {
	return Capacities{Accounts: accounts, Securities: securities, Contracts: contracts}
}

// capacityFlow is a random flow over accounts and securities. The last of these only fit after the
// raises that are in the flow.
func capacityFlow(rng *rand.Rand, n int) (flow []Command) {
	room := testGenesis().Limits.Capacities()
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
				room.Accounts += rng.IntN(8)
				room.Securities += rng.IntN(4)
				room.Contracts += rng.IntN(40)
				room.Open += rng.IntN(9)
				room.Retained += rng.IntN(9)
				room.Keys += rng.IntN(9)
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
		l := &large.Limits
		l.MaxAccounts, l.MaxSecurities, l.MaxContracts = 64, 40, 500
		l.MaxOpenOrders, l.RetainedOrders, l.IdempotencyCapacity = 300, 200, 250
		rng := rand.New(rand.NewPCG(seed, 0))
		before := capacityFlow(rng, 300)
		raise := NewCapacityControl(l.Capacities())
		raise.EventTimeMillis = noon + 300
		after := capacityFlow(rng, 300)

		raised := newRig(t, g).e
		first := decided(t, raised, append(slices.Clone(before), raise), rng)
		if got := raised.Capacities(); got != l.Capacities() {
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
		must.OK(t, raised.WriteSnapshot(&image))
		restored, err := ReadSnapshot(g, bytes.NewReader(image.Bytes()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		t.Cleanup(func() { restored.Close() })
		replayed := newRig(t, g).e
		out := NewOutlet(8, func([]Event) {})
		for i, c := range append(slices.Clone(before), raise) {
			c.InputSeq = uint64(i + 1)
			must.Get(replayed.ReplayBatch([]Command{c}, out))(t)
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
		must.OK(t, errors.Join(restored.WriteSnapshot(&again),
			replayed.WriteSnapshot(&replay)))
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
	r.want(NewCapacityControl(roomFor(0, 0, 0)), "applied sec=0")
	r.want(NewCapacityControl(roomFor(4, 3, 2)), "applied sec=0")
	var image bytes.Buffer
	if err := r.e.WriteSnapshot(&image); err != nil ||
		bytes.Contains(image.Bytes(), []byte{recordCapacity, 0, 0, 0, 8, 0, 0, 0}) {
		t.Errorf("a snapshot of an engine that was not raised: %v", err)
	}
	r.want(NewCapacityControl(roomFor(9, 3, 0)), "applied sec=0")
	r.want(NewCapacityControl(roomFor(maxPositions, 2, 0)), "rejected sec=0 buy INVALID")
	r.want(NewCapacityControl(roomFor(1<<20, 1<<20, 0)), "rejected sec=0 buy INVALID")
	r.want(NewCapacityControl(roomFor(0, 1<<20+1, 0)), "rejected sec=0 buy INVALID")
	r.want(NewCapacityControl(roomFor(0, 0, maxContracts+1)), "rejected sec=0 buy INVALID")
	small := NewCapacityControl(Capacities{OrderRoom: OrderRoom{Open: 3, Retained: 4, Keys: 5}})
	r.want(small, "applied sec=0")
	older := NewCapacityControl(Capacities{OrderRoom: OrderRoom{Open: 300, Retained: 400, Keys: 500}})
	older.Version = RecordVersion // such a record says nothing about orders
	r.want(older, "applied sec=0")
	want := testGenesis().Limits.Capacities()
	want.Accounts = 9
	if got := r.e.Capacities(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, room := range []OrderRoom{{Open: MaxOrders, Retained: 1}, {Retained: MaxOrders},
		{Keys: maxKeys + 1}, {Keys: 1 << 40}, {Retained: 1 << 62}} {
		if first := r.do(NewCapacityControl(Capacities{OrderRoom: room}))[0]; first.Reason != Invalid {
			t.Errorf("%+v: %v", room, first.Reason)
		}
	}
	larger := NewCapacityControl(Capacities{OrderRoom: OrderRoom{Open: 65}})
	if first := r.do(larger)[0]; first.Cmd().Version != version3 || first.OrderRef != 0 {
		t.Errorf("%+v", first.Cmd())
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
	r.must(NewCapacityControl(roomFor(9, 10, 11)))
	var image bytes.Buffer
	must.OK(t, r.e.WriteSnapshot(&image))
	r.must(NewCapacityControl(Capacities{OrderRoom: OrderRoom{Open: 70, Retained: 33, Keys: 90}}))
	image.Reset()
	must.OK(t, r.e.WriteSnapshot(&image))
	kind := uint32(recordCapacity)
	record := func(a, s, c int64) []byte {
		b := binary.LittleEndian.AppendUint32(nil, kind)
		for _, column := range []int64{a, s, c} {
			b = binary.LittleEndian.AppendUint64(b, uint64(column))
		}
		return b
	}
	good := record(9, 10, 11)
	if at := bytes.Index(image.Bytes(), good); at != headerBytes+4+8*4 {
		t.Fatalf("the record is at %d", at)
	}
	type damage struct {
		name string
		with []byte
		want error
	}
	refused := func(good []byte, tests []damage) {
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
	refused(good, []damage{
		{"as it is", good, nil},
		{"twice", append(slices.Clone(good), good...), ErrSnapshotSequence},
		{"behind the accounts", nil, nil}, // no record: capacities of the genesis record, which hold all
		{"less than the genesis record", record(7, 10, 11), ErrSnapshotValue},
		{"what the genesis record says", record(8, 8, 8), ErrSnapshotValue},
		{"no securities", record(9, 0, 11), ErrSnapshotValue},
		{"more than there can be", record(1<<20, 1<<20, 11), ErrSnapshotValue},
		{"contracts without number", record(9, 10, 1<<40), ErrSnapshotValue},
	})
	kind = recordOrderRoom
	good = record(70, 33, 90)
	refused(good, []damage{
		{"orders: as it is", good, nil},
		{"orders: twice", append(slices.Clone(good), good...), ErrSnapshotSequence},
		{"orders: less than the genesis record", record(63, 33, 90), ErrSnapshotValue},
		{"orders: what the genesis record says", record(64, 32, 64), ErrSnapshotValue},
		{"orders: more than there can be", record(MaxOrders, 33, 90), ErrSnapshotValue},
		{"orders: keys without number", record(70, 33, 1<<40), ErrSnapshotValue},
	})
}
