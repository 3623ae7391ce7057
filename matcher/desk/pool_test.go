package desk

import (
	"errors"
	"testing"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
)

// sharedDesk is a desk with tickets of each kind in front of a ring of slots.
func sharedDesk(t *testing.T, slots int, s Shares) (*Desk, *ring.MPSC[matcher.Command]) {
	t.Helper()
	region := must.Get(ring.Anonymous(ring.MPSCBytes[matcher.Command](slots)))(t)
	t.Cleanup(func() { region.Close() })
	in := must.Get(ring.NewMPSC[matcher.Command](region, slots))(t)
	d := must.Get(NewShared(in, s))(t)
	return d, in
}

func TestKindsHaveTicketsOfTheirOwn(t *testing.T) {
	want := Shares{Requests: 3, Sessions: 2, Sidecars: 1}
	d, _ := sharedDesk(t, 4096, want)
	if n := len(d.tickets); n != 6 {
		t.Errorf("%d tickets", n)
	}
	var out []*Ticket
	for kind, n := range []int{want.Requests, want.Sessions, want.Sidecars} {
		p := d.Pool(Kind(kind))
		for i := range n {
			ticket, err := p.Acquire(1 + i)
			if err != nil {
				t.Fatalf("kind %d: %v", kind, err)
			}
			out = append(out, ticket)
		}
		if _, err := p.Acquire(1); err != ErrBusy {
			t.Errorf("kind %d, one too many: %v", kind, err)
		}
		if p.Out() != n || p.Cap() != n {
			t.Errorf("kind %d: %d of %d out", kind, p.Out(), p.Cap())
		}
	}
	if d.Out() != 6 {
		t.Errorf("%d out", d.Out())
	}
	for _, ticket := range out {
		ticket.Release()
	}
	if d.Out() != 0 || d.Pool(Sessions).Out() != 0 {
		t.Errorf("%d out after their release", d.Out())
	}
	if _, err := d.Pool(Sessions).Acquire(MaxBatch + 1); !errors.Is(err, ErrSize) {
		t.Errorf("too large: %v", err)
	}
	d.Close()
	if _, err := d.Pool(Sidecars).Acquire(1); err != ErrClosed {
		t.Errorf("closed: %v", err)
	}
	for _, bad := range []Shares{{}, {Requests: -1, Sessions: 4},
		{Requests: MaxTickets, Sidecars: 1}} {
		if _, err := NewShared(d.in, bad); !errors.Is(err, ErrSize) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Requests leave a part of the input ring to sessions and sidecars; sessions leave one to sidecars.
func TestKindsLeaveRoomInTheInputRing(t *testing.T) {
	d, in := sharedDesk(t, 4096, Shares{Requests: 8, Sessions: 8, Sidecars: 8})
	fill := func(kind Kind) {
		t.Helper()
		p := d.Pool(kind)
		for size := MaxBatch; size > 0; {
			ticket, err := p.Acquire(size)
			must.OK(t, err)
			if err = ticket.Submit(); err == ErrFull {
				size /= 2
			} else if err != nil {
				t.Fatal(err)
			}
			ticket.Release()
		}
	}
	for _, step := range []struct {
		kind Kind
		want int
	}{{Requests, 3072}, {Sessions, 3840}, {Requests, 3840}, {Sidecars, 4096}} {
		fill(step.kind)
		if in.Depth() != step.want {
			t.Errorf("kind %d stops at %d commands, want %d", step.kind, in.Depth(), step.want)
		}
	}
	for _, tt := range [][3]int{{1024, 4, 0}, {2048, 4, 512}, {1200, 4, 176}, {65536, 16, 4096},
		{2, 4, 0}} {
		if got := spareOf(tt[0], tt[1]); got != tt[2] {
			t.Errorf("a part of 1/%d of %d slots: %d, want %d", tt[1], tt[0], got, tt[2])
		}
	}
}

// The buffers that a crowd of large batches has needed are not kept for ever.
func TestPoolsKeepOnlySoManyBuffers(t *testing.T) {
	r := newRig(t, 4096, 64)
	var out []*Ticket
	for range 64 {
		out = append(out, r.acquire(MaxBatch))
	}
	for _, ticket := range out {
		ticket.Release()
	}
	kept := 0
	for i := range r.desk.tickets {
		kept += len(r.desk.tickets[i].commands)
	}
	p := r.desk.Pool(Requests)
	if kept != keptCommands || p.room != keptCommands || len(p.large) != keptCommands/MaxBatch {
		t.Errorf("room for %d commands is kept, %d by its count, in %d tickets", kept, p.room,
			len(p.large))
	}
	for range 64 { // all of them can be used again
		out = append(out, r.acquire(2))
	}
	if p.room != 0 || p.Out() != 64 {
		t.Errorf("room %d, %d out", p.room, p.Out())
	}
}
