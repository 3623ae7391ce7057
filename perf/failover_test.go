package perf

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/journal/quorum"
	"posttrade/ring/must"
)

// fakeMembers are three addresses; one function answers for all.
func fakeMembers(t *testing.T, answer http.HandlerFunc) (at []string) {
	t.Helper()
	for range 3 {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		at = append(at, strings.TrimPrefix(s.URL, "http://"))
	}
	return at
}

// TestFailoverCountsWhatWasSentAfterTheKill has one client with a booking in flight when the leader
// is killed, which is acknowledged all the same; one with a booking that the dead leader seems to
// acknowledge afterwards; one that is turned away; and then the one that counts.
func TestFailoverCountsWhatWasSentAfterTheKill(t *testing.T) {
	arrived, answer := make(chan string), make(chan func(http.ResponseWriter))
	acknowledge := func(by string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Header().Set("X-Member", by) }
	}
	turnAway := func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
	over := make(chan struct{})
	b := newBookers(fakeMembers(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case arrived <- r.Host:
			if then := <-answer; then != nil {
				then(w)
			}
		case <-over:
		}
	}))
	t.Cleanup(func() { close(over); close(answer) }) // before the servers wait for requests in flight
	b.running.Go(func() { b.run(0) })
	<-arrived
	killed := 0
	first, err := b.watch(func() error { killed++; return nil }, "1")
	if err != nil || killed != 1 {
		t.Fatalf("killed %d times, %v", killed, err)
	}
	answer <- acknowledge("2") // sent before the kill
	for _, then := range []func(http.ResponseWriter){acknowledge("1"), turnAway, acknowledge("2")} {
		<-arrived
		select {
		case <-first:
			t.Fatal("counted too early")
		default:
		}
		answer <- then
	}
	<-first
	<-arrived // the client goes on
	stopped := make(chan error)
	go func() { stopped <- b.stop() }()
	<-b.done
	answer <- turnAway
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestFailoverEndsAtAnAnswerThatNoMemberMayGive(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
		},
		"anonymous": func(http.ResponseWriter, *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBookers(fakeMembers(t, answer))
			if err := b.progress(1); !errors.Is(err, errNoBooking) {
				t.Errorf("progress: %v", err)
			}
			if _, err := b.after(func() error { return nil }, "1"); !errors.Is(err, errNoBooking) {
				t.Errorf("after: %v", err)
			}
			if err := b.stop(); err == nil {
				t.Error("the reason is lost")
			}
		})
	}
}

func TestFailoverNeedsItsKill(t *testing.T) {
	planted := errors.New("planted")
	b := newBookers(nil)
	if _, err := b.after(func() error { return planted }, "1"); !errors.Is(err, planted) {
		t.Errorf("got %v", err)
	}
}

func TestFailoverSaysWhyMembersDoNotCome(t *testing.T) {
	dir := t.TempDir()
	r := &Run{o: Options{Binary: filepath.Join(dir, "absent"), Dir: dir}}
	if err := measureFailover(r); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "member 1") {
		t.Errorf("no program: %v", err)
	}
	broken := filepath.Join(dir, "broken")
	must.OK(t, os.WriteFile(broken, []byte("#!/bin/sh\necho planted >&2\nexit 3\n"),
		0o755))
	r.o.Binary = broken
	err := measureFailover(r)
	if err == nil || !strings.Contains(err.Error(), "planted") ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a program that ends: %v", err)
	}
}

func TestFailoverLeaderIsOneThatAllFollow(t *testing.T) {
	type row struct {
		role    string
		durable int
	}
	for _, tt := range []struct {
		name string
		rows [3]row
		want int // the leader's place, -1 for none
	}{
		{"all have everything", [3]row{{"FOLLOWER", 7}, {"LEADER", 7}, {"FOLLOWER", 7}}, 1},
		{"one lacks something", [3]row{{"FOLLOWER", 6}, {"LEADER", 7}, {"FOLLOWER", 7}}, -1},
		{"one is not there", [3]row{{"LEADER", 7}, {"FOLLOWER", 7}, {"", 7}}, -1},
		{"nobody leads", [3]row{{"FOLLOWER", 7}, {"FOLLOWER", 7}, {"FOLLOWER", 7}}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c clusterProcesses
			for i, member := range tt.rows {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if member.role != "" {
						fmt.Fprintf(w, `{"role":%q,"leader":"1","durable":%d}`, member.role, member.durable)
					}
				}))
				t.Cleanup(s.Close)
				c = append(c, &memberProcess{id: fmt.Sprint(i), http: strings.TrimPrefix(s.URL, "http://")})
			}
			got := -1
			if leader := c.leader(); leader != nil {
				_, _ = fmt.Sscan(leader.id, &got)
			}
			if got != tt.want {
				t.Errorf("member %d leads, want %d", got, tt.want)
			}
		})
	}
}

// A member that does not answer, or knows of fewer votes, could leave two members without a
// majority after a kill.
func TestFailoverNeedsAVoteOfEach(t *testing.T) {
	c := clusterProcesses{{id: "1", raft: "a"}, {id: "2", raft: "b"}, {id: "3", raft: "c"}}
	knows := func(votes ...bool) (s quorum.Status) {
		for i, vote := range votes {
			s.Servers = append(s.Servers, quorum.Server{Member: fmt.Sprint(i + 1), Voter: vote})
		}
		return s
	}
	all := knows(true, true, true)
	for _, tt := range []struct {
		name string
		last quorum.Status
		err  error
		want bool
	}{
		{"all have one", all, nil, true},
		{"one catches up", knows(true, true, false), nil, false},
		{"one is not there yet", knows(true, true), nil, false},
		{"another has the vote", knows(true, true, false, true), nil, false},
		{"one does not answer", all, net.ErrClosed, false},
	} {
		if got := c.vote(func(at string) (quorum.Status, error) {
			if at == "c" {
				return tt.last, tt.err
			}
			return all, nil
		}); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestFailoverIsJudgedByItsMedian(t *testing.T) {
	var shown bytes.Buffer
	r := &Run{o: Options{Stdout: &shown}}
	r.failover("Cluster/op=failover", failoverTime, []float64{900, 100, 290})
	if !strings.Contains(shown.String(),
		"BenchmarkCluster/op=failover/kills=3 1 290 median-ms 100 min-ms 900 max-ms") {
		t.Errorf("got %s", shown.String())
	}
	if len(r.targets) != 1 || r.targets[0].got != 290 || !r.targets[0].met() {
		t.Errorf("got %v", r.targets)
	}
	if slices.Contains(r.missing(), failoverTime) {
		t.Error("the table's line is still missing")
	}
}

func TestLoopbackMembersHavePortsOfTheirOwn(t *testing.T) {
	list := must.Get(loopbackMembers(3))(t)
	// ParseMembers refuses duplicates
	if members, err := quorum.ParseMembers(list); err != nil || len(members) != 3 {
		t.Errorf("%s: %v, %v", list, members, err)
	}
}
