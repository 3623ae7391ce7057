package journal

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The values of Options.Durability.
const (
	DurabilityFsync = "fsync"
	DurabilityOS    = "os"
)

// Defaults of Options.
const (
	DefaultFlushInterval = 50 * time.Millisecond
	DefaultReserveBytes  = 256 << 20
	NoReserve            = math.MaxUint64 // as Options.ReserveBytes: StorageFull never turns true
	DefaultMaxInFlight   = 2

	// anchorInterval is how often progress is anchored in "fsync" mode: well within the promised 100
	// ms.
	anchorInterval = 50 * time.Millisecond
	// spaceInterval is how often the free space is looked at.
	spaceInterval = time.Second
)

// Options of Open. The zero value is a journal with real syncs on the real disk, without a tail.
//
// What the two settings mean:
//
//	Durability  Tail  an answer waits for                 a power cut takes
//	"fsync"     no    a sync of the store's log           nothing that was answered
//	"fsync"     yes   a synced write to the tail          nothing that was answered
//	"os"        no    write(2) of the store's log         at most the last FlushInterval, and one sync
//	"os"        yes   a copy into a mapped file           at most the last FlushInterval
//
// The death of the process takes nothing that was answered, in any of them.
type Options struct {
	Durability string // DurabilityFsync (default) or DurabilityOS
	// "os": the time within which the log is really synced (bound.go); default 50 ms
	FlushInterval time.Duration
	ReserveBytes  uint64 // free space at which StorageFull turns true, or NoReserve; default 256 MiB
	MaxInFlight   int    // commits being synced at the same time; default 2
	// answers wait for a file beside the store, not for the store (tail.go); Linux only
	Tail bool
	// where archives are (archive.go); "": what was moved out cannot be read
	ArchiveDir string
	Codec      Codec  // of new blocks; CodecS2 unless codecSet
	codecSet   bool   // tests
	FS         vfs.FS // tests; default the operating system's
	Logger     Logger // default: silent
	// called once, on the goroutine that met the first failure; default: one line on stderr, exit 1
	Fatal func(error)

	boot       string    // tests: the name of this run of the system
	tailShape  tailShape // tests: a small one
	tailBeside int       // tests: 1, so that small writes are under way together
	mapTail    mapFunc   // tests: memory that no file backs
}

// mapFunc opens a tail of that size: all of it is mapped or, if it is to be written by WriteAt, its
// header slots.
type mapFunc func(fs vfs.FS, name string, size int, logged bool) (tailMap, error)

// defaults fills in what is not set. Its errors are ErrDurability and that of an unknown codec.
// Where a tail does not work it turns Tail off, unless a test maps it.
func (o *Options) defaults() error {
	switch o.Durability {
	case "":
		o.Durability = DurabilityFsync
	case DurabilityFsync, DurabilityOS:
	default:
		return fmt.Errorf("journal: durability=%q: %w", o.Durability, ErrDurability)
	}
	if o.FlushInterval <= 0 {
		o.FlushInterval = DefaultFlushInterval
	}
	switch o.ReserveBytes {
	case 0:
		o.ReserveBytes = DefaultReserveBytes
	case NoReserve:
		o.ReserveBytes = 0 // nothing is below it
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if !o.codecSet {
		o.Codec = CodecS2
	}
	if o.Codec > CodecZstd {
		return fmt.Errorf("journal: option codec=%d: it is none of the three", o.Codec)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = discardLogger{}
	}
	if o.Fatal == nil {
		o.Fatal = exit
	}
	if o.boot == "" {
		o.boot = BootID()
	}
	if o.tailShape == (tailShape{}) {
		o.tailShape = defaultTail(o.Durability == DurabilityFsync)
	}
	if o.tailBeside == 0 {
		o.tailBeside = tailBeside
	}
	if o.mapTail == nil {
		o.mapTail, o.Tail = mapTail, o.Tail && tailFits(o.Durability, os.Getpagesize())
	}
	return nil
}

// tailFits reports whether a tail works on a system with pages of that size, in bytes. The marks of
// a log lie in mapped memory, its writes go past it: one page must not hold both, because the
// system may write the page back over a write.
func tailFits(durability string, page int) bool {
	return hasTail && (durability == DurabilityOS || page <= tailSlots*tailHeader)
}
