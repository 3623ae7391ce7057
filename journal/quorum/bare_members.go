package quorum

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/raft"
)

// Bare is three members of the consensus library with nothing of this project but the log store and
// the wire: no engine, no journal, no desk. The figures of a whole cluster are compared with those
// of Bare. Its logs are real, with real syncs.
type Bare struct {
	nodes  []*bareNode
	leader *raft.Raft
}

type bareNode struct {
	raft *raft.Raft
	wire *wire
	log  *logStore
}

// bareTimeout bounds the wait for the first leader.
const bareTimeout = 30 * time.Second

// OpenBare starts three members on loopback with their logs in dir, and returns when one of them
// leads. Close ends them.
func OpenBare(dir string) (b *Bare, err error) {
	b = &Bare{}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	var c raft.Configuration
	for i := range 3 {
		id := raft.ServerID(strconv.Itoa(i+1) + ".bare")
		w, err := openWire("127.0.0.1:0", wireOptions{})
		if err != nil {
			return nil, err
		}
		b.nodes = append(b.nodes, &bareNode{wire: w})
		w.Serve(id)
		c.Servers = append(c.Servers, raft.Server{ID: id, Address: raft.ServerAddress(w.Addr().String())})
	}
	for i, n := range b.nodes {
		if err := n.open(filepath.Join(dir, strconv.Itoa(i+1)), c.Servers[i].ID); err != nil {
			return nil, err
		}
	}
	if err := b.nodes[0].raft.BootstrapCluster(c).Error(); err != nil {
		return nil, fmt.Errorf("quorum: bare: %w", err)
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		for _, n := range b.nodes {
			if n.raft.State() == raft.Leader {
				b.leader = n.raft
				return b, b.leader.Barrier(0).Error()
			}
		}
		if time.Since(begun) > bareTimeout {
			return nil, fmt.Errorf("quorum: bare: nobody leads after %v", bareTimeout)
		}
	}
}

// open starts the library over the log in dir. It has no snapshots, so the log grows without end.
func (n *bareNode) open(dir string, id raft.ServerID) (err error) {
	if n.log, err = openLogStore(dir, logStoreOptions{}); err != nil {
		return err
	}
	o := Options{Logger: slog.New(slog.DiscardHandler), Heartbeat: time.Second}
	config := (&Node{o: o, id: id}).config()
	config.NoSnapshotRestoreOnStart = false
	t := transportOver(n.wire, o.Logger)
	n.raft, err = raft.NewRaft(config, bareFSM{}, n.log, n.log, raft.NewDiscardSnapshotStore(), t)
	return err
}

// Propose puts an entry into the log; wait waits until it is agreed. Any number may be under way.
func (b *Bare) Propose(entry []byte) (wait func() error) { return b.leader.Apply(entry, 0).Error }

// Close ends the members.
func (b *Bare) Close() {
	for _, n := range b.nodes {
		if n.raft != nil {
			_ = n.raft.Shutdown().Error() // nothing of it is kept
		}
		_ = n.wire.Close()
		if n.log != nil {
			_ = n.log.Close()
		}
	}
}

// bareFSM applies entries without any effect.
type bareFSM struct{}

func (bareFSM) Apply(*raft.Log) any                 { return nil }
func (bareFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, raft.ErrNothingNewToSnapshot }
func (bareFSM) Restore(r io.ReadCloser) error       { return r.Close() }
