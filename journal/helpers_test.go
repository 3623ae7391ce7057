package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// flow makes a realistic, seeded order flow: half new orders with a random
// idempotency key, two fifths cancels, a tenth that trades. The same sequence
// always gives the same command, fills and client id.
type flow struct {
	seed     uint64
	idsEvery uint64 // every n-th new order has a client id; 0 = none
	inputSeq uint64 // last made
	tradeSeq uint64
}

const flowStart = 1_700_000_000_000

// command returns the command at seq.
func (f *flow) command(seq uint64) matcher.Command {
	r := rand.New(rand.NewPCG(f.seed, seq))
	kind := r.IntN(10)
	c := matcher.NewCommand(matcher.OrderNew)
	if kind >= 5 && kind < 9 {
		c.Type = matcher.OrderCancel
		c.OrderRef = uint32(max(int64(seq)-int64(r.IntN(4096)), 1))
	} else {
		c.LimitPx = int64(100_000_000 + 1000*(int64(r.NormFloat64()*300)))
		c.Qty = int32(1+r.IntN(20)) * 100
		c.PriceTicks = int64(r.Uint64())
		c.Side = matcher.Side(r.IntN(2))
	}
	c.InputSeq = seq
	c.EventTimeMillis = flowStart + int64(seq/500)
	c.AccountID = 1 + uint32(r.IntN(100))
	c.SecurityID = 1 + uint32(r.ExpFloat64()*4)%32
	return c
}

// trades reports whether the command at seq makes a pair of fills.
func (f *flow) trades(seq uint64) bool {
	return rand.New(rand.NewPCG(f.seed, seq)).IntN(10) == 9
}

// fills are what the command makes: none, or a pair.
func (f *flow) fills(c *matcher.Command, tradeSeq *uint64) []matcher.Fill {
	if !f.trades(c.InputSeq) {
		return nil
	}
	var pair []matcher.Fill
	for side := range 2 {
		*tradeSeq++
		pair = append(pair, matcher.Fill{
			TradeSeq: *tradeSeq, InputSeq: c.InputSeq, TimeMillis: c.EventTimeMillis, Px: c.LimitPx,
			OrderRef: uint32(c.InputSeq) - uint32(side*17), AccountID: c.AccountID, SecurityID: c.SecurityID,
			Qty: c.Qty, CounterRef: uint32(c.InputSeq) - uint32((1-side)*17),
			Side: c.Side ^ matcher.Side(side),
		})
	}
	return pair
}

// clientID returns the client id of the command at seq, nil for none.
func (f *flow) clientID(seq uint64) []byte {
	if f.idsEvery == 0 || seq%f.idsEvery != 0 {
		return nil
	}
	return fmt.Appendf(nil, "order-%d-%d", f.seed, seq)
}

// block fills b with the next n commands.
func (f *flow) block(b *Block, n int) *Block {
	b.Reset()
	f.grow(b, n)
	return b
}

// grow adds the next n commands to b.
func (f *flow) grow(b *Block, n int) {
	for range n {
		f.inputSeq++
		c := f.command(f.inputSeq)
		b.Command(&c)
		for _, fill := range f.fills(&c, &f.tradeSeq) {
			b.Fill(&fill)
		}
		if id := f.clientID(f.inputSeq); id != nil {
			b.ClientID(f.inputSeq, id)
		}
	}
}

// fatals records the errors given to the Fatal hook and does not end the process.
type fatals struct {
	mu   sync.Mutex
	errs []error
	hit  chan struct{}
}

func newFatals() *fatals { return &fatals{hit: make(chan struct{})} }

func (f *fatals) fatal(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.errs = append(f.errs, err); len(f.errs) == 1 {
		close(f.hit)
	}
}

func (f *fatals) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.errs)
}

var testGenesis = []byte(`{"format":1,"accounts":[{"id":1,"enabled":true}]}`)

// strict are options with a Fatal hook that fails the test.
func strict(t testing.TB, fs vfs.FS) Options {
	return Options{FS: fs, Fatal: func(err error) { t.Errorf("fatal: %v", err) }, boot: "boot-1"}
}

// openNew opens and creates a journal in dir.
func openNew(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	j := must.Get(Open(dir, o))(t)
	must.OK(t, j.Create(testGenesis))
	return j
}

// appendAll appends blocks of the given sizes and waits for the last.
func appendAll(t testing.TB, j *Journal, f *flow, sizes ...int) {
	t.Helper()
	var b Block
	var last *Commit
	for _, n := range sizes {
		c := must.Get(j.Append(f.block(&b, n)))(t)
		last = c
	}
	if last != nil {
		must.OK(t, last.Wait())
	}
}

// expectHistory replays j from 1 and compares every command, fill and client id
// with the flow's, up to exactly head.
func expectHistory(t testing.TB, j *Journal, f *flow, head uint64) {
	t.Helper()
	must.OK(t, compareHistory(j, f, head))
}

func compareHistory(j *Journal, f *flow, head uint64) error {
	if got, _ := j.Head(); got != head {
		return fmt.Errorf("head %d, want %d", got, head)
	}
	next := uint64(1)
	model := flow{seed: f.seed, idsEvery: f.idsEvery}
	var want Block
	err := j.Replay(context.Background(), 1, func(cmds []matcher.Command, ids ClientIDs) error {
		for i := range cmds {
			if c := model.command(next); cmds[i] != c {
				return fmt.Errorf("command %d: got %+v, want %+v", next, cmds[i], c)
			}
			if got, id := ids.Of(next), f.clientID(next); !bytes.Equal(got, id) {
				return fmt.Errorf("client id of %d: got %q, want %q", next, got, id)
			}
			next++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if next != head+1 {
		return fmt.Errorf("replay ends at %d, want %d", next-1, head)
	}
	if head == 0 {
		return nil
	}
	model.block(&want, int(head))
	var got []byte
	if err := j.Fills(1, func(fills []matcher.Fill) error {
		got = append(got, fillBytesOf(fills)...)
		return nil
	}); err != nil {
		return err
	}
	if !bytes.Equal(got, want.fills) {
		return fmt.Errorf("fills: got %d bytes, want %d", len(got), len(want.fills))
	}
	if _, trades := j.Head(); trades != model.tradeSeq {
		return fmt.Errorf("trade head %d, want %d", trades, model.tradeSeq)
	}
	return nil
}

// kill returns what a killed process leaves: everything written, synced or not.
func kill(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// putLE64 changes a number of a raw record.
func putLE64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// toy is an engine that decides what flow decides: every command is accepted, and some make a pair
// of fills.
type toy struct {
	flow     flow
	applied  uint64
	tradeSeq uint64
	sum      [32]byte // of all commands so far
	closed   *int
}

var errToy = errors.New("toy engine refuses")

func (e *toy) AppliedSeq() uint64 { return e.applied }

func (e *toy) Close() error {
	if e.closed != nil {
		*e.closed++
	}
	return nil
}

func (e *toy) Replay(c *matcher.Command, out *matcher.Outlet) error {
	if c.InputSeq != e.applied+1 {
		return fmt.Errorf("%w inputSeq=%d after %d", errToy, c.InputSeq, e.applied)
	}
	e.apply(c, out)
	return nil
}

func (e *toy) ReplayBatch(batch []matcher.Command, out *matcher.Outlet) (int, error) {
	for i := range batch {
		if err := e.Replay(&batch[i], out); err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

// apply emits the events of a command: the first one, and one for each fill.
func (e *toy) apply(c *matcher.Command, out *matcher.Outlet) {
	correlation := c.InputSeq
	if out.More == nil { // live: the ring's
		c.InputSeq = e.applied + 1
	} else {
		correlation = 0
	}
	e.applied = c.InputSeq
	e.sum = sha256.Sum256(append(e.sum[:], c.Bytes()[:]...))
	fills := e.flow.fills(c, &e.tradeSeq)
	ev := e.slot(out)
	*ev = matcher.Event{
		Kind: matcher.EventAccepted, Flags: matcher.EventFirst, InputSeq: c.InputSeq,
		TimeMillis: c.EventTimeMillis, Ref: correlation, OrderRef: uint32(c.InputSeq),
	}
	*ev.Cmd() = *c
	for _, f := range fills {
		ev = e.slot(out)
		*ev = matcher.Event{
			Kind: matcher.EventFilled, Side: f.Side, InputSeq: f.InputSeq, TimeMillis: f.TimeMillis,
			Px:       f.Px,
			TradeSeq: f.TradeSeq, OrderRef: f.OrderRef, AccountID: f.AccountID, SecurityID: f.SecurityID,
			Qty: f.Qty,
		}
		ev.Detail().CounterRef = f.CounterRef
	}
	ev.Flags |= matcher.EventLast
}

func (e *toy) slot(out *matcher.Outlet) *matcher.Event {
	if out.Next == out.Limit {
		out.More(out)
	}
	out.Next++
	return &out.Slots[(out.Next-1)&out.Mask]
}

func (e *toy) WriteSnapshot(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d %d %x", e.applied, e.tradeSeq, e.sum)
	return err
}

func readToy(f flow, r io.Reader) (*toy, error) {
	e := &toy{flow: f}
	var sum []byte
	if _, err := fmt.Fscanf(r, "%d %d %x", &e.applied, &e.tradeSeq, &sum); err != nil {
		return nil, err
	}
	copy(e.sum[:], sum)
	return e, nil
}

// tally implements the views of toy: it counts events and keeps the ids.
type tally struct {
	events uint64
	ids    string
}

func (v *tally) Observe(ev *matcher.Event, id []byte) {
	v.events++
	if ev.Flags&matcher.EventFirst != 0 && len(id) > 0 {
		v.ids += string(id) + ";"
	}
}

func (v *tally) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d %s", v.events, v.ids)
	return err
}

func (v *tally) Close() error { return nil }

func readTally(r io.Reader) (*tally, error) {
	v := &tally{}
	if _, err := fmt.Fscanf(r, "%d %s", &v.events, &v.ids); err != nil {
		return nil, err
	}
	return v, nil
}

// allocatedHere is how many objects the product's own code allocated during f, by the function that
// allocated them. It leaves out what the store allocated for that code, and what the store's
// background work allocated through the file system that it was given.
func allocatedHere(t *testing.T, f func()) map[string]int64 {
	t.Helper()
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	defer func() { runtime.MemProfileRate = rate }()
	made := make(map[string]int64)
	add := func(sign int64) {
		for range 3 { // an object is in the profile after two cycles
			runtime.GC()
		}
		records := make([]runtime.MemProfileRecord, 50_000)
		n, ok := runtime.MemProfile(records, true)
		if !ok {
			t.Fatalf("a profile of %d records", n)
		}
		for _, r := range records[:n] {
			// the count itself
			if where := allocatedBy(r.Stack()); where != "" && !strings.Contains(where, ".allocated") {
				made[where] += sign * r.AllocObjects
			}
		}
	}
	add(-1)
	f()
	add(1)
	maps.DeleteFunc(made, func(_ string, n int64) bool { return n == 0 })
	return made
}

// allocatedBy names the innermost function of the product in a stack. It returns an empty name if a
// library's function is in the stack.
func allocatedBy(stack []uintptr) (where string) {
	for frames, more := runtime.CallersFrames(stack), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		module, _, path := strings.Cut(f.Function, "/")
		switch {
		case path && strings.Contains(module, "."), // a host: the standard library has none
			// The runtime's own lists of waiting goroutines and timers, which it grows and drops.
			f.Function == "runtime.acquireSudog", f.Function == "runtime.(*timers).addHeap",
			strings.Contains(f.Function, ".(*Journal).every"): // runs by time, not by commit
			return ""
		case module == "posttrade" && where == "":
			where = f.Function
		}
	}
	return where
}
