package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// speaker serves what a log says of its tree.
func speaker(t *testing.T, l *Log) Peer {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		size, _ := strconv.ParseUint(r.URL.Query().Get("size"), 10, 64)
		said, err := l.MemberTree(size)
		if err != nil {
			http.Error(out, err.Error(), http.StatusServiceUnavailable)
			return
		}
		must.OK(t, json.NewEncoder(out).Encode(said))
	}))
	t.Cleanup(server.Close)
	return Peer{Name: fmt.Sprintf("of %p", l), URL: server.URL}
}

// snapshotLog is a log over 600 commands and a snapshot behind them.
func snapshotLog(t *testing.T, seed uint64) *Log {
	t.Helper()
	v := newVenue(t, seed)
	v.trade(600)
	v.snapshot()
	l := v.log()
	v.keep(l)
	return l
}

// ofOtherState is a peer that has a log's tree and another state file.
func ofOtherState(t *testing.T, name string, l *Log) Peer {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		said := must.Get(l.MemberTree(0))(t)
		said.Snapshots[0].SHA256 = strings.Repeat("0", 64)
		must.OK(t, json.NewEncoder(out).Encode(said))
	}))
	t.Cleanup(server.Close)
	return Peer{name, server.URL}
}

// TestAMemberWithOtherBytesIsNamed: of three members one has another command. It finds out that it
// is the odd one and stops; the other two name it with the first leaf that differs, and go on.
func TestAMemberWithOtherBytesIsNamed(t *testing.T) {
	v := newVenue(t, 40)
	v.trade(3000)
	same, odd := v.rewritten(1<<40), v.rewritten(1500)
	v.trade(700) // is ahead of the others
	must.OK(t, os.RemoveAll(same.logDir()))
	must.OK(t, os.RemoveAll(odd.logDir()))
	logs := []*Log{v.log(), same.log(), odd.log()}
	for i, w := range []*venue{v, same, odd} {
		if _, err := logs[i].MemberTree(0); !errors.Is(err, ErrNotYet) {
			t.Error(err)
		}
		w.keep(logs[i])
	}
	var peers []Peer
	for _, l := range logs {
		peers = append(peers, speaker(t, l))
	}
	told := map[int]error{}
	for range 3 { // what is known is counted once
		for i, l := range logs {
			p := &Peers{Log: l, Client: http.DefaultClient,
				Odd: func(err error) { told[i] = err }}
			for k, o := range peers {
				if k != i {
					p.Others = append(p.Others, o)
				}
			}
			p.round(t.Context())
			p.round(t.Context())
		}
	}
	const want = " at leaf 6, sequences 1281 to 1536"
	for i, l := range logs {
		s := l.State()
		switch {
		case i < 2 && (s.Err != nil || len(s.Differs) != 1 || !strings.Contains(s.Differs[0], want)):
			t.Errorf("member %d: %+v", i, s)
		case i == 2 && (!errors.Is(s.Err, ErrContradiction) || told[2] == nil || len(told) != 1 ||
			!strings.Contains(s.Err.Error(), want)):
			t.Errorf("the odd member: %+v, told %v", s, told)
		}
	}
	// A member that is away accuses no other.
	l := same.log()
	same.keep(l)
	p := &Peers{Log: l, Client: http.DefaultClient,
		Others: []Peer{peers[0], {"away", "http://127.0.0.1:1"}}}
	p.round(t.Context())
	if s := l.State(); len(s.Differs) != 0 || s.Divergences != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAMemberWhoseLogHasStoppedStandsAsideToo: its files have contradicted its journal first.
func TestAMemberWhoseLogHasStoppedStandsAsideToo(t *testing.T) {
	l := snapshotLog(t, 42)
	stopped := errors.New("planted")
	l.change(func(s *State) { s.Err = stopped })
	var told error
	p := &Peers{Log: l, Client: http.DefaultClient,
		Odd: func(err error) { told = err }}
	for _, name := range []string{"2", "3"} {
		p.Others = append(p.Others, ofOtherState(t, name, l))
	}
	p.round(t.Context())
	if s := l.State(); !errors.Is(told, ErrContradiction) || s.Err != stopped {
		t.Errorf("told %v, the log: %+v", told, s)
	}
}

// TestSnapshotsAreCompared: the trees are the same, the state files of one sequence are not. A
// member that differs and then does not answer any more stays named, and is no second one against
// this member.
func TestSnapshotsAreCompared(t *testing.T) {
	l := snapshotLog(t, 41)
	away := "http://127.0.0.1:1"
	p := &Peers{Log: l, Client: http.DefaultClient, Odd: func(err error) { t.Error(err) },
		Others: []Peer{ofOtherState(t, "2", l), {"3", away}}}
	const second = "member 2 at the snapshot of sequence 600"
	check := func(divergences uint64, want ...string) {
		t.Helper()
		p.round(t.Context())
		if s := l.State(); !slices.Equal(s.Differs, want) || s.Divergences != divergences ||
			s.Err != nil {
			t.Errorf("%+v, want %q", s, want)
		}
	}
	check(1, second)
	p.Others[0].URL = away
	check(1, second)
	p.Others[1] = ofOtherState(t, "3", l)
	check(2, second, "member 3 at the snapshot of sequence 600")
	p.Others[0] = speaker(t, l)
	p.Others[0].Name = "2"
	check(2, "member 3 at the snapshot of sequence 600")
}
