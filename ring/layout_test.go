package ring

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"unsafe"

	"posttrade/ring/must"
)

type (
	slot63  struct{ _ [63]byte }
	pointed struct {
		_ *int
		_ [56]byte
	}
)

func TestLayoutIsPinned(t *testing.T) {
	var h header
	var l lines
	got := map[string]uintptr{
		"version":    unsafe.Offsetof(h.version),
		"kind":       unsafe.Offsetof(h.kind),
		"slotBytes":  unsafe.Offsetof(h.slotBytes),
		"creator":    unsafe.Offsetof(h.creator),
		"capacity":   unsafe.Offsetof(h.capacity),
		"bytes":      unsafe.Offsetof(h.bytes),
		"generation": unsafe.Offsetof(h.generation),
		"head":       linesOffset + unsafe.Offsetof(l.head),
		"tail":       linesOffset + unsafe.Offsetof(l.tail),
		"waiter":     linesOffset + unsafe.Offsetof(l.waiter),
		"laps":       lapsOffset,
		"spsc 8":     uintptr(SPSCBytes[msg](8)),
		"spsc 64":    uintptr(SPSCBytes[event](64)),
		"mpsc 1024":  uintptr(MPSCBytes[msg](1024)),
		"fanout 64":  uintptr(FanoutBytes[event](64)),
		"bad":        uintptr(SPSCBytes[msg](3) + MPSCBytes[slot63](8) + FanoutBytes[pointed](8)),
	}
	want := map[string]uintptr{
		"version": 8, "kind": 12, "slotBytes": 16, "creator": 20, "capacity": 24, "bytes": 32,
		"generation": 40, "head": 4096, "tail": 4224, "waiter": 4352, "laps": 4608,
		"spsc 8": 8192 + 512, "spsc 64": 8192 + 8192, "mpsc 1024": 12288 + 65536,
		"fanout 64": 8192 + 8192, "bad": 0,
	}
	for name, offset := range want {
		if got[name] != offset {
			t.Errorf("%s is %d, want %d", name, got[name], offset)
		}
	}
}

func TestConstructorsRefuse(t *testing.T) {
	enough := newRegion(t, 1<<20)
	_, oddSlot := NewSPSC[slot63](enough, 8)
	_, oddSlotMPSC := NewMPSC[slot63](enough, 8)
	_, oddSlotFanout := NewFanout[slot63](enough, 8)
	_, pointers := NewSPSC[pointed](enough, 8)
	_, pointersMPSC := NewMPSC[pointed](enough, 8)
	_, pointersFanout := NewFanout[pointed](enough, 8)
	short := newRegion(t, SPSCBytes[msg](8)-1)
	_, small := NewSPSC[msg](short, 8)
	_, smallMPSC := NewMPSC[msg](short, 8)
	_, smallFanout := NewFanout[msg](short, 8)
	tests := []struct {
		name      string
		got, want error
	}{
		{"spsc slot of 63 bytes", oddSlot, ErrSlotSize},
		{"mpsc slot of 63 bytes", oddSlotMPSC, ErrSlotSize},
		{"fanout slot of 63 bytes", oddSlotFanout, ErrSlotSize},
		{"spsc slot with a pointer", pointers, ErrPointers},
		{"mpsc slot with a pointer", pointersMPSC, ErrPointers},
		{"fanout slot with a pointer", pointersFanout, ErrPointers},
		{"spsc region too small", small, ErrSize},
		{"mpsc region too small", smallMPSC, ErrSize},
		{"fanout region too small", smallFanout, ErrSize},
	}
	for _, capacity := range []int{math.MinInt, -8, 0, 1, 3, 12, maxCapacity + 1, 2 * maxCapacity} {
		_, err := NewSPSC[msg](enough, capacity)
		if !errors.Is(err, ErrCapacity) {
			t.Errorf("capacity %d: got %v, want %v", capacity, err, ErrCapacity)
		}
	}
	for _, tt := range tests {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// patch is a hostile write into a formatted region.
type patch struct {
	at    uintptr
	bytes uintptr
	value uint64
}

func (p patch) apply(mem []byte) {
	for i := range p.bytes {
		mem[p.at+i] = byte(p.value >> (8 * i))
	}
}

func TestOpenRefusesHostileHeaders(t *testing.T) {
	var h header
	const capacity = 8
	tests := []struct {
		name    string
		patches []patch
	}{
		{"wrong magic", []patch{{0, 8, magic + 1}}},
		{"not formatted", []patch{{0, 8, 0}}},
		{"newer version", []patch{{unsafe.Offsetof(h.version), 4, version + 1}}},
		{"another kind", []patch{{unsafe.Offsetof(h.kind), 4, 4}}},
		{"slot size", []patch{{unsafe.Offsetof(h.slotBytes), 4, 128}}},
		{"slot size of zero", []patch{{unsafe.Offsetof(h.slotBytes), 4, 0}}},
		{"capacity of zero", []patch{{unsafe.Offsetof(h.capacity), 8, 0}}},
		{"capacity of one", []patch{{unsafe.Offsetof(h.capacity), 8, 1}}},
		{"odd capacity", []patch{{unsafe.Offsetof(h.capacity), 8, 7}}},
		{"more slots than the region holds", []patch{{unsafe.Offsetof(h.capacity), 8, 16384}}},
		{"most slots", []patch{{unsafe.Offsetof(h.capacity), 8, maxCapacity}}},
		{"capacity that overflows", []patch{{unsafe.Offsetof(h.capacity), 8, 1 << 63}}},
		{"capacity beyond 32 bits", []patch{{unsafe.Offsetof(h.capacity), 8, 1<<32 + 8}}},
		{"shorter than it says", []patch{{unsafe.Offsetof(h.bytes), 8, 8191}}},
		{"consumed before zero", []patch{{4224, 8, 1 << 63}}},
		{"consumed beyond published", []patch{{4224, 8, 1}}},
		{"published before zero", []patch{{4096, 8, 1 << 63}}},
		{"published a lap ahead", []patch{{4096, 8, capacity + 1}}},
		{"positions at the end of numbers", []patch{{4096, 8, 1<<63 - 1}, {4224, 8, 1<<63 - 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			region := newRegion(t, 65536)
			NewSPSC[msg](region, capacity)
			for _, p := range tt.patches {
				p.apply(region.Bytes())
			}
			if _, err := OpenSPSC[msg](region); !errors.Is(err, ErrFormat) {
				t.Errorf("got %v, want %v", err, ErrFormat)
			}
		})
	}
}

func TestOpenRefusesAnotherRing(t *testing.T) {
	region := newRegion(t, 65536)
	must.Get(NewSPSC[msg](region, 8))(t)
	mpsc, fanout := newRegion(t, 65536), newRegion(t, 65536)
	NewMPSC[msg](mpsc, 8)
	NewFanout[msg](fanout, 8)
	_, kind1 := OpenSPSC[msg](mpsc)
	_, kind2 := OpenSPSC[msg](fanout)
	_, slots := OpenSPSC[event](region)
	_, odd := OpenSPSC[slot63](region)
	truncated := &Region{mem: region.mem[:SPSCBytes[msg](8)-1], heap: true}
	_, short := OpenSPSC[msg](truncated)
	_, tiny := OpenSPSC[msg](&Region{mem: region.mem[:64], heap: true})
	for _, err := range []error{kind1, kind2, slots, odd, short, tiny} {
		if !errors.Is(err, ErrFormat) {
			t.Errorf("got %v, want %v", err, ErrFormat)
		}
	}
	readOnly := &Region{mem: region.mem, heap: true, readOnly: true}
	_, err1 := OpenSPSC[msg](readOnly)
	_, err2 := NewSPSC[msg](readOnly, 8)
	for _, err := range []error{err1, err2} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("got %v, want %v", err, ErrReadOnly)
		}
	}
}

func TestFormattingAgainStartsEmpty(t *testing.T) {
	region := newRegion(t, 65536)
	r, err := NewMPSC[msg](region, 8)
	must.OK(t, err)
	lo, _ := r.ClaimN(8)
	r.Publish(lo, 8)
	if r, err = NewMPSC[msg](region, 8); err != nil {
		t.Fatal(err)
	}
	if lo, hi := r.Ready(8); lo != 0 || hi != 0 || r.Depth() != 0 || !r.Empty() {
		t.Errorf("ready [%d, %d), depth %d: want an empty ring", lo, hi, r.Depth())
	}
}

// A peer may write any value into the cursors at any time: the ring stops, and no memory outside it
// is touched.
func TestHostileCursorsStopTheRing(t *testing.T) {
	hostile := []int64{math.MinInt64, -1, 9, 1 << 40, math.MaxInt64}
	for _, cursor := range hostile {
		r := newTestSPSC(t, 8)
		_, end := r.ClaimSome(8)
		r.PublishTo(end)
		if _, hi := r.Ready(4); hi != 4 || r.Corrupt() {
			t.Fatalf("ready up to %d, corrupt %v, want 4, false", hi, r.Corrupt())
		}
		lines := (*lines)(unsafe.Pointer(&r.region.mem[linesOffset]))
		lines.tail.v.Store(cursor)
		if slot := r.Claim(); slot != nil || !r.Corrupt() {
			t.Errorf("consumed %d: slot %p, corrupt %v, want nil, true", cursor, slot, r.Corrupt())
		}

		r = newTestSPSC(t, 8)
		atomic.StoreInt64(r.published, cursor)
		lo, hi := r.Ready(8)
		if lo != hi || !r.Corrupt() || !r.Empty() {
			t.Errorf("published %d: ready [%d, %d), corrupt %v, want none, true", cursor, lo, hi,
				r.Corrupt())
		}

		f := newTestFanout(t, 8)
		f.gate.v.Store(cursor)
		if limit := f.Limit(); limit != 4 {
			t.Errorf("gate %d: limit %d, want 4", cursor, limit)
		}

		m := newTestMPSC(t, 8)
		m.claimed.v.Store(cursor)
		m.tail.v.Store(cursor)
		if lo, ok := m.ClaimN(1); ok && !Checks {
			m.Publish(lo, 1) // writes somewhere in the ring; with checks it panics
		}
		if d := m.Depth(); d < 0 || d > 8 {
			t.Errorf("depth %d of a ring of 8", d)
		}
	}
}
