package matcher

import (
	"unsafe"

	"posttrade/ring"
)

// Outlet is where the engine writes its events: a window of power-of-two slots, either the output
// ring's own memory or a private buffer. The engine's goroutine owns it.
//
// When the window is full the engine calls More, which must make room by raising Limit. The live
// engine publishes what is written and waits for the recorder; a replay hands the events to its
// reader and starts over.
type Outlet struct {
	// The memory of the window, and its length less one. A position is a number that only rises; the
	// slot is the position modulo the length.
	Slots []Event
	Mask  int64
	Next  int64 // the position to write next
	Limit int64 // the engine may write positions below it
	// Called on the engine's goroutine, in the middle of a command. It returns only with room, and
	// must not call the engine.
	More func(o *Outlet)
}

// NewOutlet returns a private window of capacity slots (a power of two) that hands its events to
// drain when it is full. The caller calls Flush at the end of a command, or of several.
//
// The events are valid until drain returns: the window is used again. A command with more events
// than capacity reaches drain in parts; EventLast marks its end.
func NewOutlet(capacity int, drain func(events []Event)) *Outlet {
	o := &Outlet{Slots: make([]Event, capacity), Mask: int64(capacity - 1), Limit: int64(capacity)}
	o.More = func(o *Outlet) {
		drain(o.Slots[:o.Next])
		o.Next = 0
	}
	return o
}

// Flush hands the remaining events of a private window to drain, and does nothing when there are
// none. It is not for the outlet of a Stage.
func (o *Outlet) Flush() {
	if o.Next > 0 {
		o.More(o)
	}
}

// claim returns the next slot, which must be below Limit. The slot still has its old content: the
// caller writes every field of the first line.
func (o *Outlet) claim() *Event {
	e := o.slot(o.Next)
	o.Next++
	return e
}

// last returns the last event written, which the engine may still change until the command ends:
// More is called only before a claim, so a command's last event has not left the window.
func (o *Outlet) last() *Event { return o.slot(o.Next - 1) }

// full reports that More has to make room before the next claim.
func (o *Outlet) full() bool { return o.Next == o.Limit }

// slot returns the slot of a position: one load and no bounds check, because the mask is the size
// of the window less one.
func (o *Outlet) slot(position int64) *Event {
	if ring.Checks {
		_ = o.Slots[position&o.Mask]
	}
	return (*Event)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(o.Slots)),
		uintptr(position&o.Mask)*EventBytes))
}
