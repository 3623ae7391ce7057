package quorum

import (
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
			for range 2 {
				server, _, err := Alone(last.o.Dir, c.self(last))
				if must.OK(t, err); !strings.HasPrefix(server, "3.") {
					t.Errorf("the server is %s", server)
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

// TestAloneWantsADiskThatTookPart: an empty folder, and another member's.
func TestAloneWantsADiskThatTookPart(t *testing.T) {
	c := newCluster(t, 3)
	first, second := c.members[0], c.members[1]
	_, _, err := Alone(first.o.Dir, c.self(first))
	must.Be(t, err, ErrNoPart)
	c.start()
	c.book(1, "")
	c.stop()
	_, _, err = Alone(first.o.Dir, c.self(second))
	must.Be(t, err, ErrOtherMember)
}
