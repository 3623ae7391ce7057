package journal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring"
)

// Errors of opening and creating.
var (
	// ErrLocked: another process has the journal open.
	ErrLocked = errors.New("journal is in use by another process")
	// ErrNoGenesis: the journal has not been created yet.
	ErrNoGenesis = errors.New("journal has no genesis")
	// ErrExists: the journal has a genesis already; it is written once.
	ErrExists = errors.New("journal has a genesis already")
	// ErrDurability: the durability is neither "fsync" nor "os".
	ErrDurability = errors.New("unknown durability")
	// ErrClosed: the journal has been closed.
	ErrClosed = errors.New("journal closed")
	// ErrReading: the journal is open for reading only.
	ErrReading = errors.New("journal is open for reading only")
)

// Journal is an open journal. Append belongs to one goroutine; everything else
// may be called from any.
type Journal struct {
	// Constant after Prepare or Read, down to lock. fs is what the store writes through.
	dir   string
	o     Options
	fs    vfs.FS
	lazy  *lazyFS     // "os" mode, or with a tail
	lock  io.Closer   // nil: opened by Read
	db    *blockStore // until Begin for reading only
	found finding     // what there was, until Begin has taken it over
	begun bool        // Begin has opened the store for writing and started the committer
	latch *latch

	genesis []byte // constant once set; guarded by mu until then
	seed    [chainBytes]byte
	anchor  *anchor
	mu      sync.Mutex // guards genesis, seed, anchor, safe, stablePoint, moved

	// The durable head in the store. Writer: the committer; setHead before it runs.
	safe point
	// the part of safe that is on stable storage; writer: the goroutine that holds syncing
	stablePoint point
	copied      error         // see Copied; set before Open has returned
	moved       chan struct{} // closed when safe moves; nil while no goroutine waits
	syncing     sync.Mutex    // held across a sync of the log
	stable      ring.Sequence // of stablePoint, with lazy; writer: the goroutine that holds syncing
	bound       bound         // limits, with a tail, how far answers may be ahead of stable
	ticks       int           // of boundTick, used by it alone
	// a Transfer that reads the store holds it shared; Close takes it and keeps it
	reading sync.RWMutex

	// The end of what has been taken from the appender, without its chain. Appender only.
	given point
	tail  *tail // nil: answers wait for the store; set before Open or Create has returned
	// What OnDurable and NewRecorder have set, before the first Append; nil: nothing.
	onDurable func(inputSeq uint64)
	onRoom    func()

	// The goroutine that packs writes this group: the appender, or the committer for the blocks that
	// are handed to it. tip is what has been packed.
	tip    point
	sealer sealer
	key    [keyBytes]byte

	// Commits on their way to the committer, in the order of the history. Close closes it.
	commits chan *Commit
	// A token for each commit under way: admit puts one in, the committer takes one out when a commit
	// has ended. Its capacity, MaxInFlight, is the limit. inFlight is the same number for Room, which
	// must not wait.
	room     chan struct{}
	spares   chan Block    // empty blocks, of commits that were handed over
	applied  ring.Sequence // writer: the appender
	durable  ring.Sequence // writer: the committer
	answered ring.Sequence // writer: the committer, with a tail see answer
	inFlight atomic.Int64
	// No commit may start for now. Writer: the committer, see holdBlocks. hurry has one place and ends
	// its wait, whose timer is pace.
	holding atomic.Bool
	hurry   chan struct{}
	pace    *time.Timer
	// The free space is down to the reserve. Writer, as of free: checkSpace.
	full    atomic.Bool
	free    atomic.Uint64 // bytes of the file system; math.MaxUint64: it does not say
	metrics counters

	// The waits for the disk: the committer's, those of the goroutine that holds syncing, and one for
	// each writer of the tail's log. Disk reads them.
	committing DiskTimes
	flushing   DiskTimes
	logging    [tailWriters]DiskTimes

	snapshots snapshots
	walkers   sync.Pool // of *walker, for short replays

	// Closed by Close: the tickers end, and callers that wait for a head return.
	stop     chan struct{}
	stopOnce sync.Once
	closed   atomic.Bool
	// The committer, and the tickers: of the anchor or the bound, of the free space, and of a tail's
	// log.
	workers sync.WaitGroup
	tickers sync.WaitGroup
}

// slotPromise is what a hot slot of the anchor may promise: a commit that a lazy file system has
// taken is in the operating system's memory, not yet on the disk.
func (j *Journal) slotPromise() uint32 {
	if j.lazy != nil {
		return slotCalled
	}
	return slotSynced
}

// Genesis returns the genesis record, and false when the journal is new. The bytes are the
// journal's and never change; the caller must not change them.
func (j *Journal) Genesis() ([]byte, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.genesis, j.genesis != nil
}

// Seed is the SHA-256 of the genesis: where the chain starts, and the seed of every report.
func (j *Journal) Seed() [32]byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seed
}

// Create writes the genesis, synced, and makes the journal ready for Append. The genesis is written
// once: later calls return ErrExists. No other goroutine may append meanwhile.
//
// The anchor comes after the genesis, and makes the journal count as created. After a crash between
// the two, the next opening finds a journal without a genesis, and Create writes it again.
//
// Errors: ErrExists, ErrClosed, ErrReading change nothing; any other is the poison.
func (j *Journal) Create(genesis []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if j.genesis != nil {
		return fmt.Errorf("journal: create dir=%s: %w", j.dir, ErrExists)
	}
	err := j.latch.orPoison(func() error {
		return j.db.Set([]byte{keyGenesis}, putGenesis(genesis), pebble.Sync)
	})
	if err == nil {
		err = j.latch.Err()
	}
	if err == nil && j.lazy != nil {
		err = j.lazy.Flush()
	}
	if err != nil {
		return j.latch.Poison(fmt.Errorf("journal: write key=g: %w", err))
	}
	j.seed = sha256.Sum256(genesis)
	j.tip = point{chain: j.seed}
	j.given, j.safe = j.tip, j.tip
	if j.anchor, err = createAnchor(j.o.FS, j.dir, j.seed, j.o.boot, j.slotPromise(),
		j.tip, 0); err != nil {
		return j.latch.Poison(err)
	}
	if j.o.Tail {
		if err := j.openTail(nil, j.tip); err != nil {
			return j.latch.Poison(err)
		}
	}
	j.genesis = append([]byte{}, genesis...)
	return nil
}

// Head returns the last durable input sequence and the last trade sequence issued by then. With a
// tail it waits until the store has everything that was answered before the call, so everything
// that has been answered can be read.
func (j *Journal) Head() (inputSeq, tradeSeq uint64) {
	j.settled()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.safe.inputSeq, j.safe.tradeSeq
}

// StableHead is the part of Head that a power cut cannot take away. What is derived from the
// journal and kept elsewhere follows StableHead: it must never know more than a start finds in the
// journal. In "fsync" mode StableHead is Head; in "os" mode it is at most FlushInterval behind, and
// waits for nothing. Any goroutine.
func (j *Journal) StableHead() (inputSeq, tradeSeq uint64) {
	if j.stableWhenDurable() {
		return j.Head()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stablePoint.inputSeq, j.stablePoint.tradeSeq
}

// Dir is the journal's directory.
func (j *Journal) Dir() string { return j.dir }

// Applied is the last input sequence handed to Append. Any goroutine, no lock.
func (j *Journal) Applied() uint64 { return uint64(j.applied.Load()) }

// Durable is the last input sequence that is durable in the store, where it can be
// read. Any goroutine, no lock.
func (j *Journal) Durable() uint64 { return uint64(j.durable.Load()) }

// Answered is the last input sequence that answers may be released for. It is Durable, or with a
// tail the tail's last sequence, which the store will have soon. Any goroutine, no lock.
func (j *Journal) Answered() uint64 { return uint64(j.answered.Load()) }

// Err is the error that poisoned the journal, or nil.
func (j *Journal) Err() error { return j.latch.Err() }

// usable reports why nothing may be written: the poison, ErrClosed, or ErrReading before Begin. It
// returns nil when writing is allowed.
func (j *Journal) usable() error {
	if err := j.latch.Err(); err != nil {
		return err
	}
	if j.closed.Load() {
		return ErrClosed
	}
	if !j.begun {
		return ErrReading
	}
	return nil
}

// start makes the channels and runs the committer and the tickers. Begin calls it before the tail
// is taken. From here on the store's tables are paced.
func (j *Journal) start() {
	j.commits = make(chan *Commit, j.o.MaxInFlight)
	j.room = make(chan struct{}, j.o.MaxInFlight)
	j.spares = make(chan Block, j.o.MaxInFlight)
	j.hurry = make(chan struct{}, 1)
	j.pace = time.NewTimer(tailPace) // not read before its first use
	j.workers.Go(func() {
		pprof.Do(context.Background(), pprof.Labels("stage", "committer"),
			func(context.Context) { j.commitLoop() })
	})
	if j.lazy != nil {
		j.lazy.tables.off.Store(false)
	}
	interval := anchorInterval
	if !j.stableWhenDurable() {
		interval = j.o.FlushInterval
	}
	j.checkSpace()
	if j.o.Tail && !j.logs() {
		j.bound.start(interval)
		j.every(max(interval/boundSyncs, 1), j.boundTick)
	} else {
		j.every(interval, j.anchorTick)
	}
	j.every(spaceInterval, j.checkSpace)
}

// every calls f at that interval on a goroutine of its own until Close, which waits for a call
// under way unless the journal is poisoned.
func (j *Journal) every(d time.Duration, f func()) {
	j.tickers.Go(func() {
		t := time.NewTicker(d)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				f()
			case <-j.stop:
				return
			}
		}
	})
}

// anchorTick makes progress durable outside the log. In "os" mode the log is synced first. A
// failure poisons.
func (j *Journal) anchorTick() {
	if err := j.anchorNow(false); err != nil {
		_ = j.latch.Poison(err)
	}
}

// anchorNow syncs the store's log as far as the durable head and then the anchor at it, in this
// order: the anchor must not vouch for what a power cut can still take. Without progress, and
// without force, it does nothing.
func (j *Journal) anchorNow(force bool) error {
	j.mu.Lock()
	head, a := j.safe.inputSeq, j.anchor
	j.mu.Unlock()
	if a == nil || j.latch.Err() != nil || (!force && head == a.syncedSeq()) {
		return nil
	}
	safe, err := j.stabilize()
	if err != nil {
		return err
	}
	return a.Sync(safe)
}

// checkSpace compares the free space with the reserve, and logs a change. A file system that does
// not report free space counts as roomy: running full is then an error, and final.
func (j *Journal) checkSpace() {
	avail, err := diskUsage(j.o.FS, j.dir)
	j.free.Store(math.MaxUint64)
	if err == nil {
		j.free.Store(avail)
	}
	full := err == nil && avail < j.o.ReserveBytes
	if full != j.full.Swap(full) {
		j.o.Logger.Infof("journal: free space %d bytes, reserve %d, storage full: %v", avail,
			j.o.ReserveBytes, full)
	}
}

// StorageFull reports that the free space is down to the reserve: the caller must admit nothing
// more; reads go on. The space is checked once a second. Any goroutine.
func (j *Journal) StorageFull() bool { return j.full.Load() }

// ReserveBytes is the free space below which StorageFull is true; 0 for none. Any goroutine.
func (j *Journal) ReserveBytes() uint64 { return j.o.ReserveBytes }

// FreeBytes is the free space of the journal's file system when it was last looked at; unknown when
// the file system does not say. Any goroutine.
func (j *Journal) FreeBytes() (free uint64, known bool) {
	free = j.free.Load()
	return free, free != math.MaxUint64
}

// Close waits for the commits in flight, anchors the head and closes the store. No Append may be
// under way, and none may follow. It waits for readers of the store that hold reading. A second
// call returns ErrClosed.
//
// A poisoned journal is left as it is, and its error returned: neither the store nor the anchor is
// closed, and no sync that hangs is waited for. The file that marks an open journal is removed only
// after a close without any error.
func (j *Journal) Close() error {
	if j.closed.Swap(true) {
		return ErrClosed
	}
	if !j.begun {
		return j.abandon()
	}
	j.reading.Lock() // never unlocked: from here on no Transfer reads
	j.stopOnce.Do(func() { close(j.stop) })
	close(j.commits)
	settled := make(chan struct{})
	go func() { j.tickers.Wait(); j.workers.Wait(); j.tail.stop(); close(settled) }()
	select {
	case <-settled:
	case <-j.latch.dead: // the committer or a ticker may wait for a sync that never comes
	}
	j.bound.stop() // a ticker renews it
	if j.latch.Err() == nil {
		if err := j.anchorNow(true); err != nil {
			_ = j.latch.Poison(err)
		}
	}
	if j.lazy != nil {
		j.lazy.tables.off.Store(true)
	}
	var err error
	if j.tail != nil {
		err = j.tail.close()
	}
	if poison := j.latch.Err(); poison != nil {
		return errors.Join(poison, err, j.lock.Close())
	}
	err = errors.Join(err, closeStore(j.db, j.latch))
	if j.anchor != nil {
		err = errors.Join(err, j.anchor.Close())
	}
	if err == nil {
		unmarkOpen(j.o.FS, j.dir)
	}
	return errors.Join(err, j.lock.Close())
}

// Version of the genesis value, and where its parts lie.
const (
	genesisVersion = 1
	genesisHeader  = 8 + sha256.Size
)

// putGenesis wraps the genesis for its key: version u8, three zero bytes,
// CRC-32C of the rest, SHA-256 of the genesis, the genesis.
func putGenesis(genesis []byte) []byte {
	v := make([]byte, genesisHeader+len(genesis))
	v[0] = genesisVersion
	sum := sha256.Sum256(genesis)
	copy(v[8:], sum[:])
	copy(v[genesisHeader:], genesis)
	binary.LittleEndian.PutUint32(v[4:], crc32.Checksum(v[8:], castagnoli))
	return v
}

// parseGenesis is the inverse of putGenesis; it copies. Errors are ErrCorrupt.
func parseGenesis(v []byte) ([]byte, error) {
	if len(v) < genesisHeader || v[0] != genesisVersion || v[1]|v[2]|v[3] != 0 {
		return nil, fmt.Errorf("genesis of %d bytes: %w", len(v), errVersion)
	}
	if crc, want := crc32.Checksum(v[8:], castagnoli), binary.LittleEndian.Uint32(v[4:]); crc != want {
		return nil, fmt.Errorf("genesis crc %08x, want %08x: %w", crc, want, errChecksum)
	}
	genesis := append([]byte{}, v[genesisHeader:]...)
	if sum := sha256.Sum256(genesis); string(sum[:]) != string(v[8:genesisHeader]) {
		return nil, fmt.Errorf("genesis hash %x, want %x: %w", sum, v[8:genesisHeader], errChecksum)
	}
	return genesis, nil
}

// notExist reports a missing file under any file system.
func notExist(err error) bool { return oserror.IsNotExist(err) }
