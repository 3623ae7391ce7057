package quorum

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestOlderCopyOfAMemberIsFoundOut: a member acknowledges, with the leader, what its folder has
// forgotten when an older copy of it is put back. Together with the third member it goes on from
// there. The former leader, whose journal has what was acknowledged, ends when it meets the other
// commands, and not before.
func TestOlderCopyOfAMemberIsFoundOut(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	c.book(3, "")
	leader := c.leader()
	others := slices.DeleteFunc(slices.Clone(c.members), func(m *member) bool { return m == leader })
	stale, third := others[0], others[1]
	stale.disk.until(t, "the first commands", func() bool { return len(stale.disk.commands) == 3 })
	third.disk.until(t, "the first commands", func() bool { return len(third.disk.commands) == 3 })
	stale.stop()
	old := filepath.Join(t.TempDir(), "copy")
	must.OK(t, os.CopyFS(old, os.DirFS(stale.o.Dir)))
	was := slices.Clone(stale.disk.commands)
	stale.start()
	third.stop()
	c.book(3, "acknowledged by two")
	stale.disk.until(t, "the later commands", func() bool { return len(stale.disk.commands) == 6 })
	stale.stop()
	leader.stop()

	must.OK(t, os.RemoveAll(stale.o.Dir))
	must.OK(t, os.CopyFS(stale.o.Dir, os.DirFS(old)))
	stale.disk.commands = was
	stale.start()
	third.start()
	c.book(5, "in their place")

	found := make(chan error, 1)
	var once sync.Once
	leader.fatal = func(err error) { once.Do(func() { found <- err }) }
	leader.start()
	select {
	case err := <-found:
		if !errors.Is(err, ErrOtherCommands) {
			t.Errorf("the former leader ends with %v, want %v", err, ErrOtherCommands)
		}
	case <-time.After(patience):
		t.Fatal("the former leader goes on beside another history")
	}
	if n := leader.disk.Head(); n != 6 {
		t.Errorf("its journal has %d commands, want the 6 that it had", n)
	}
}

// TestAgreedCommandsAreThoseOfTheJournal: a member that starts again has commands that it is handed
// once more. They are the same, whichever member has proposed them, and so it goes on.
func TestAgreedCommandsAreThoseOfTheJournal(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	for range 3 {
		c.book(2, "x")
		_ = c.leader().node.raft.LeadershipTransfer().Error()
	}
	for _, m := range c.members {
		m.stop()
		m.start()
	}
	c.book(1, "")
	n := int(c.leader().disk.Head())
	for _, m := range c.members {
		m.disk.until(t, "all commands", func() bool { return len(m.disk.commands) >= n })
	}
}

// TestEveryPieceIsCompared: the journal is read in pieces, entries are of any length, and a
// difference in any field of the last command of all is found.
func TestEveryPieceIsCompared(t *testing.T) {
	const head, term = 2*decidedPiece + 100, 7
	was := make([]matcher.Command, head)
	for i := range was {
		was[i] = matcher.NewCommand(matcher.OrderNew)
		was[i].InputSeq, was[i].LeaderEpoch, was[i].Qty = uint64(i+1), term, int32(i)
	}
	disk := newMemory()
	disk.commands = was
	compare := func(agreed []matcher.Command, term uint64) (err error) {
		f := &fsm{n: &Node{host: disk}, head: head}
		f.n.ctx = t.Context()
		for first, n := 0, 1; err == nil && first < head; first, n = first+n, n*3 {
			n = min(n, head-first)
			err = f.past.compare(f, uint64(first+1), agreed[first:first+n], term)
		}
		if err == nil && (f.past.commands != nil || f.past.unread) {
			t.Errorf("%d commands are left, unread: %v", len(f.past.commands), f.past.unread)
		}
		return err
	}
	for name, change := range map[string]func(*matcher.Command){
		"quantity": func(c *matcher.Command) { c.Qty++ },
		"time":     func(c *matcher.Command) { c.EventTimeMillis++ },
		"account":  func(c *matcher.Command) { c.AccountID++ },
		"type":     func(c *matcher.Command) { c.Type = matcher.OrderCancel },
	} {
		agreed := slices.Clone(was)
		for i := range agreed { // as they lie in the log
			agreed[i].InputSeq, agreed[i].LeaderEpoch = 0, 0
		}
		if err := compare(agreed, term); err != nil {
			t.Errorf("the same commands: %v", err)
		}
		if err := compare(agreed, term+1); !errors.Is(err, ErrOtherCommands) {
			t.Errorf("another term: %v", err)
		}
		change(&agreed[head-1])
		if err := compare(agreed, term); !errors.Is(err, ErrOtherCommands) {
			t.Errorf("another %s at the end: %v", name, err)
		}
	}
}

// TestWhatCannotBeReadIsNotCompared: the scrub judges damage, an archive may be away.
func TestWhatCannotBeReadIsNotCompared(t *testing.T) {
	f := &fsm{n: &Node{}, head: 9}
	f.n.o.Logger = slog.New(slog.DiscardHandler)
	f.n.ctx = t.Context()
	f.n.host = unreadable{}
	agreed := []matcher.Command{matcher.NewCommand(matcher.OrderNew)}
	if err := f.past.compare(f, 1, agreed, 1); err != nil || !f.past.unread {
		t.Errorf("%v, unread: %v", err, f.past.unread)
	}
}

// unreadable is a host whose journal cannot be read.
type unreadable struct{ Host }

func (unreadable) Decided(context.Context, uint64, uint64, func([]matcher.Command) error) error {
	return errors.New("damaged")
}
