package installation

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/journal/quorum"
	"posttrade/matcher"
)

// errRestart ends an installation that must be opened again at once: the leader has sent a journal
// in place of this member's own, or is to send one.
//
// It is no failure: serve opens the installation again in the same process.
var errRestart = errors.New("this member goes on with another journal than its own")

// MemberTLS is the TLS configuration by which members identify each other, nil on loopback.
//
// The same certificate proves a member to the others and checks theirs against cluster.tls-ca.
// Commands that ask members use it as well. The error is that of the files.
func MemberTLS(c *settings.Config) (*tls.Config, error) {
	if c.String("cluster.tls-cert") == "" {
		return nil, nil
	}
	return quorum.MemberTLS(c.String("cluster.tls-cert"), c.String("cluster.tls-key"),
		c.String("cluster.tls-ca"))
}

// member is this process as one of several: its node, and the parts that run while it leads and
// while it does not.
//
// Node and relays are set while it opens and then constant. stops is used by the goroutine that
// opens and by Stop.
type member struct {
	Node  *quorum.Node
	roles *roles
	// The number of members in the list, voters or not.
	count  int
	relays map[string]*httpapi.Relay // of each service, by name
	// What ends the parts, in the order of their starts.
	stops []func()
	// Its history differs from a majority's. The writer is standAside; the node reads it, so that no
	// other member takes this one's journal. It is never cleared in this process.
	odd atomic.Bool
}

// stop ends the member's parts: those of the leader first, then the consensus.
//
// The node goes last: until it has closed, it hands agreed commands to the engine.
func (m *member) stop() (err error) {
	for _, stop := range slices.Backward(m.stops) {
		stop()
	}
	if m.Node != nil {
		err = errors.Join(err, m.Node.Close())
	}
	return err
}

// joinCluster opens the consensus state and the engine over it. A member with an empty disk waits
// here until the cluster has agreed on a genesis or has sent it a journal.
//
// The steps before the loop finish what earlier runs have begun: a replacement that damage has
// called for, and a received journal. A new member either gets a genesis and makes a journal, or
// is sent a journal; the next turn of the loop resumes with that one.
func (in *Installation) joinCluster(ctx context.Context, c *settings.Config, o engine.Options,
	log *slog.Logger) (err error) {
	if c.String("auth.jwt.secret") == "" && c.String("auth.jwt.secret-file") == "" {
		log.Warn("auth.jwt.secret is not set: a token is good on the member that minted it only")
	}
	if err := healBeforeStart(ctx, c, log); err != nil {
		return err
	}
	if err := moveDamaged(c.String("data.dir"), log); err != nil {
		return err
	}
	storage := engine.JournalStorage{Dir: o.Dir, Incoming: c.InDataDir("journal.incoming"),
		Fatal: o.Fatal}
	for {
		if err := storage.Install(); err != nil {
			return err
		}
		created, err := journal.Created(o.Dir, nil)
		if err != nil {
			return err
		}
		if created {
			return withDamageNoted(c, in.resumeMember(c, o, storage, log))
		}
		if err := in.newMember(ctx, c, o, storage, log); !errors.Is(err, errRestart) {
			return err
		}
		log.Info("cluster: a journal has come from the leader", "member", c.Int("cluster.member-id"))
		err = in.Member.Node.Close()
		in.Member = nil
		if err != nil {
			return err
		}
	}
}

// resumeMember opens a member that has a journal.
//
// The engine opens first, because the node needs the genesis and asks for the head of its journal.
func (in *Installation) resumeMember(c *settings.Config, o engine.Options, storage quorum.Storage,
	log *slog.Logger) (err error) {
	if in.Core, err = engine.Open(o); err != nil {
		return err
	}
	return in.openNode(c, o, storage, in.Core.Genesis.Marshal(), log)
}

// newMember opens a member without a journal. It returns errRestart when a journal has come.
//
// The node opens first, because the genesis comes from the cluster. It waits until a majority is
// there, or ctx ends.
func (in *Installation) newMember(ctx context.Context, c *settings.Config, o engine.Options,
	storage quorum.Storage, log *slog.Logger) error {
	if err := in.openNode(c, o, storage, nil, log); err != nil {
		return err
	}
	text, err := in.Member.Node.Agreed(ctx)
	if err != nil {
		return err
	}
	if text == nil {
		return errRestart
	}
	o.Genesis = func() (*matcher.Genesis, error) { return matcher.ParseGenesis(text) }
	in.Core, err = engine.Open(o)
	return err
}

// freshMember reports that nothing of a member is in data.dir: neither its part of a consensus nor
// a journal that was set aside because it is damaged.
func freshMember(c *settings.Config) bool {
	_, err := os.Stat(c.InDataDir("quorum"))
	damaged, _ := filepath.Glob(c.InDataDir(damagedPrefix + "*"))
	return errors.Is(err, fs.ErrNotExist) && len(damaged) == 0
}

// openNode opens this member's part of the consensus. has is the genesis of the journal that is
// there, nil for none. Only with cluster.adopt may a journal without consensus state begin a
// cluster; its head is then where the log begins.
func (in *Installation) openNode(c *settings.Config, o engine.Options, storage quorum.Storage,
	has []byte, log *slog.Logger) error {
	memberTLS, err := MemberTLS(c)
	if err != nil {
		return err
	}
	var adopt uint64
	switch {
	case !c.Bool("cluster.adopt"):
	case has != nil:
		adopt = engine.ClusterHost{Engine: in.Core}.Head()
	case freshMember(c):
		return settings.Usagef("cluster.adopt: %s has no journal to begin a cluster with",
			c.String("data.dir"))
	}
	in.Member = &member{roles: newRoles(), count: len(c.Members())}
	odd := &in.Member.odd
	in.Member.Node, err = quorum.Open(quorum.Options{
		Dir: c.InDataDir("quorum"), Member: strconv.Itoa(c.Int("cluster.member-id")),
		Members: c.Members(), TLS: memberTLS,
		Storage: storage, Has: has, Adopt: adopt, Services: in.services, OnRole: in.Member.roles.set,
		Damaged: func() bool { return in.damaged() || odd.Load() }, Record: in.recordChange(c, log),
		Genesis: func() ([]byte, error) {
			g, err := o.Genesis()
			if err != nil {
				return nil, err
			}
			return g.Marshal(), nil
		},
		Idle: o.Idle, Heartbeat: c.Millis("cluster.heartbeat-ms"), Fatal: o.Fatal, Logger: log,
		LogReserve: uint64(c.Bytes("cluster.log-reserve-bytes")), FS: o.JournalOptions().FS,
	})
	return err
}
