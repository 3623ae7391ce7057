package wire

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"posttrade/ring"
)

// PageBytes is the unit in which regions are laid out, whatever the page size of the system: it
// keeps the words of different writers apart, and is a part of the protocol.
const PageBytes = 4096

// Offsets in the event region, and in the client's page of the command region.
const (
	eventPublished = PageBytes     // the server's cursor
	eventSlots     = 2 * PageBytes // the records

	pageConsumed = 0
	pageWaiter   = 128
)

// eventMagic is the first eight bytes of an event region, as a little-endian number.
const eventMagic = 0x3154564544545350 // "PSTDEVT1"

// ErrEvents reports a region that does not hold an event ring: it is too small, or its first page
// is not what the welcome says.
var ErrEvents = errors.New("region does not hold this event ring")

// eventHead is the first page of the event region. Its writer is the server, once.
type eventHead struct {
	magic     uint64
	version   uint32
	slotBytes uint32
	capacity  uint64
	bytes     uint64
	session   uint64
}

// CommandBytes is the size of a command region and the offset of the client's page in it: the ring
// of package ring, up to a whole page, and the client's page behind it.
func CommandBytes(slots int) (total, page int) {
	page = (ring.SPSCBytes[Request](slots) + PageBytes - 1) &^ (PageBytes - 1)
	return page + PageBytes, page
}

// Slots views the slots of a command region, which are the last part of the ring. Their content may
// change during a read, so the server copies a slot before it looks at it.
func Slots(region *ring.Region, slots int) []Request {
	end := ring.SPSCBytes[Request](slots)
	mem := region.Bytes()[end-slots*RequestBytes : end]
	return unsafe.Slice((*Request)(unsafe.Pointer(&mem[0])), slots)
}

// EventBytes is the size of an event region.
func EventBytes(slots int) int { return eventSlots + slots*RecordBytes }

// Page is the client's page: all words of the event ring that the client writes.
type Page struct {
	consumed *atomic.Int64
	Waiter   *ring.Waiter // where the client parks
}

// PageAt views the client's page of a command region. It panics for an offset outside, which the
// caller has compared with CommandBytes.
func PageAt(region *ring.Region, offset int) Page {
	mem := region.Bytes()
	_ = mem[offset+PageBytes-1]
	return Page{
		consumed: (*atomic.Int64)(unsafe.Pointer(&mem[offset+pageConsumed])),
		Waiter:   (*ring.Waiter)(unsafe.Pointer(&mem[offset+pageWaiter])),
	}
}

// NewOutbox makes the writing end of a fresh event ring over a zeroed region. Only the server can
// write the region, and it never reads a value back from it. Errors: ring.ErrCapacity for slots
// that are no power of two, ErrEvents for a region that is too small.
func NewOutbox(region *ring.Region, slots int, page Page, session uint64) (*Outbox, error) {
	mem := region.Bytes()
	if err := usable(mem, slots); err != nil {
		return nil, err
	}
	head := (*eventHead)(unsafe.Pointer(&mem[0]))
	*head = eventHead{magic: eventMagic, version: Version, slotBytes: RecordBytes,
		capacity: uint64(slots), bytes: uint64(len(mem)), session: session}
	return &Outbox{
		slots: unsafe.Slice((*Record)(unsafe.Pointer(&mem[eventSlots])), slots),
		mask:  int64(slots - 1), page: page,
		cursor: (*atomic.Int64)(unsafe.Pointer(&mem[eventPublished])),
	}, nil
}

// OpenInbox makes the reading end of the event ring that the welcome describes. ErrEvents when the
// region's first page says otherwise. The region may be mapped read-only: the reader's cursor is in
// the client's page.
func OpenInbox(region *ring.Region, w *WelcomeFrame, page Page) (*Inbox, error) {
	mem, slots := region.Bytes(), int(w.EventSlots)
	if err := usable(mem, slots); err != nil {
		return nil, err
	}
	want := eventHead{magic: eventMagic, version: Version, slotBytes: RecordBytes,
		capacity: uint64(slots), bytes: w.EventBytes, session: w.Session}
	if got := *(*eventHead)(unsafe.Pointer(&mem[0])); got != want {
		return nil, fmt.Errorf("session: open events head=%+v, want %+v: %w", got, want, ErrEvents)
	}
	return &Inbox{
		slots: unsafe.Slice((*Record)(unsafe.Pointer(&mem[eventSlots])), slots),
		mask:  int64(slots - 1), page: page,
		cursor: (*atomic.Int64)(unsafe.Pointer(&mem[eventPublished])),
	}, nil
}

// usable returns the reason why a mapping cannot hold an event ring of slots slots.
func usable(mem []byte, slots int) error {
	if slots < 2 || slots&(slots-1) != 0 {
		return fmt.Errorf("session: events slots=%d: %w", slots, ring.ErrCapacity)
	}
	if len(mem) < EventBytes(slots) {
		return fmt.Errorf("session: events bytes=%d slots=%d: %w", len(mem), slots, ErrEvents)
	}
	return nil
}

// AdaptiveYields is how often an idle end of a session, in mode adaptive, gives its core to others
// before it sleeps: some fifty microseconds when no other thread wants the core. It is as long as a
// round trip takes: either end then finds the other awake. A sleep with its wake-up would cost each
// of the two more than that.
const AdaptiveYields = 100
