package ring

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLeaseIsOneOwnersAtATime(t *testing.T) {
	var l Lease
	if got := l.Borrow(); got != Kept {
		t.Errorf("of a thread that works: %d, want kept", got)
	}
	l.Lend()
	if got := l.Borrow(); got != Taken {
		t.Errorf("of a thread that rests: %d, want taken", got)
	}
	if got := l.Borrow(); got != Lent {
		t.Errorf("while it is borrowed: %d, want lent", got)
	}
	l.Return()
	if got := l.Borrow(); got != Taken {
		t.Errorf("after its return: %d, want taken", got)
	}
	if runtime.GOOS == "js" { // one thread: a claim is withdrawn before another goroutine looks
		return
	}
	var back atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		l.Regain()
		if !back.Load() {
			t.Error("the thread went on while another one had the lease")
		}
	})
	for l.Borrow() != Kept { // Kept: it is claimed
		YieldThread()
	}
	back.Store(true)
	l.Return()
	wg.Wait()
	if got := l.Borrow(); got != Kept {
		t.Errorf("after the thread has it again: %d, want kept", got)
	}
}

// A thread that waits for its consumer claims it, but not while it gives its core away: any
// borrower can take a consumer that is returned then.
func TestAClaimIsWithdrawnWithTheCore(t *testing.T) {
	var l Lease
	l.Lend()
	if got := l.Borrow(); got != Taken {
		t.Fatalf("of a thread that rests: %d, want taken", got)
	}
	if l.claim() {
		t.Error("claimed, and had, while another one has it")
	}
	if got := l.Borrow(); got != Lent {
		t.Errorf("after a claim in vain: %d, want lent", got)
	}
	l.Return()
	if got := l.Borrow(); got != Taken {
		t.Errorf("of a thread that may have given its core away: %d, want taken", got)
	}
	l.Return()
	if !l.claim() {
		t.Error("claimed in vain, though it is free")
	}
	if got := l.Borrow(); got != Kept {
		t.Errorf("of a thread that has it: %d, want kept", got)
	}
}

// A thread continues only if it has the lease, whatever state the lease has reached since the last
// look.
func TestWithdrawnClaim(t *testing.T) {
	for _, tt := range []struct {
		name        string
		word, after uint32
		kept        bool
	}{
		{"returned to the thread", leaseKept, leaseKept, true},
		{"returned before it was claimed", leaseOpen, leaseOpen, false},
		{"borrowed again before it was claimed", leaseBorrowed, leaseBorrowed, false},
		{"claimed", leaseClaimed, leaseBorrowed, false},
	} {
		var l Lease
		l.word.Store(tt.word)
		if kept := l.withdraw(); kept != tt.kept || l.word.Load() != tt.after {
			t.Errorf("%s: kept %v, then %d, want %v, %d", tt.name, kept, l.word.Load(), tt.kept, tt.after)
		}
	}
}

// A consumer that spins or yields without end never lends. One that rests sleeps until a borrower
// has had its lease, however long the borrower takes to get a core.
func TestOnlyAConsumerThatRestsLends(t *testing.T) {
	for _, tt := range []struct {
		strategy Strategy
		lends    bool
	}{{Spin, false}, {Yield, false}, {Adaptive, true}, {Park, true}} {
		t.Run(tt.strategy.String(), func(t *testing.T) {
			var l Lease
			var during []BorrowResult
			w := new(Waiter)
			i := NewIdler(tt.strategy, w)
			i.napNs, i.locked = 10_000_000_000, true
			i.Lends(&l)
			q := &asked{empty: true}
			for n := 0; n < 1000 && i.stats.Parks == 0; n++ {
				stop := make(chan struct{})
				seen := make(chan BorrowResult)
				go func() { seen <- watchFor(&l, w, stop) }()
				i.Idle(q)
				close(stop)
				if loan := <-seen; loan == Taken {
					during = append(during, loan)
				}
				if !tt.lends && n > 20 {
					break
				}
			}
			if lent := len(during) > 0; lent != tt.lends {
				t.Errorf("lent: %v, want %v", lent, tt.lends)
			}
			if got := l.Borrow(); got != Kept {
				t.Errorf("awake again: %d, want kept", got)
			}
		})
	}
}

// watchFor borrows the lease if it becomes open before stop, and wakes the consumer afterwards.
func watchFor(l *Lease, w *Waiter, stop <-chan struct{}) BorrowResult {
	for {
		select {
		case <-stop:
			return Kept
		default:
		}
		if l.Borrow() == Taken {
			l.Return()
			w.Wake()
			return Taken
		}
		Pause() // where there is one thread, the consumer gets its turn
	}
}

// Some producers publish quietly and do the consumer's work themselves, others wake the consumer;
// all run at once, in rounds. A lost message makes the consumer sleep for a minute. A message
// consumed by two owners at once has the wrong number.
func TestLeaseLosesNoMessage(t *testing.T) {
	const minute = 60 * 1_000_000_000
	const producers = 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + producers + 1)) // doc.go, Threads
	for _, strategy := range []Strategy{Adaptive, Park} {
		t.Run(strategy.String(), func(t *testing.T) {
			each := rounds(50_000)
			c := &leased{r: newTestMPSC(t, 64), last: make([]uint64, producers),
				all: int64(producers * each)}
			idler := NewIdler(strategy, c.r.Waiter())
			idler.napNs = minute
			idler.Lends(&c.lease)
			var thread sync.WaitGroup
			thread.Go(func() {
				if err := idler.Lock(-1); err != nil {
					t.Error(err)
				}
				for c.done.Load() < c.all {
					if c.turn(16) {
						idler.Reset()
						continue
					}
					if c.done.Load() < c.all {
						idler.Idle(c.r)
					}
				}
			})
			for i := range each {
				var round sync.WaitGroup
				for p := range producers {
					round.Go(func() {
						lo, _ := c.r.ClaimN(1)
						c.r.At(lo).fill(uint64(p)<<32 | uint64(i))
						if p == 0 && i%3 == 0 {
							c.r.Publish(lo, 1)
							return
						}
						c.r.PublishQuietly(lo, 1)
						c.drive()
					})
				}
				round.Wait()
				for c.done.Load() < int64(producers*(i+1)) { // the next message would hide a lost one
					runtime.Gosched()
				}
			}
			thread.Wait()
			if s := idler.Stats(); s.Rescues > 0 {
				t.Errorf("stats %+v", s)
			}
			for p, last := range c.last {
				if last != uint64(each) {
					t.Errorf("producer %d: %d messages, want %d", p, last, each)
				}
			}
			t.Logf("%d of %d by producers", c.driven, c.all)
			if c.driven == 0 {
				t.Error("no producer has ever done the work")
			}
		})
	}
}

// leased is the state of a consumer that goes with its lease.
type leased struct {
	lease  Lease
	r      *MPSC[msg]
	last   []uint64 // of each producer: the next number
	driven int64
	all    int64
	done   atomic.Int64
}

func (c *leased) turn(max int) bool {
	lo, hi := c.r.Ready(max)
	for pos := lo; pos < hi; pos++ {
		n := c.r.At(pos).w[0]
		p, i := n>>32, n&(1<<32-1)
		if c.last[p] != i || !c.r.At(pos).ok(n) {
			panic("a message twice, or out of turn")
		}
		c.last[p]++
	}
	c.r.Release(hi)
	if c.done.Add(hi-lo) == c.all {
		c.r.Waiter().Wake() // the thread must see that no message follows
	}
	return lo < hi
}

func (c *leased) drive() {
	for range 3 {
		switch c.lease.Borrow() {
		case Lent:
			return
		case Kept:
			c.r.Waiter().Notify()
			return
		}
		before := c.r.Consumed()
		c.turn(4)
		next := c.r.Consumed()
		c.driven += next - before
		c.lease.Return()
		if !c.r.PublishedAt(next) {
			return
		}
	}
	c.r.Waiter().Notify()
}
