package installation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/journal/evidence"
	session "posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// said is what a member says of its first leaves.
func (c *three) said(at int, size uint64) (s evidence.MemberTree, err error) {
	answer, err := http.Get(fmt.Sprintf("http://%s/log/member?size=%d", c.http[at], size))
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	return s, json.NewDecoder(answer.Body).Decode(&s)
}

// oneTree waits until all members have the tree of a sequence, and compares it.
func (c *three) oneTree(what string) {
	c.t.Helper()
	sequence := c.alike()
	size := (sequence-1)/256 + 1
	if sequence%256 == 0 {
		size = sequence/256 + 1
	}
	var roots [3]string
	apptest.Until(c.t, what+": all members have the tree", func() (bool, any) {
		for i := range roots {
			s, err := c.said(i, size)
			if err != nil || s.Size != size {
				return false, fmt.Sprint(i, s, err)
			}
			roots[i] = s.Root
		}
		return true, roots
	})
	if roots[0] != roots[1] || roots[0] != roots[2] {
		c.t.Errorf("%s: %d leaves have the roots %v", what, size, roots)
	}
}

// TestThreeMembersHaveOneTree: from the first orders, after a change of leaders and after the
// replacement of a disk. A follower relays the leader's head, whose log a proof verifies against.
func TestThreeMembersHaveOneTree(t *testing.T) {
	c := newThree(t, "evidence.interval", "20ms")
	c.start()
	c.trade(300)
	c.oneTree("at first")
	old := c.leader()
	folder := filepath.Join(t.TempDir(), "p.json")
	check := func(what string, asked int) {
		t.Helper()
		status, proof := c.proof(asked)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", what, status, proof)
		}
		writeFile(t, folder, proof)
		args := append([]string{"verify", folder}, c.keys()...)
		if code, said, stderr := apptest.Run("evidence", args...); code != 0 {
			t.Errorf("%s: exit %d: %s%s", what, code, said, stderr)
		}
	}
	check("from a follower", (old+1)%3)
	follower, leader := c.get((old+1)%3, "/log/checkpoint"), c.get(old, "/log/checkpoint")
	if strings.Split(follower, "\n")[0] != strings.Split(leader, "\n")[0] {
		t.Errorf("%s %s", follower, leader)
	}
	c.members[old].stop()
	c.leader()
	c.trade(300)
	c.members[old].start()
	c.members[old].awaitOpen()
	c.oneTree("after a change of leaders")
	check("from the new leader", (old+1)%3)
	lost := (c.leader() + 1) % 3
	c.members[lost].stop()
	c.members[lost].destroy()
	c.members[lost].start()
	c.members[lost].awaitOpen()
	c.trade(300)
	c.oneTree("after the replacement of a disk")
	for i, m := range c.members {
		if in := m.open(); in == nil || in.evidence.source.State().Divergences != 0 {
			t.Errorf("member %d: a divergence", i+1)
		}
	}
}

// TestARestoredClusterHasTheTreeOfBefore: a cluster that begins with the backup of one member has
// the tree of the former one on every member, also when another leads. A head that an auditor has
// kept from before is a prefix of it.
func TestARestoredClusterHasTheTreeOfBefore(t *testing.T) {
	before := newThree(t, "evidence.interval", "20ms")
	before.start()
	before.trade(270) // a full leaf and an open one
	before.oneTree("before")
	leader := before.leader()
	kept := filepath.Join(t.TempDir(), "kept")
	head := before.alike()
	apptest.Until(t, "a head over everything", func() (bool, any) {
		note, err := before.head(leader)
		writeFile(t, kept, note)
		return strings.Contains(string(note), fmt.Sprintf("\nhead %d ", head)), err
	})
	keys := before.keys()
	first := must.Get(before.said(leader, 2))(t)
	night, token := filepath.Join(t.TempDir(), "night"), filepath.Join(t.TempDir(), "token")
	writeFile(t, token, []byte(before.token()+"\n"))
	program(t, "backup", night, "--token-file="+token, "--server=http://"+
		before.members[(leader+1)%3].open().listeners.addresses()["admin"])
	before.stop()

	after := newThree(t, "evidence.interval", "20ms")
	begins := after.members[0]
	begins.data = filepath.Join(t.TempDir(), "data")
	begins.settings = append(begins.settings, "cluster.adopt", "true")
	program(t, "restore", night, "--data.dir="+begins.data)
	after.start()
	same := func(what string) {
		t.Helper()
		after.oneTree(what)
		for i := range 3 {
			if s := must.Get(after.said(i, 2))(t); s.Root != first.Root || s.Size != 2 {
				t.Errorf("%s: member %d has the root %s, before it was %s", what, i+1, s.Root, first.Root)
			}
		}
	}
	same("restored")
	after.trade(9)
	same("after new orders")
	old := after.leader()
	after.members[old].stop()
	after.leader()
	after.trade(9)
	after.members[old].start()
	after.members[old].awaitOpen()
	same("after a change of leaders")
	for i, m := range after.members {
		if in := m.open(); in == nil || in.evidence.source.State().Divergences != 0 {
			t.Errorf("member %d: a divergence", i+1)
		}
	}
	// The leader may be another one when its tiles are asked for: it signs its own heads.
	newer := filepath.Join(t.TempDir(), "newer")
	args := append([]string{"verify", "--checkpoint", kept, newer, "--log",
		"http://" + after.http[old] + "/log"}, append(keys, after.keys()...)...)
	apptest.Until(t, "the head of before is a prefix", func() (bool, any) {
		note, err := after.head(old)
		if err != nil {
			return false, err
		}
		writeFile(t, newer, note)
		code, said, stderr := apptest.Run("evidence", args...)
		return code == 0, said + stderr
	})
}

// head is the newest signed head, asked of a member.
func (c *three) head(at int) ([]byte, error) {
	answer, err := http.Get("http://" + c.http[at] + "/log/checkpoint")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// keys are flags with the public key of each member's log.
func (c *three) keys() (flags []string) {
	for _, m := range c.members {
		_, key, _ := apptest.Run("evidence", "key", "--data.dir", m.data)
		flags = append(flags, "--key", strings.TrimSpace(key))
	}
	return flags
}

// TestAnOddLeaderHandsOver: a leader that finds out that its history differs from the others' gives
// the leadership to one of them and does not get it back; orders go on, also through the odd
// member. Shared-memory sessions with the odd member end, and no other begins.
func TestAnOddLeaderHandsOver(t *testing.T) {
	c := newThree(t)
	sockets := must.Get(os.MkdirTemp("", "pt"))(t) // because the path of a socket must be short
	t.Cleanup(func() { os.RemoveAll(sockets) })
	socketOf := func(at int) string { return filepath.Join(sockets, fmt.Sprint("s", at)) }
	for i, m := range c.members {
		m.settings = append(m.settings, "session.socket", socketOf(i))
	}
	c.start()
	c.trade(10)
	odd := c.leader()
	dial := func(at int) (*session.Client, error) {
		return session.Dial(t.Context(), socketOf(at), c.token(), session.Options{Role: wire.Trades})
	}
	reads := must.Get(dial(odd))(t)
	defer reads.Close()
	feed := func() *http.Response {
		return must.Get(http.Get("http://" + c.http[odd] + "/feed?topics=trades"))(t)
	}
	follows := feed()
	defer follows.Body.Close()
	in := c.members[odd].open()
	log := slog.New(slog.NewTextHandler(&c.members[odd].log, nil))
	in.standAside(errors.New("planted"), log)
	in.standAside(errors.New("planted"), log) // as the next round does
	apptest.Until(t, "its session ends", func() (bool, any) { return reads.Err() != nil, nil })
	if rest := string(readAll(t, follows.Body)); !strings.Contains(rest, "event: gone") {
		t.Errorf("its reader of the feed got %q", rest)
	}
	if _, err := dial(odd); !errors.Is(err, session.ErrRefused) ||
		!strings.Contains(err.Error(), wire.Aside.String()) {
		t.Errorf("a session with the odd member: %v", err)
	}
	another := must.Get(dial((odd + 1) % 3))(t)
	defer another.Close()
	apptest.Until(t, "another member leads", func() (bool, any) { return c.leader() != odd, nil })
	c.trade(9)
	if theirs := feed(); theirs.StatusCode != http.StatusOK || !theirs.Close {
		t.Errorf("the leader's feed through it: %d, its connection goes on: %v", theirs.StatusCode,
			!theirs.Close)
	} else {
		theirs.Body.Close()
	}
	for range 2 { // the leader prefers any other to the odd one
		leader := c.leader()
		apptest.Until(t, "the leadership moves", func() (bool, any) {
			return c.leader() != leader, c.members[leader].open().Member.Node.HandOver()
		})
		if c.leader() == odd {
			t.Error("the odd member leads again")
		}
	}
	c.trade(9)
	if n := strings.Count(c.members[odd].log.String(), "another history"); n < 1 {
		t.Errorf("%d lines in the log", n)
	}
}

// trade makes n commands: orders that match.
func (c *three) trade(n int) {
	c.t.Helper()
	for i := range n {
		side := [2]string{"Sell", "Buy"}[i%2]
		body := fmt.Sprintf(
			`{"accountId":%d,"security":"AAPL","side":%q,"quantity":5,"limitPrice":10}`, 1+i%2, side)
		if status, answer := c.post(i, "/orders", body); status != http.StatusCreated {
			c.t.Fatalf("order: %d %s", status, answer)
		}
	}
}

// proof asks a member for the proof of the first trade.
func (c *three) proof(at int) (status int, text []byte) {
	c.t.Helper()
	apptest.Until(c.t, "a proof", func() (bool, any) {
		client := http.Client{Timeout: time.Minute}
		answer, err := client.Get("http://" + c.http[at] + "/evidence/proof?inputSeq=1")
		if err != nil {
			return false, err
		}
		defer answer.Body.Close()
		status, text = answer.StatusCode, readAll(c.t, answer.Body)
		return status != http.StatusServiceUnavailable, string(text)
	})
	return status, text
}

func readAll(t *testing.T, r io.Reader) []byte {
	t.Helper()
	return must.Get(io.ReadAll(r))(t)
}

func writeFile(t *testing.T, name string, text []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(name, text, 0o600))
}
