package quorum

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"posttrade/matcher"
	"posttrade/ring"
)

// DefaultHeartbeat is the silence after which a member doubts its leader. It is also the least time
// that an election takes when the leader's machine, and not only its process, is gone (watch.go).
const DefaultHeartbeat = 150 * time.Millisecond

// Host is the member's engine, journal and desk, as the node sees them. A ref is the correlation id
// that a command has as its InputSeq in the ring of proposals; a submission goes by that of its
// first command.
type Host interface {
	// Head is the sequence of the last command that the journal has; before Attach it does not change.
	Head() uint64
	// Apply takes agreed commands, the first of which will get sequence first. It waits for room.
	// Calls come in order, one at a time, on different goroutines. A command that was handed in here
	// has its ref as its InputSeq, any other has 0. The commands' memory is the host's from then on.
	Apply(first uint64, commands []matcher.Command, ids IDs)

	// Decided calls use with the commands that the journal has from one sequence up to another, both
	// inclusive, in pieces. The slices are the host's again when use returns.
	Decided(ctx context.Context, from, to uint64, use func([]matcher.Command) error) error

	// Full reports that the disk has no room for more commands: nothing is admitted. Any goroutine.
	Full() bool
	// Refuse tells a submitter that its commands were not sequenced and never will be. Any goroutine.
	Refuse(ref uint64)
	// ClientID and Size describe a submission: the client id of a command, nil for none, and how many
	// commands were handed in together. The proposer calls them before it gives the slots back.
	ClientID(ref uint64) []byte
	Size(ref uint64) int

	// WaitStable returns when the journal has everything up to a sequence on stable storage.
	WaitStable(ctx context.Context, sequence uint64) error
	// WaitDecided returns when the engine has decided everything up to a sequence and shows it, or
	// when ctx ends.
	WaitDecided(ctx context.Context, sequence uint64) error
	// Transfer is the whole journal as it is now. The caller closes it.
	Transfer() (Transfer, error)
	// TransferSize is about the size of a Transfer now, in bytes; an error: none can be made.
	TransferSize() (uint64, error)
}

// Options of Open. Dir, Member, Members, Storage and Genesis are required.
type Options struct {
	Dir     string      // the consensus state's own directory
	Member  string      // this one's number
	Members []Member    // all of them
	TLS     *tls.Config // nil = plain, which is refused unless every address is loopback

	Storage Storage
	Has     []byte // the genesis text of the journal that is there; nil = none
	// without consensus state: begin a cluster with the existing journal, which ends here; 0 = refuse
	Adopt uint64
	// what this member proposes when it leads a cluster without one
	Genesis func() ([]byte, error)
	// where the member's services listen, called when it begins to lead
	Services func() map[string]string
	// reports that a part of this member's journal is known to be damaged; may be nil
	Damaged func() bool
	// puts a change of the members on record before this member makes it, and again when it then
	// fails; nil = nothing is put on record
	Record Recorder
	// called for each change in order, on one goroutine; may be nil
	OnRole    func(leads bool)
	Idle      ring.Strategy // how the proposer waits for commands
	Heartbeat time.Duration // 0 = DefaultHeartbeat
	// the first failure after which the member cannot continue; called once
	Fatal  func(error)
	Logger *slog.Logger // nil = none
	// what a file of the log takes from the disk at once; 0 = DefaultLogReserve
	LogReserve uint64
	FS         vfs.FS                         // tests; nil = the disk
	newNetwork func(Options) (network, error) // tests; nil = TCP
}

// network is how members reach each other.
type network interface {
	// Transport carries the consensus library's traffic for a server.
	Transport(self raft.ServerID, logger *slog.Logger) (transport, error)
	// Ask puts a question to the member at an address.
	Ask(ctx context.Context, hostPort string, request []byte) ([]byte, error)
	// Answer sets the function that answers the others' questions; from is the address of the asker.
	Answer(func(from string, request []byte) ([]byte, error))
	Close() error
}

// defaults fills in what is not set.
func (o *Options) defaults() error {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	if o.OnRole == nil {
		o.OnRole = func(bool) {}
	}
	if o.Damaged == nil {
		o.Damaged = func() bool { return false }
	}
	if o.Services == nil {
		o.Services = func() map[string]string { return nil }
	}
	if o.newNetwork == nil {
		o.newNetwork = openTCP
	}
	return nil
}

// self is the entry of this member in the list.
func (o *Options) self() (Member, error) {
	for _, m := range o.Members {
		if m.ID == o.Member {
			return m, nil
		}
	}
	return Member{}, fmt.Errorf("quorum: member %q is not in the list of members: %w", o.Member,
		ErrMembers)
}
