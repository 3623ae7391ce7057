package engine

import (
	"log/slog"
	"time"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/session"
	"posttrade/ring"
)

// Options are what an engine depends on beside its data. installation.EngineOptions makes them
// from the settings, which have checked every range. The zero value is not usable: Dir, Genesis
// and the sizes are required.
type Options struct {
	// The folder of the journal.
	Dir string
	// A mode of package journal: "fsync" or "os". A member's journal is in mode "os".
	Durability string
	// In mode "os" the time within which the journal is synced: what a power cut may remove.
	FlushInterval time.Duration
	// Free bytes of the disk below which orders are refused; 0 refuses none.
	ReserveBytes int64
	// The folder of archives of the journal; "" when there is none, and then what was moved out of
	// the journal cannot be read.
	ArchiveDir string
	// Commands between two snapshots; 0 takes them only on demand.
	SnapshotInterval int64
	// Slots of the two rings, powers of two. They bound how many commands and events may wait, and so
	// the memory and the longest wait: a full input ring is answered with 503.
	InputSlots  int
	OutputSlots int
	// How a stage waits when it has nothing to do.
	Idle ring.Strategy
	// The CPU cores that the threads are pinned to; -1 pins a thread to none.
	MatcherCPU  int
	RecorderCPU int
	// Fills in the blotter. When it is full, the oldest go first.
	BlotterCapacity int
	// Requests in work at once. Sessions and sidecars have tickets of their own.
	Tickets int
	// The most sessions that are open at once; not used when Session is nil.
	Sessions int
	// True for a member of a cluster: the members agree on a command of the desk before the matcher
	// gets it, and the answers do not wait for this member's own journal.
	Member bool
	// True when the control feeds make the gate ready; false makes it ready at once.
	Feeds bool
	// Opens shared-memory order entry over the engine; nil when it is off. Open calls it when desk
	// and gate are there and before the recorder is made, because the sessions observe its events.
	Session func(*Engine) (*session.Server, error)
	// Gets what the sessions have to say; nil drops it. Sessions alone write to it: the engine returns
	// its errors.
	Log *slog.Logger
	// Makes the genesis of a new journal. It is not called when the journal has one.
	Genesis func() (*matcher.Genesis, error)
	// May refuse the start before a byte of the journal is changed; nil never refuses. It sees the
	// engine recovered, with a journal that is open for reading only. In a new journal there is no
	// engine yet.
	Approve func(*Engine) error
	// Gets the first failure of the journal, once, and ErrEnded for each thread that fails by itself,
	// on the goroutine that met it. It should end the process. Without it the process ends, too.
	Fatal func(error)
	// Tests put another disk under the journal; nil is the system's.
	OnDisk func(*journal.Options)
}
