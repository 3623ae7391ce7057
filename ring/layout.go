package ring

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"reflect"
	"sync/atomic"
	"unsafe"
)

// Errors of constructors; test them by errors.Is.
var (
	ErrCapacity = errors.New("capacity is not a power of two from 2 to 2^30")
	ErrSlotSize = errors.New("slot is neither 64 nor 128 bytes")
	ErrFormat   = errors.New("region does not hold this ring")
	ErrReadOnly = errors.New("region is read-only")
)

// kind says which ring a region holds.
type kind uint32

const (
	kindSPSC   kind = 1
	kindMPSC   kind = 2
	kindFanout kind = 3
)

func (k kind) String() string {
	switch k {
	case kindSPSC:
		return "spsc"
	case kindMPSC:
		return "mpsc"
	case kindFanout:
		return "fanout"
	}
	return fmt.Sprintf("kind(%d)", uint32(k))
}

const (
	magic       = 0x31474e5244545350 // "PSTDRNG1", little-endian
	version     = 1
	maxCapacity = 1 << 30
	linesOffset = pageBytes
	lapsOffset  = linesOffset + 4*cacheLine
)

// header is the first page of a region. Its writer is New…; magic is written
// last, so a half-made region is never opened. OpenSPSC loads each field once.
type header struct {
	magic      atomic.Uint64
	version    atomic.Uint32
	kind       atomic.Uint32
	slotBytes  atomic.Uint32
	creator    atomic.Uint32 // process id, for a person who inspects the region
	capacity   atomic.Uint64
	bytes      atomic.Uint64 // of the region that the creator saw
	generation atomic.Uint64 // raised by each New… over the same region
}

// lines are the shared words behind the header, one spacing each.
type lines struct {
	head   cursor // published; of an MPSC: claimed. Writer: the producer(s)
	tail   cursor // consumed. Writer: the consumer
	waiter Waiter
}

// plan holds the offsets of the parts of a region.
type plan struct {
	kind      kind
	slotBytes int
	capacity  int
	slots     int // offset of the slots
	bytes     int // total
}

// planFor computes the layout of a ring of T, or says why there is none.
func planFor[T any](k kind, capacity int) (plan, error) {
	t := reflect.TypeFor[T]()
	if size := t.Size(); size != 64 && size != 128 {
		return plan{}, fmt.Errorf("%s has %d bytes: %w", t, size, ErrSlotSize)
	}
	if err := pointerFree(t); err != nil {
		return plan{}, err
	}
	if capacity < 2 || capacity > maxCapacity || capacity&(capacity-1) != 0 {
		return plan{}, fmt.Errorf("capacity=%d: %w", capacity, ErrCapacity)
	}
	p := plan{kind: k, slotBytes: int(t.Size()), capacity: capacity, slots: lapsOffset}
	if k == kindMPSC {
		p.slots += 4 * capacity
	}
	p.slots = (p.slots + pageBytes - 1) &^ (pageBytes - 1)
	p.bytes = p.slots + p.slotBytes*capacity
	return p, nil
}

// SPSCBytes is the size of a region for a ring of T, 0 when NewSPSC would refuse T or capacity.
func SPSCBytes[T any](capacity int) int { return bytesFor[T](kindSPSC, capacity) }

// MPSCBytes is the size of a region for a ring of T, 0 when NewMPSC would refuse T or capacity.
func MPSCBytes[T any](capacity int) int { return bytesFor[T](kindMPSC, capacity) }

// FanoutBytes is the size of a region for a ring of T, 0 when NewFanout would refuse T or capacity.
func FanoutBytes[T any](capacity int) int { return bytesFor[T](kindFanout, capacity) }

func bytesFor[T any](k kind, capacity int) int {
	p, _ := planFor[T](k, capacity)
	return p.bytes
}

// parts are the typed views of a region that a ring works with. They are made once, from checked
// numbers; no value read from the region later changes them.
type parts[T any] struct {
	lines *lines
	laps  []uint32 // MPSC only
	slots []T
}

func viewOf[T any](mem []byte, p plan) parts[T] {
	v := parts[T]{
		lines: (*lines)(unsafe.Pointer(&mem[linesOffset])),
		slots: unsafe.Slice((*T)(unsafe.Pointer(&mem[p.slots])), p.capacity),
	}
	if p.kind == kindMPSC {
		v.laps = unsafe.Slice((*uint32)(unsafe.Pointer(&mem[lapsOffset])), p.capacity)
	}
	return v
}

// format makes the region a fresh, empty ring, whatever it held before.
func format[T any](region *Region, k kind, capacity int) (parts[T], error) {
	p, err := planFor[T](k, capacity)
	if err != nil {
		return parts[T]{}, fmt.Errorf("ring: new %s: %w", k, err)
	}
	if region.readOnly {
		return parts[T]{}, fmt.Errorf("ring: new %s: %w", k, ErrReadOnly)
	}
	if len(region.mem) < p.bytes {
		return parts[T]{}, fmt.Errorf("ring: new %s capacity=%d: region of %d bytes, needs %d: %w",
			k, capacity, len(region.mem), p.bytes, ErrSize)
	}
	h := (*header)(unsafe.Pointer(&region.mem[0]))
	h.magic.Store(0)
	v := viewOf[T](region.mem, p)
	v.lines.head.v.Store(0)
	v.lines.tail.v.Store(0)
	v.lines.waiter.word.Store(awake)
	clear(v.laps)
	h.version.Store(version)
	h.kind.Store(uint32(k))
	h.slotBytes.Store(uint32(p.slotBytes))
	h.creator.Store(uint32(os.Getpid()))
	h.capacity.Store(uint64(capacity))
	h.bytes.Store(uint64(len(region.mem)))
	h.generation.Add(1)
	h.magic.Store(magic)
	return v, nil
}

// open checks a region that another process may be writing to and returns its views, those of an
// SPSC. Each field is loaded once; only the checked copy is used.
func open[T any](region *Region) (parts[T], error) {
	fail := func(format string, args ...any) (parts[T], error) {
		return parts[T]{}, fmt.Errorf("ring: open spsc: %w: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
	if region.readOnly {
		return parts[T]{}, fmt.Errorf("ring: open spsc: %w", ErrReadOnly)
	}
	if len(region.mem) < lapsOffset {
		return fail("region of %d bytes has no header", len(region.mem))
	}
	h := (*header)(unsafe.Pointer(&region.mem[0]))
	if got := h.magic.Load(); got != magic {
		return fail("magic %016x, want %016x", got, uint64(magic))
	}
	if got := h.version.Load(); got != version {
		return fail("version %d, want %d", got, version)
	}
	if got := kind(h.kind.Load()); got != kindSPSC {
		return fail("it is a %s", got)
	}
	capacity := h.capacity.Load()
	if capacity > maxCapacity {
		return fail("capacity %d", capacity)
	}
	p, err := planFor[T](kindSPSC, int(capacity))
	if err != nil {
		return fail("%v", err)
	}
	if got := h.slotBytes.Load(); got != uint32(p.slotBytes) {
		return fail("slots of %d bytes, want %d", got, p.slotBytes)
	}
	if got := h.bytes.Load(); got < uint64(p.bytes) || len(region.mem) < p.bytes {
		return fail("region of %d bytes, mapped %d, needs %d", got, len(region.mem), p.bytes)
	}
	return viewOf[T](region.mem, p), nil
}

// cursors returns the positions at which a side takes up its work: tail <= head <= tail+capacity.
// The cursor of the side that attaches does not move, so the pair was valid at one moment.
func (v parts[T]) cursors() (head, tail int64, err error) {
	tail, head = v.lines.tail.v.Load(), v.lines.head.v.Load()
	if 0 <= tail && tail <= head && head-tail <= int64(len(v.slots)) && head <= maxPosition {
		return head, tail, nil
	}
	return 0, 0, fmt.Errorf("ring: open spsc: %w: cursors %d and %d at capacity %d", ErrFormat, tail,
		head, len(v.slots))
}

// maxPosition leaves room to add capacities to a position without overflow. At a thousand million
// slots a second a ring reaches it after a century.
const maxPosition = 1 << 62

// log2 of a capacity: the shift that turns a position into a lap.
func log2(capacity int) uint { return uint(bits.TrailingZeros(uint(capacity))) }
