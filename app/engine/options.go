package engine

import (
	"time"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/session"
	"posttrade/ring"
)

// Options are what an engine depends on beside its data.
type Options struct {
	Dir              string
	Durability       string
	FlushInterval    time.Duration
	ReserveBytes     int64
	ArchiveDir       string // where archives of the journal are; "": what was moved out cannot be read
	SnapshotInterval int64
	InputSlots       int
	OutputSlots      int
	Idle             ring.Strategy
	MatcherCPU       int
	RecorderCPU      int
	BlotterCapacity  int
	Tickets          int // for requests
	// the most sessions; not used when Session is nil
	Sessions int
	// of a cluster: members agree on a command of the desk before the matcher gets it
	Member bool
	// true: the control feeds make the gate ready; false: it is ready at once
	Feeds   bool
	Session func(*Engine) (*session.Server, error) // shared-memory order entry; nil: off
	Genesis func() (*matcher.Genesis, error)       // makes the genesis of a new journal
	// may refuse the start before a byte of the journal is changed; nil: never refuses
	Approve func(*Engine) error
	Fatal   func(error)
	OnDisk  func(*journal.Options) // tests: another disk; nil: the system's
}
