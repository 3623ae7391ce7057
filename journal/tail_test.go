package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// fakeTail is a tail's memory: the system's copy of the file, and the disk's copy. Killing the
// process takes neither, a power cut leaves some pages of each. Of a log only the header slots are
// in memory; writes go to the disk (taillog_test.go).
type fakeTail struct {
	fs        vfs.FS
	name      string
	mem, disk []byte
	syncing   func() // is called before a sync; may be nil
	mapErr    error
	syncErr   error
	roomErr   error
	fakeWrites
}

func (f *fakeTail) open(_ vfs.FS, name string, size int, logged bool) (tailMap, error) {
	if f.mapErr != nil {
		return nil, f.mapErr
	}
	file, err := f.fs.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(file)
	if err == nil && len(b) != size {
		err = fmt.Errorf("%d bytes, want %d", len(b), size)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	head := f.disk
	if f.name, f.mem = name, b; len(f.disk) != size || logged {
		f.disk = bytes.Clone(b)
	}
	if logged {
		f.mem = b[:tailSlots*tailHeader]
		copy(f.disk[:len(f.mem)], head)
	}
	return f, errors.Join(err, file.Close())
}

func (f *fakeTail) Bytes() []byte { return f.mem }

func (f *fakeTail) Populate() error { return f.roomErr }

func (f *fakeTail) Sync() error {
	if f.syncing != nil {
		f.syncing()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.syncErr == nil {
		copy(f.disk, f.mem)
	}
	return f.syncErr
}

// Close does the page cache's part: the file gets what was in memory.
func (f *fakeTail) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return putFile(f.fs, f.name, append(bytes.Clone(f.mem), f.disk[len(f.mem):]...))
}

func putFile(fs vfs.FS, name string, b []byte) error {
	file, err := fs.Create(name, writeCategory)
	if err != nil {
		return err
	}
	_, err = file.Write(bytes.Clone(b))
	return errors.Join(err, file.Sync(), file.Close())
}

// into writes the file into what a crash has left: page by page from memory, when keep says so, or
// from the disk.
func (f *fakeTail) into(t testing.TB, fs vfs.FS, keep func() bool) vfs.FS {
	t.Helper()
	if len(f.mem) == 0 {
		return fs
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b, mem := bytes.Clone(f.disk), f.read()
	for at := 0; at < len(mem); at += anchorPage {
		if keep() {
			copy(b[at:min(at+anchorPage, len(b))], mem[at:])
		}
	}
	f.land(b, keep)
	must.OK(t, putFile(fs, f.name, b))
	return fs
}

func always() bool { return true }

// smallTail turns over after some dozens of commands.
var smallTail = tailShape{segments: 3, bytes: 16 << 10}

// tailed are options with a small tail in fake memory.
func tailed(t testing.TB, fs vfs.FS) (Options, *fakeTail) {
	f := &fakeTail{fs: fs}
	o := strict(t, fs)
	o.Durability, o.Tail, o.tailShape, o.mapTail, o.FlushInterval = DurabilityOS, true, smallTail,
		f.open, time.Hour
	return o, f
}

// logged is tailed for mode "fsync": the tail is a log.
func logged(t testing.TB, fs vfs.FS) (Options, *fakeTail) {
	o, f := tailed(t, fs)
	o.Durability = DurabilityFsync
	o.tailShape.bytes = 128 << 10 // each write takes a sector at least
	o.tailBeside = 1
	return o, f
}

// tailModes are the modes of an opening with a tail.
var tailModes = map[string]func(testing.TB, vfs.FS) (Options, *fakeTail){
	withTail: tailed, withLog: logged,
}

// inTailModes runs a test in both of them.
func inTailModes(t *testing.T,
	test func(t *testing.T, options func(testing.TB, vfs.FS) (Options, *fakeTail))) {
	for mode, options := range tailModes {
		t.Run(mode, func(t *testing.T) { test(t, options) })
	}
}

// told waits until the answers up to a sequence have been released: a log's writers do that.
func (j *Journal) told(t testing.TB, inputSeq uint64) {
	t.Helper()
	until(t, fmt.Sprintf("%d are answered", inputSeq),
		func() bool { return j.Answered() == inputSeq })
}

// gate holds back what the store writes into its log, while it is shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// release opens the gate, if it is shut.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// pass is the gate of a log's writes.
func (g *gate) pass([]byte, int64) error {
	g.wait()
	return nil
}

func (g *gate) wait() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
}

func (g *gate) fs(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && isLog(op.Path) {
			g.wait()
		}
		return nil
	}))
}

// publishAll publishes n commands in pieces of one to three, and fails when there is no room.
func publishAll(t testing.TB, j *Journal, f *flow, b *Block, n int) {
	t.Helper()
	for i := 0; i < n; {
		size := min(1+i%3, n-i)
		f.grow(b, size)
		i += size
		ok := must.Get(j.publish(b))(t)
		if !ok {
			t.Fatalf("no room in the tail at inputSeq=%d", f.inputSeq)
		}
	}
}

func TestTailAnswersBeforeTheStoreHasIt(t *testing.T) {
	inTailModes(t, answersBeforeTheStore)
}

func answersBeforeTheStore(t *testing.T,
	options func(testing.TB, vfs.FS) (Options, *fakeTail)) {
	g, mem := newGate(), vfs.NewCrashableMem()
	o, fake := options(t, g.fs(mem))
	j := openNew(t, "j", o)
	var told []uint64
	j.OnDurable(func(inputSeq uint64) { told = append(told, inputSeq) }, nil)
	f, b := &flow{seed: 3, idsEvery: 2}, &Block{}
	g.shut()
	publishAll(t, j, f, b, 30)
	j.told(t, 30)
	c, err := j.Append(b)
	must.OK(t, err)
	if j.Durable() != 0 || j.Stable() != 0 {
		t.Fatalf("durable %d, stable %d", j.Durable(), j.Stable())
	}
	_, err = recovered(fake.into(t, kill(mem), always), "boot-1", *f.begin(), 30, 30)
	must.OK(t, err)
	head := make(chan uint64)
	go func() { seq, _ := j.Head(); head <- seq }()
	select {
	case seq := <-head:
		t.Fatalf("head %d was given before it can be read", seq)
	default:
	}
	g.release()
	must.OK(t, c.Wait())
	if seq := <-head; seq != 30 {
		t.Errorf("head %d, want 30", seq)
	}
	expectHistory(t, j, f, 30)
	must.OK(t, j.Close())
	if told[len(told)-1] != 30 {
		t.Errorf("told %v", told)
	}
}

// begin is the flow before its first command.
func (f *flow) begin() *flow { return &flow{seed: f.seed, idsEvery: f.idsEvery} }

// lives takes a journal through many deaths on one random schedule. Every life continues with other
// commands, so that commands which one life has lost and a later one brings back would be detected.
type lives struct {
	t      *testing.T
	r      *rand.Rand
	seeds  []uint64 // by sequence: of the flow that made the command
	trades []uint64 // by sequence: the trade sequence after it
	fs     *vfs.MemFS
	fake   *fakeTail
	gate   *gate
	shut   bool
	logged bool   // what is answered is on stable storage
	writes *gate  // of the log
	synced uint64 // what is on stable storage for certain
}

// flow continues behind the model with another seed.
func (l *lives) flow() *flow {
	f := &flow{seed: l.r.Uint64(), idsEvery: 3, inputSeq: uint64(len(l.seeds))}
	if n := len(l.trades); n > 0 {
		f.tradeSeq = l.trades[n-1]
	}
	return f
}

// born opens what the last death has left and compares it with the model.
func (l *lives) born(boot string, atLeast uint64) *Journal {
	l.gate = newGate()
	o, fake := tailModes[[]string{withTail, withLog}[l.r.IntN(2)]](l.t, l.gate.fs(l.fs))
	o.boot, o.tailShape.bytes = boot, 4<<10 // turned over, and full, many times in a life
	if o.Durability == DurabilityFsync {
		o.tailShape.bytes = 16 << 10
		o.tailBeside = []int{1, 1 << 10, tailBeside}[l.r.IntN(3)]
	}
	if l.logged = o.Durability == DurabilityFsync; l.r.IntN(4) == 0 {
		l.logged = false
		o.Tail, o.Durability = false, []string{DurabilityOS, DurabilityFsync}[l.r.IntN(2)]
	} else if l.fake != nil {
		fake.disk = l.fake.disk
	}
	l.fake, l.writes = fake, newGate()
	fake.during = l.writes.pass
	j := must.Get(Open("j", o))(l.t)
	if _, ok := j.Genesis(); !ok {
		must.OK(l.t, j.Create(testGenesis))
	}
	head, _ := j.Head()
	if head < atLeast || head > uint64(len(l.seeds)) {
		l.t.Fatalf("head %d, want %d to %d", head, atLeast, len(l.seeds))
	}
	l.seeds, l.trades, l.synced = l.seeds[:head], l.trades[:head], head
	l.verify(j)
	return j
}

// work appends for a while.
func (l *lives) work(j *Journal) {
	f, b := l.flow(), &Block{}
	for range l.r.IntN(120) {
		for range 1 + l.r.IntN(4) {
			f.grow(b, 1)
			l.seeds, l.trades = append(l.seeds, f.seed), append(l.trades, f.tradeSeq)
		}
		room := true
		if j.tail != nil {
			var err error
			room, err = j.publish(b)
			must.OK(l.t, err)
		}
		if !room || !j.Room(1) {
			l.hold(false)
			l.slow(false)
		}
		if !room || l.r.IntN(5) == 0 && j.Room(1) {
			must.Get(j.Append(b))(l.t)
			b.Reset()
		}
		switch l.r.IntN(30) {
		case 0:
			l.hold(j.tail != nil)
		case 2:
			l.slow(true)
		case 3:
			l.slow(false)
		case 1:
			safe := must.Get(j.stabilize())(l.t)
			l.synced = safe.inputSeq
		}
	}
}

// hold shuts the gate, or opens it.
func (l *lives) hold(shut bool) {
	if shut == l.shut {
		return
	}
	if l.shut = shut; shut {
		l.gate.shut()
	} else {
		l.gate.release()
	}
}

// slow holds back the writes of the log, or lets them go.
func (l *lives) slow(slow bool) {
	l.writes.release()
	if slow {
		l.writes.shut()
	}
}

// die leaves what a death leaves, and closes the old journal, which cannot affect that any more.
func (l *lives) die(j *Journal, unsynced int, keep func() bool) {
	clone := l.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced,
		RNG: rand.New(rand.NewPCG(l.r.Uint64(), 7))})
	l.fake.into(l.t, clone, keep)
	l.hold(false)
	l.slow(false)
	must.OK(l.t, j.Close())
	disk := bytes.Clone(l.fake.disk)
	l.fs, l.fake = clone, &fakeTail{disk: disk}
}

// verify compares every command with what the model has.
func (l *lives) verify(j *Journal) {
	next := uint64(1)
	must.OK(l.t, j.Replay(context.Background(), 1, func(cmds []matcher.Command, ids ClientIDs) error {
		for i := range cmds {
			f := flow{seed: l.seeds[next-1], idsEvery: 3}
			if c := f.command(next); cmds[i] != c {
				return fmt.Errorf("command %d: got %+v, want %+v", next, cmds[i], c)
			}
			if got, id := ids.Of(next), f.clientID(next); !bytes.Equal(got, id) {
				return fmt.Errorf("client id of %d: got %q, want %q", next, got, id)
			}
			next++
		}
		return nil
	}))
	trade := uint64(1)
	must.OK(l.t, j.Fills(1, func(fills []matcher.Fill) error {
		for _, got := range fills {
			f := flow{seed: l.seeds[got.InputSeq-1]}
			c, before := f.command(got.InputSeq), l.trades[got.InputSeq-1]-2
			if want := f.fills(&c, &before); got.TradeSeq != trade || got != want[(trade-1)%2] {
				return fmt.Errorf("fill %d: got %+v, want one of %+v", trade, got, want)
			}
			trade++
		}
		return nil
	}))
	if n := len(l.seeds); int(next-1) != n || n > 0 && trade-1 != l.trades[n-1] {
		l.t.Fatalf("%d commands and %d fills, want %d and %d", next-1, trade-1, n, l.trades[n-1])
	}
}

// TestManyLivesWithATail kills the process, or cuts the power, many times in a row, holds the store
// back at times, and changes the mode between lives.
func TestManyLivesWithATail(t *testing.T) {
	t.Logf("-args -faultseed=%d", *faultSeed)
	runs, kills, cuts, saved, lost := 40, 0, 0, 0, 0
	if testing.Short() {
		runs = 8
	}
	for run := range runs {
		l := &lives{t: t, r: rand.New(rand.NewPCG(*faultSeed, uint64(run)+1000)),
			fs: vfs.NewCrashableMem()}
		boot, atLeast := 1, uint64(0)
		for range 12 {
			before := len(l.seeds)
			j := l.born(fmt.Sprint("boot-", boot), atLeast)
			lost += before - len(l.seeds)
			l.work(j)
			atLeast = j.Answered()
			if l.r.IntN(2) == 0 {
				kills++
				saved += int(atLeast - j.Durable())
				l.die(j, 100, always)
				continue
			}
			cuts++
			boot++
			if !l.logged {
				atLeast = l.synced
			}
			pages := []int{0, 10, 50, 90, 100}[l.r.IntN(5)]
			l.die(j, []int{0, 50, 100}[l.r.IntN(3)], func() bool { return l.r.IntN(100) < pages })
			l.fake.disk = nil // what is left is what the disk has
		}
	}
	t.Logf(
		"%d kills, %d commands were in the tail only; %d power cuts, %d commands were not "+
			"answered or lost",
		kills, saved, cuts, lost)
	if saved == 0 || lost == 0 {
		t.Error("the test tested nothing")
	}
}
