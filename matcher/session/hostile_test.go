package session

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
)

// hostile is a client that writes any value into its mappings.
type hostile struct {
	t       testing.TB
	socket  *os.File
	fds     [2]int
	welcome wire.WelcomeFrame
	memory  []byte // region 1, writable
	events  []byte // region 2, read-only
}

func (r *rig) hostile(role wire.Role, commands, events uint32) *hostile {
	r.t.Helper()
	c := r.raw()
	h := wire.HelloFrame{Role: role, CommandSlots: commands, EventSlots: events}
	must.Get(c.Write(h.Append(nil)))(r.t)
	frame, rights := make([]byte, wire.MaxFrameBytes), make([]byte, unix.CmsgSpace(8))
	n, rn, _, _, err := c.ReadMsgUnix(frame, rights)
	must.OK(r.t, err)
	_, status, body, err := wire.Parse(frame[:n])
	if err != nil || status != wire.OK {
		r.t.Fatal(status, err)
	}
	x := &hostile{t: r.t}
	if x.welcome, err = wire.ParseWelcome(body); err != nil {
		r.t.Fatal(err)
	}
	messages, _ := unix.ParseSocketControlMessage(rights[:rn])
	fds, err := unix.ParseUnixRights(&messages[0])
	must.OK(r.t, err)
	x.fds = [2]int(fds)
	if x.memory, err = unix.Mmap(fds[0], 0, int(x.welcome.CommandBytes),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		r.t.Fatal(err)
	}
	if x.events, err = unix.Mmap(fds[1], 0, int(x.welcome.EventBytes), unix.PROT_READ,
		unix.MAP_SHARED); err != nil {
		r.t.Fatal(err)
	}
	if x.socket, err = c.File(); err != nil {
		r.t.Fatal(err)
	}
	c.Close()
	r.t.Cleanup(x.leave)
	return x
}

// leave releases all resources, once.
func (x *hostile) leave() {
	if x.memory == nil {
		return
	}
	x.socket.Close()
	unix.Munmap(x.memory)
	unix.Munmap(x.events)
	unix.Close(x.fds[0])
	unix.Close(x.fds[1])
	x.memory = nil
}

// at is a word of the writable region.
func (x *hostile) at(offset uint64) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&x.memory[offset]))
}

const (
	published = 4096
	doorbell  = 4352
	slotsAt   = 8192
)

// farewell is the status of the server's goodbye.
func (x *hostile) farewell() wire.Status {
	x.t.Helper()
	frame := make([]byte, wire.MaxFrameBytes)
	n, err := x.socket.Read(frame)
	must.OK(x.t, err)
	kind, status, _, err := wire.Parse(frame[:n])
	if err != nil || kind != wire.Goodbye {
		x.t.Fatal(kind, err)
	}
	return status
}

// ringBell shows the server a cursor, as a client does.
func (x *hostile) ringBell(n int64) {
	x.at(published).Store(n)
	word := (*uint32)(unsafe.Pointer(&x.memory[doorbell]))
	if atomic.CompareAndSwapUint32(word, 1, 0) {
		wakeOne(word)
	}
}

// put writes a command into a slot.
func (x *hostile) put(n int64, c matcher.Command) {
	at := slotsAt + wire.RequestBytes*(uint64(n)&uint64(x.welcome.CommandSlots-1))
	r := wire.Request{Command: c}
	copy(x.memory[at:], (*[wire.RequestBytes]byte)(unsafe.Pointer(&r))[:])
}

// No process can shrink, grow or unseal the shared regions, and only the server can write the
// events: a client cannot do so by a new mapping, a changed one, write(2) or a hole.
func TestRegionsAreSealed(t *testing.T) {
	r := newRig(t)
	x := r.hostile(wire.Orders, 16, 16)
	for i, fd := range x.fds {
		size := []uint64{x.welcome.CommandBytes, x.welcome.EventBytes}[i]
		for _, to := range []int64{0, int64(size) - 4096, int64(size) + 4096} {
			if err := unix.Ftruncate(fd, to); !errors.Is(err, unix.EPERM) {
				t.Errorf("region %d: truncate to %d: %v", i+1, to, err)
			}
		}
		if _, err := unix.FcntlInt(
			uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE,
		); !errors.Is(err, unix.EPERM) {
			t.Errorf("region %d: another seal: %v", i+1, err)
		}
	}
	fd := x.fds[1]
	if _, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); !errors.Is(err, unix.EPERM) {
		t.Errorf("events mapped for writing: %v", err)
	}
	if err := unix.Mprotect(x.events, unix.PROT_READ|unix.PROT_WRITE); !errors.Is(err, unix.EACCES) {
		t.Errorf("events made writable: %v", err)
	}
	if _, err := unix.Pwrite(fd, []byte{1}, 4096); !errors.Is(err, unix.EPERM) {
		t.Errorf("events written: %v", err)
	}
	if err := unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0,
		8192); !errors.Is(err, unix.EPERM) {
		t.Errorf("a hole in the events: %v", err)
	}
	// A hole in its own region reads as zeros and has no other effect.
	x.put(0, order())
	must.OK(t, unix.Fallocate(x.fds[0], unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0,
		int64(x.welcome.CommandBytes)))
	x.ringBell(1)
	until(t, "taken", func() bool { return r.server.Metrics().Answers[wire.Malformed] == 1 })
}

// Every impossible cursor ends its session with the reason, and another session continues.
func TestLyingCursors(t *testing.T) {
	r := newRig(t)
	calm := r.dial("", client.Options{})
	tests := []struct {
		name string
		lie  func(x *hostile)
	}{
		{"published more than there are slots", func(x *hostile) { x.ringBell(17) }},
		{"published far away", func(x *hostile) { x.ringBell(1 << 62) }},
		{"published less than nothing", func(x *hostile) { x.ringBell(-1) }},
		{"published goes back", func(x *hostile) {
			x.put(0, order())
			x.put(1, order())
			x.ringBell(2)
			until(x.t, "taken", func() bool { return x.at(4224).Load() == 2 })
			x.ringBell(1)
		}},
		{"read more than was written", func(x *hostile) {
			x.at(x.welcome.ClientPage).Store(1)
			x.put(0, order())
			x.ringBell(1)
		}},
		{"read less than nothing", func(x *hostile) {
			x.at(x.welcome.ClientPage).Store(-5)
			x.put(0, order())
			x.ringBell(1)
		}},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := r.hostile(wire.Orders, 16, 16)
			x.t = t
			tt.lie(x)
			if got := x.farewell(); got != wire.BadCursor {
				t.Errorf("goodbye: %s", got)
			}
			if got := send(t, calm, uint64(i), order(), ""); got.Code != wire.Decided ||
				got.Correlation != uint64(i) {
				t.Errorf("calm: %+v", got)
			}
		})
	}
	x := r.hostile(wire.DropCopy, 0, 16)
	x.at(x.welcome.ClientPage).Store(9)
	send(t, calm, 99, order(), "")
	if got := x.farewell(); got != wire.BadCursor {
		t.Errorf("feed's goodbye: %s", got)
	}
	if m := r.server.Metrics(); m.Ended[wire.BadCursor] != uint64(len(tests))+1 || m.Orders != 1 ||
		m.Feeds != 0 {
		t.Errorf("metrics %+v", m)
	}
}

// Clients write random bytes over all memory that they can write, while another session trades. The
// answers of that session are right, the server survives, and every session with random bytes ends
// or is answered.
func TestScribbledMemory(t *testing.T) {
	const seed = 20_260_302
	t.Logf("seed %d", seed)
	r := newRig(t)
	calm := r.dial("", client.Options{})
	for round := range 60 {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		x := r.hostile(wire.Orders, 16, 16)
		for range 40 {
			switch rng.IntN(4) {
			case 0: // anywhere
				n := 1 + rng.IntN(64)
				at := rng.IntN(len(x.memory) - n)
				for i := range n {
					x.memory[at+i] = byte(rng.Uint32())
				}
			case 1: // a cursor or a doorbell
				at := []uint64{published, 4224, doorbell, x.welcome.ClientPage,
					x.welcome.ClientPage + 128}[rng.IntN(5)]
				x.at(at).Store(int64(rng.IntN(40)) - 4)
			case 2: // a nearly valid command
				c := order()
				(*[64]byte)(unsafe.Pointer(&c))[rng.IntN(64)] ^= 1 << rng.IntN(8)
				c.AccountID = 3
				x.put(int64(rng.IntN(16)), c)
			case 3:
				x.ringBell(x.at(4224).Load() + int64(rng.IntN(20)))
			}
		}
		side := matcher.Side(round % 2)
		o := client.NewOrder{Account: 1 + uint32(side), Security: bbb, Side: side, Qty: 1,
			LimitPx: 100_000_000}
		got := ask(t, calm, calm.Order(uint64(round), &o, ""))
		if got.Code != wire.Decided || got.Reason != matcher.Accepted ||
			got.Correlation != uint64(round) || got.Fills != uint32(side) {
			t.Fatalf("round %d: %+v", round, got)
		}
		if side == matcher.Sell {
			next(t, calm)
		}
		x.leave()
	}
	until(t, "gone", func() bool { return r.server.Metrics().Orders == 1 })
}

// A doorbell that rings all the time keeps the poller awake only for a while, and not at all while
// no command of its session can be taken.
func TestDoorbellThatNeverRests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ring   func(word *uint32) int // returns how many woke
		quota  int
		before int64 // commands in its ring, of which the quota is taken
	}{
		{"its word changes", changeAndWake, 0, 0},
		{"its word stays", wakeOne, 0, 0},
		{"at its quota, with more to take", changeAndWake, 1, 3},
		{"at its quota, and its word stays", wakeOne, 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(r *rig) { r.o.Quota, r.o.Idle = tt.quota, ring.Park })
			calm := r.dial("", client.Options{})
			x := r.hostile(wire.Orders, 16, 16)
			r.hold()
			for i := range tt.before {
				x.put(i, order())
			}
			x.ringBell(int64(tt.quota))
			until(t, "its quota is taken", func() bool { return x.at(4224).Load() == int64(tt.quota) })
			x.ringBell(tt.before)
			var stop atomic.Bool
			var tries atomic.Int64
			woken := make(chan int)
			go func() {
				n := 0
				for ; !stop.Load(); tries.Add(1) {
					n += tt.ring((*uint32)(unsafe.Pointer(&x.memory[doorbell])))
					runtime.Gosched()
				}
				woken <- n
			}()
			sleeps := r.server.Metrics().Sleeps
			for i := uint64(0); tries.Load() < 30_000 ||
				r.server.Metrics().Sleeps < sleeps+4*falseAlarms; i++ {
				none := with(order(), func(c *matcher.Command) { c.Qty = 0 })
				if got := send(t, calm, i, none, ""); got.Code != wire.Malformed || got.Correlation != i {
					t.Fatalf("calm: %+v", got)
				}
			}
			stop.Store(true)
			if n := <-woken; n > 2*falseAlarms {
				t.Errorf("it has woken the poller %d times", n)
			}
			// Its own commands are still taken, and with them the poller waits on its doorbell again.
			r.letGo()
			x.put(tt.before, order())
			x.at(published).Store(tt.before + 1)
			until(t, "taken", func() bool { return x.at(4224).Load() == tt.before+1 })
		})
	}
}

// What the word of a doorbell says while its owner sleeps, and the operation that wakes the owner.
const (
	parked    = 1
	futexWake = 1
)

// changeAndWake rings a doorbell with a word that no correct client writes.
func changeAndWake(word *uint32) int {
	if atomic.SwapUint32(word, 7) != parked {
		return 0
	}
	return wakeOne(word)
}

// A process that is killed while it holds a slot leaves only its resting orders behind.
func TestClientProcessKilled(t *testing.T) {
	r := newRig(t)
	r.before()
	calm := r.dial("", client.Options{})
	before := leaks(t)
	const n = 5
	for round := range 3 {
		cmd := r.start("dies", n, 0, ring.Adaptive)
		out := must.Get(cmd.StdoutPipe())(t)
		must.OK(t, cmd.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("child says %q, %v", line, err)
		}
		must.OK(t, cmd.Process.Kill())
		cmd.Wait()
		until(t, "cleaned up", func() bool { return r.server.Metrics().Orders == 1 })
		if got := send(t, calm, uint64(round), with(order(), func(c *matcher.Command) { c.Qty = 0 }),
			""); got.Code != wire.Malformed {
			t.Errorf("calm: %+v", got)
		}
		until(t, "decided", func() bool { return r.recorded.Load() == uint64((round+1)*n) })
	}
	for ref := range uint32(3 * n) {
		if row, ok := r.views.Order(ref + 1); !ok || !row.Open() {
			t.Errorf("order %d: %+v", ref+1, row)
		}
	}
	until(t, "tickets back", func() bool { return r.desk.Out() == 0 })
	expectNoLeak(t, before)
}

// When a client leaves with answers on their way, its tickets are released when the answers come.
func TestLeavingWithCommandsOnTheWay(t *testing.T) {
	r := newRig(t)
	before := r.before()
	r.hold()
	for range 4 {
		c := r.dial("", client.Options{})
		for i := range 10 {
			cmd := order()
			must.OK(t, c.Send(uint64(i), &cmd, ""))
		}
		c.Flush()
		until(t, "taken", func() bool { return r.desk.Out() > 0 })
		c.Close()
		until(t, "left", func() bool { return r.server.Metrics().Orders == 0 })
	}
	if r.desk.Out() == 0 {
		t.Error("no ticket is on its way")
	}
	r.letGo()
	until(t, "tickets back", func() bool { return r.desk.Out() == 0 })
	expectNoLeak(t, before)
}

// Sessions of every kind, ended in every way, leave no descriptor, no mapping and no goroutine.
func TestNothingLeaks(t *testing.T) {
	r := newRig(t, enforced)
	before := r.before()
	for range 5 {
		for _, role := range []wire.Role{wire.Orders, wire.DropCopy, wire.Trades} {
			c := must.Get(client.Dial(context.Background(), r.o.Socket, r.token(true),
				client.Options{Role: role}))(t)
			if role == wire.Orders {
				send(t, c, 1, order(), "")
			}
			c.Close()
			if _, err := client.Dial(context.Background(), r.o.Socket, "bad",
				client.Options{Role: role}); err == nil {
				t.Error("let in")
			}
		}
		raw := r.raw()
		raw.Write([]byte("nonsense"))
		hear(t, raw)
		raw.Close()
		// Descriptors that a client sends are not kept.
		raw = r.raw()
		raw.WriteMsgUnix(helloOf(wire.Orders, r.token(true)), unix.UnixRights(0, 0, 0), nil)
		hear(t, raw)
		raw.WriteMsgUnix(wire.AppendText(nil, wire.Lookup, wire.OK, []byte("AAA")),
			unix.UnixRights(0, 0, 0), nil)
		hear(t, raw)
		raw.Close()
	}
	until(t, "left", func() bool { m := r.server.Metrics(); return m.Orders == 0 && m.Feeds == 0 })
	expectNoLeak(t, before)
}

// held counts the resources of a process: descriptors, shared mappings, goroutines.
type held struct{ fds, mappings, goroutines int }

// before counts the resources in use when all permanent goroutines run: a session of each kind has
// begun and ended.
func (r *rig) before() held {
	r.t.Helper()
	for _, role := range []wire.Role{wire.Orders, wire.DropCopy} {
		one := r.dial(r.token(true), client.Options{Role: role})
		if role == wire.Orders {
			send(r.t, one, 1, with(order(), func(c *matcher.Command) { c.Qty = 0 }), "")
		}
		one.Close()
	}
	until(r.t, "left", func() bool { m := r.server.Metrics(); return m.Orders == 0 && m.Feeds == 0 })
	return leaks(r.t)
}

func leaks(t testing.TB) held {
	t.Helper()
	fds := must.Get(os.ReadDir("/proc/self/fd"))(t)
	maps := must.Get(os.ReadFile("/proc/self/maps"))(t)
	return held{len(fds),
		strings.Count(string(maps), "memfd:posttrade-commands") +
			strings.Count(string(maps), "memfd:posttrade-events"),
		runtime.NumGoroutine()}
}

// expectNoLeak waits until no more resources are in use than before.
func expectNoLeak(t *testing.T, before held) {
	t.Helper()
	var now held
	for range 100_000 {
		now = leaks(t)
		if now.fds <= before.fds && now.mappings <= before.mappings &&
			now.goroutines <= before.goroutines {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("now %+v, before %+v", now, before)
}
