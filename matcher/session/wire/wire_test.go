package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"posttrade/ring"
	"posttrade/ring/must"
)

// The offsets are those of session's doc.go, for clients in other languages.
func TestLayout(t *testing.T) {
	var q Request
	var r Record
	for name, at := range map[string][2]uintptr{
		"command":       {unsafe.Offsetof(q.Command), 0},
		"correlation":   {unsafe.Offsetof(q.Command.InputSeq), 8},
		"limit":         {unsafe.Offsetof(q.Command.LimitPx), 24},
		"order":         {unsafe.Offsetof(q.Command.OrderRef), 40},
		"quantity":      {unsafe.Offsetof(q.Command.Qty), 52},
		"type":          {unsafe.Offsetof(q.Command.Type), 60},
		"client id":     {unsafe.Offsetof(q.ClientID), 64},
		"what":          {unsafe.Offsetof(r.What), 2},
		"flags":         {unsafe.Offsetof(r.Flags), 6},
		"r.correlation": {unsafe.Offsetof(r.Correlation), 8},
		"sequence":      {unsafe.Offsetof(r.InputSeq), 16},
		"time":          {unsafe.Offsetof(r.TimeMillis), 24},
		"price":         {unsafe.Offsetof(r.Px), 32},
		"last price":    {unsafe.Offsetof(r.LastPx), 40},
		"trade":         {unsafe.Offsetof(r.TradeSeq), 48},
		"r.order":       {unsafe.Offsetof(r.OrderRef), 56},
		"leaves":        {unsafe.Offsetof(r.Leaves), 72},
		"fills":         {unsafe.Offsetof(r.Fills), 80},
		"missed":        {unsafe.Offsetof(r.Missed), 88},
		"position":      {unsafe.Offsetof(r.PositionQty), 96},
		"r.limit":       {unsafe.Offsetof(r.LimitPx), 112},
	} {
		if at[0] != at[1] {
			t.Errorf("%s lies at %d, want %d", name, at[0], at[1])
		}
	}
	if total, page := CommandBytes(16); page != 8192+4096 || total != page+4096 {
		t.Errorf("a command region of 16 slots has %d bytes, its page at %d", total, page)
	}
	if got := EventBytes(16); got != 8192+16*128 {
		t.Errorf("an event region of 16 slots has %d bytes", got)
	}
}

func TestFrames(t *testing.T) {
	h := HelloFrame{Role: DropCopy, CommandSlots: 16, EventSlots: 32, Token: []byte("token")}
	kind, status, body, err := Parse(h.Append(nil))
	if err != nil || kind != Hello || status != OK {
		t.Fatal(kind, status, err)
	}
	if got, err := ParseHello(body); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("hello %+v, %v", got, err)
	}
	w := WelcomeFrame{Session: 1, CommandBytes: 2, ClientPage: 3, EventBytes: 4, CommandSlots: 5,
		EventSlots: 6, Quota: 7}
	kind, _, body, err = Parse(w.Append(nil))
	if err != nil || kind != Welcome {
		t.Fatal(kind, err)
	}
	if got, err := ParseWelcome(body); err != nil || got != w {
		t.Errorf("welcome %+v, %v", got, err)
	}
	kind, status, body, err = Parse(AppendRefusal(nil, Goodbye, Shutdown))
	if err != nil || kind != Goodbye || status != Shutdown ||
		Reason(status, body) != `"server shuts down"` {
		t.Errorf("goodbye %d %d %s %v", kind, status, body, err)
	}
	if got := Reason(TooMany, nil); got != "too many sessions" {
		t.Errorf("reason %s", got)
	}
	if got := Reason(TooMany, bytes.Repeat([]byte{0}, 10_000)); len(got) > 5*maxTextBytes ||
		strings.Contains(got, "\x00") {
		t.Errorf("reason of %d bytes: %s", len(got), got)
	}
	if got := Status(99).String(); got != "status 99" {
		t.Errorf("status %s", got)
	}
	if Decided.String() != "DECIDED" || Refused.String() != "REFUSED" || Code(99).String() != "CODE" {
		t.Error("names of codes")
	}
}

// FuzzFrames asserts that any bytes are either a frame or an error, without a panic.
func FuzzFrames(f *testing.F) {
	f.Add((&HelloFrame{Role: Orders, Token: []byte("t")}).Append(nil))
	f.Add((&WelcomeFrame{}).Append(nil))
	f.Add(AppendText(nil, Lookup, OK, []byte("AAA")))
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, status, body, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrFrame) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(AppendText(nil, kind, status, body), b) {
			t.Fatal("the frame is another one when written again")
		}
		if h, err := ParseHello(body); err == nil && len(h.Token) > MaxTokenBytes {
			t.Fatalf("a token of %d bytes", len(h.Token))
		}
		if w, err := ParseWelcome(body); err == nil &&
			w == (WelcomeFrame{Session: 1, Quota: ^uint32(0)}) {
			t.Fatal("unlikely")
		}
	})
}

// pair is both ends of an event ring over memory of this process.
func pair(t *testing.T, slots int) (*Outbox, *Inbox, Page) {
	t.Helper()
	region := func(bytes int) *ring.Region {
		r := must.Get(ring.Anonymous(bytes))(t)
		t.Cleanup(func() { r.Close() })
		return r
	}
	page := PageAt(region(PageBytes), 0)
	events := region(EventBytes(slots))
	out, err := NewOutbox(events, slots, page, 5)
	must.OK(t, err)
	in, err := OpenInbox(events,
		&WelcomeFrame{Session: 5, EventSlots: uint32(slots), EventBytes: uint64(EventBytes(slots))}, page)
	must.OK(t, err)
	return out, in, page
}

// The reader sees records after Flush, in order, over many laps, and never more than fit.
func TestEventsGoRound(t *testing.T) {
	out, in, _ := pair(t, 4)
	dst := make([]Record, 3)
	put, got := uint64(0), uint64(0)
	for range 100 {
		if !out.Refresh() {
			t.Fatal("a cursor of a correct client is not believed")
		}
		for out.Room() > 0 {
			out.Put(&Record{InputSeq: put})
			put++
		}
		if !in.Empty() && got == 0 {
			t.Fatal("seen before Flush")
		}
		if !out.Pending() {
			t.Fatal("nothing pending")
		}
		out.Flush()
		if out.Pending() {
			t.Fatal("still pending")
		}
		for n := in.Next(dst); n > 0; n = in.Next(dst) {
			for _, r := range dst[:n] {
				if r.InputSeq != got {
					t.Fatalf("got record %d, want %d", r.InputSeq, got)
				}
				got++
			}
		}
	}
	if got != put || put != 400 {
		t.Errorf("%d put, %d got", put, got)
	}
}

// A cursor outside the published records is not accepted, and has no effect.
func TestLyingReader(t *testing.T) {
	out, _, page := pair(t, 4)
	for range 3 {
		out.Put(&Record{})
	}
	out.Flush()
	page.consumed.Store(2)
	if !out.Refresh() || out.Room() != 3 {
		t.Fatalf("room %d", out.Room())
	}
	out.Put(&Record{}) // written, not published
	for _, lie := range []int64{-1, 1, 4, 5, 1 << 62, -1 << 63} {
		page.consumed.Store(lie)
		if out.Refresh() || out.Room() != 2 {
			t.Errorf("cursor %d: room %d", lie, out.Room())
		}
	}
}

func TestEventRegionsAreChecked(t *testing.T) {
	region := must.Get(ring.Anonymous(EventBytes(16)))(t)
	defer region.Close()
	page := PageAt(region, 0)
	for _, slots := range []int{0, 1, 3, 15} {
		if _, err := NewOutbox(region, slots, page, 1); !errors.Is(err, ring.ErrCapacity) {
			t.Errorf("%d slots: %v", slots, err)
		}
	}
	if _, err := NewOutbox(region, 32, page, 1); !errors.Is(err, ErrEvents) {
		t.Errorf("too small: %v", err)
	}
	good := WelcomeFrame{Session: 1, EventSlots: 16, EventBytes: uint64(EventBytes(16))}
	if _, err := OpenInbox(region, &good, page); !errors.Is(err, ErrEvents) {
		t.Errorf("without a header: %v", err)
	}
	must.Get(NewOutbox(region, 16, page, 1))(t)
	if _, err := OpenInbox(region, &good, page); err != nil {
		t.Errorf("good: %v", err)
	}
	other := good
	other.Session = 2
	if _, err := OpenInbox(region, &other, page); !errors.Is(err, ErrEvents) {
		t.Errorf("another session's: %v", err)
	}
	other = good
	other.EventSlots = 3
	if _, err := OpenInbox(region, &other, page); !errors.Is(err, ring.ErrCapacity) {
		t.Errorf("3 slots: %v", err)
	}
}
