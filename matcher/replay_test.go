package matcher

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"slices"
	"testing"
	"unsafe"
)

// compare runs a tape through the engine and the model and compares every event,
// every invariant and every position after each command.
func compare(t *testing.T, r *rig, m *naive, tape []byte, seen func([]Event)) {
	t.Helper()
	p := newPilot()
	for step := 0; len(tape) >= wordBytes; step++ {
		c := p.command(tape[:wordBytes])
		tape = tape[wordBytes:]
		got := r.do(c)
		want := m.apply(c)
		if !slices.Equal(got, want) {
			t.Fatalf("step %d %+v\n got %q\nwant %q\n got %+v\nwant %+v", step, c, describe(got),
				describe(want), got, want)
		}
		m.compare(t, r.e)
		p.saw(got)
		seen(got)
	}
}

// compare reads the whole engine, and checks that crossed trades sum to zero.
func (m *naive) compare(t *testing.T, e *Engine) {
	t.Helper()
	sums := make([]int64, len(m.securities))
	e.EachPosition(func(p PositionInfo) bool {
		want := m.position(p.AccountID, p.SecurityID)
		if p.Qty != want.qty || p.AverageCost != want.avg {
			t.Fatalf("position %+v, want %+v", p, want)
		}
		sums[p.SecurityID-1] += p.Qty
		return true
	})
	for i, s := range m.securities {
		if sums[i] != s.oneSided {
			t.Fatalf("positions in security %d sum to %d, one-sided trades to %d", i+1, sums[i], s.oneSided)
		}
	}
	e.EachAccount(func(a AccountInfo) bool {
		want := m.accounts[a.ID]
		m.cmd.AccountID = a.ID
		row := &e.accounts.rows[e.accounts.find(a.ID)]
		for id, limit := range e.boundsOf(&request{bounds: row.bounds()}).RiskLimits {
			if limit != m.limit(LimitID(id)) {
				t.Fatalf("account %d: %v=%d, want %d", a.ID, LimitID(id), limit, m.limit(LimitID(id)))
			}
		}
		if a.Enabled != want.enabled || a.Executed != want.executed.Int64() {
			t.Fatalf("account %+v, want %+v", a, want)
		}
		return true
	})
	orders := slices.Concat(m.open, m.retained)
	e.EachOrder(func(o OrderInfo) bool {
		if len(orders) == 0 || o != orders[0].info() {
			t.Fatalf("order %+v, want the first of %+v", o, orders)
		}
		orders = orders[1:]
		return true
	})
	if len(orders) != 0 {
		t.Fatalf("order %+v is missing", orders[0])
	}
	e.EachSecurity(func(s SecurityInfo) bool {
		w := m.securities[s.ID-1]
		want := SecurityInfo{
			ID: s.ID, Ticker: w.ticker, Controlled: w.known, Enabled: w.enabled, Halted: w.halted,
			Restricted: w.restricted,
			LastPx:     w.lastPx, LastPxTimeMillis: w.lastTime, LastTradePx: w.lastTrade,
		}
		if s != want {
			t.Fatalf("security %+v, want %+v", s, want)
		}
		return true
	})
	m.compareContracts(t, e)
}

// Without a collar the limits that apply bound a purchase at the market.
func TestEngineWithoutACollarMatchesTheModel(t *testing.T) {
	rnd := seeded(t)
	g := crowded()
	g.Limits.PriceCollarBps = 0
	tape := make([]byte, min(runLength()/3, 20_000)*wordBytes)
	for i := range tape {
		tape[i] = byte(rnd.Uint32())
	}
	cut := [ReasonCount]int{}
	compare(t, newRig(t, g), newNaive(g), tape, func(events []Event) {
		for i := range events {
			if events[i].Kind == EventCanceled {
				cut[events[i].Reason]++
			}
		}
	})
	t.Logf("rests of orders cancelled: %v", cut)
}

func TestEngineMatchesTheModel(t *testing.T) {
	rnd := seeded(t)
	r := newRig(t, crowded())
	kinds, reasons, flagged := [16]int{}, [ReasonCount]int{}, [16]int{}
	tape := make([]byte, runLength()*wordBytes)
	for i := range tape {
		tape[i] = byte(rnd.Uint32())
	}
	compare(t, r, newNaive(crowded()), tape, func(events []Event) {
		for i := range events {
			kinds[events[i].Kind]++
			reasons[events[i].Reason]++
			for bit := range flagged {
				flagged[bit] += int(events[i].Flags >> bit & 1)
			}
		}
	})
	t.Logf("kinds %v\nreasons %v\nflags %v\n%+v", kinds[1:11], reasons, flagged[:8], r.e.Counts())
	if runLength() < 50_000 {
		return
	}
	// The run must reach every kind and every reason.
	for kind, n := range kinds[1:11] {
		if n == 0 {
			t.Errorf("no event of kind %d", kind+1)
		}
	}
	for reason, n := range reasons {
		if n == 0 {
			t.Errorf("no event with reason %v", RiskReason(reason))
		}
	}
	for bit, n := range flagged[:8] {
		if n == 0 {
			t.Errorf("no event with flag bit %d", bit)
		}
	}
}

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
	e, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := e.WriteSnapshot(&b); err != nil {
		t.Fatal(err)
	}
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
	e, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	h.follow(t, e, 0)
	for section, snapshot := range h.snapshots {
		e, err := ReadSnapshot(g, bytes.NewReader(snapshot))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(snapshotOf(t, e), snapshot) {
			t.Fatalf("section %d: restored is not what was written", section)
		}
		if err := e.check(); err != nil {
			t.Fatalf("section %d: restored: %v", section, err)
		}
		h.follow(t, e, section+1)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A restore between any two commands changes no event.
func TestEngineRestoredBeforeEveryCommandMatchesTheModel(t *testing.T) {
	rnd := seeded(t)
	r := newRig(t, crowded())
	r.reread = true
	tape := make([]byte, min(runLength()/10, 3000)*wordBytes)
	for i := range tape {
		tape[i] = byte(rnd.Uint32())
	}
	compare(t, r, newNaive(crowded()), tape, func([]Event) {})
}

func FuzzEngineInvariants(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00"))
	for seed := range byte(4) {
		tape := make([]byte, 64*wordBytes)
		for i := range tape {
			tape[i] = byte(i)*31*(seed*2+1) + byte(i>>3)*seed
		}
		f.Add(tape)
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		r := newRig(t, crowded())
		compare(t, r, newNaive(crowded()), tape, func([]Event) {})
		before := r.e.StateHash()
		r.e = r.restored()
		if r.e.StateHash() != before {
			t.Error("restored is not what was written")
		}
	})
}
