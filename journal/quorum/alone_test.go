package quorum

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// TestTheLastDiskKeepsWhatItsLogHas: two disks of three are lost. The journal of the third ends
// before commands that were acknowledged, and its log has them. Alone, it decides them, and the
// other members come back with empty disks. It may be repeated, also behind a record.
func TestTheLastDiskKeepsWhatItsLogHas(t *testing.T) {
	for _, compact := range []bool{false, true} {
		t.Run(fmt.Sprint("compacted=", compact), func(t *testing.T) {
			c := newCluster(t, 3)
			c.start()
			c.book(4, "old")
			c.alike(4)
			last := c.members[2]
			if compact {
				last.compactAll()
			}
			for range 3 {
				c.book(1, "acknowledged")
			}
			c.alike(7)
			c.stop()
			want := last.disk.commands
			last.disk.commands = want[:5:5] // a power cut takes from the journal what the log has
			lost := c.members[:2]
			c.members = c.members[2:]
			old := must.Get(ReadIdentity(last.o.Dir))(t)
			for _, others := range []int{3, 1} {
				server, _, err := Alone(last.o.Dir, c.self(last), func(known []Server) error {
					if len(known) != others {
						t.Errorf("the log knows of %v", known)
					}
					return nil
				})
				must.OK(t, err)
				if now := must.Get(ReadIdentity(last.o.Dir))(t); server != now || now == old ||
					!strings.HasPrefix(now, "3.") {
					t.Errorf("the server is %s, the disk %s, before %s", server, now, old)
				}
			}
			last.start()
			last.disk.until(t, "the log's commands", func() bool { return len(last.disk.commands) == 7 })
			for i, got := range last.disk.commands {
				if got.InputSeq, got.LeaderEpoch = want[i].InputSeq, want[i].LeaderEpoch; got != want[i] {
					t.Errorf("command %d is %+v, was %+v", i+1, got, want[i])
				}
			}
			c.book(1, "newer")
			remote := Remote{Subject: "os:ann", Reason: "two disks are lost"}
			for _, m := range lost {
				must.OK(t, remote.Add(t.Context(), last.node.self.Raft, c.self(m)))
				m.o.Dir, m.disk = t.TempDir(), newMemory()
				c.members = append(c.members, m)
				m.start()
				if compact {
					<-m.node.Restart()
					m.stop()
					m.start()
				}
				await(t, "a vote for member "+m.o.Member, m.node.Votes)
			}
			c.book(1, "newest")
			c.alike(9)
		})
	}
}

// self is the entry of a member in the list.
func (c *cluster) self(m *member) Member {
	for _, one := range m.o.Members {
		if one.ID == m.o.Member {
			return one
		}
	}
	c.t.Fatalf("member %s is not in its list", m.o.Member)
	return Member{}
}

// TestAloneWantsADiskThatCounts: an empty folder, another member's, one whose caller does not
// agree, and one that was removed are refused, and stay as they are.
func TestAloneWantsADiskThatCounts(t *testing.T) {
	c := newCluster(t, 3)
	first, second, third := c.members[0], c.members[1], c.members[2]
	agreed := func([]Server) error { return nil }
	_, _, err := Alone(first.o.Dir, c.self(first), agreed)
	must.Be(t, err, ErrNoPart)
	c.start()
	c.book(1, "")
	c.stop()
	_, _, err = Alone(first.o.Dir, c.self(second), agreed)
	must.Be(t, err, ErrOtherMember)
	there := errors.New("they are there")
	_, _, err = Alone(first.o.Dir, c.self(first), func([]Server) error { return there })
	must.Be(t, err, there)
	c.start()
	c.book(1, "")
	leader := c.members[0]
	for _, m := range c.members {
		if m.node.Leads() {
			leader = m
		}
	}
	removed := third
	if leader == third {
		removed = second
	}
	remote := Remote{Subject: "os:ann", Reason: "a test"}
	must.OK(t, remote.Remove(t.Context(), leader.node.self.Raft, removed.o.Member))
	await(t, "it knows", func() bool { return !removed.node.Votes() })
	c.stop()
	_, _, err = Alone(removed.o.Dir, c.self(removed), agreed)
	must.Be(t, err, ErrNoVote)
}
