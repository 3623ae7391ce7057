package perf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/journal/quorum"
)

// What the row asks for: milliseconds, the median of the kills, on a new history and on a long one.
var (
	failoverTime = atMost("P12", 300,
		"failover: kill -9 of the leader to the next acknowledgement, median, ms")
	failoverBehind = atMost("P12", 300, "failover with %d commands behind, median, ms").
			as("failover with 10,000,000 commands behind, median, ms")
)

const (
	// failoverKills is how often the leader is killed in each part of a full run.
	failoverKills = 5
	// failoverCommands is the length of the long history. Smoke runs have a hundredth.
	failoverCommands = 10_000_000
)

// measureFailover is the part of row P12 about the death of a leader. Three members run as
// processes of their own. The leader is killed with -9 while clients book through all members. The
// figure is the time from the kill to the first acknowledgement of a booking that was sent after
// it.
//
// The machine stays up, and its kernel closes the dead leader's connections. The loss of a machine
// or of a network, in which nothing is closed, is not measured. Bookings are repeated after a
// millisecond, so a figure is up to that much too high.
//
// The second part does the same with members that have a long history: row P6's flow in a journal
// of one engine, from which the first member begins its cluster and the others get all of it.
func measureFailover(r *Run) error {
	took, err := r.failOvers("failover")
	if err != nil {
		return err
	}
	r.failover("Cluster/op=failover", failoverTime, took)
	n, err := r.history("failover-behind")
	if err != nil {
		return err
	}
	if took, err = r.failOvers("failover-behind", "--cluster.adopt"); err != nil {
		return err
	}
	r.failover(fmt.Sprintf("Cluster/op=failover/behind=%d", n), failoverBehind, took, n)
	return nil
}

// failOvers runs three members in a folder of the run, the first with more arguments, kills their
// leaders, and returns how long each failover took, in milliseconds.
func (r *Run) failOvers(folder string, first ...string) (took []float64, err error) {
	dir := filepath.Join(r.o.Dir, folder)
	c, err := r.startMembers(dir, 3, first...)
	if err != nil {
		return nil, err
	}
	defer func() {
		c.kill()
		if err == nil {
			err = r.leave(dir)
		}
	}()
	if _, err := c.awaitLeader(); err != nil { // a long history takes its time
		return nil, err
	}
	var at []string
	for _, m := range c {
		at = append(at, m.http)
	}
	clients := startBookers(at)
	defer func() { err = errors.Join(err, clients.stop()) }()
	kills := failoverKills
	if r.o.Smoke {
		kills = 1
	}
	for range kills {
		d, err := failOver(c, clients)
		if err != nil {
			return nil, err
		}
		took = append(took, milliseconds(d))
	}
	return took, nil
}

// history makes a long journal and puts it, alone, into the folder of the first member. It returns
// the number of its commands.
func (r *Run) history(folder string) (n int, err error) {
	genesis := flowGenesis(1)
	genesis.Limits.MaxContracts = 1 << 20 // what the clients may book
	o := engineOptions{folder: folder + "-made", durability: "os", genesis: genesis}
	e, n, err := r.pumped(o, failoverCommands)
	if err != nil {
		return 0, err
	}
	if err := e.stop(); err != nil {
		return 0, err
	}
	member := filepath.Join(r.o.Dir, folder, "1")
	err = os.MkdirAll(member, 0o700)
	if err == nil {
		err = os.Rename(filepath.Join(e.dir, "journal"), filepath.Join(member, "journal"))
	}
	return n, errors.Join(err, r.leave(e.dir))
}

// failover records and judges the time of each kill, in milliseconds: the median, and the extremes
// beside it, because five kills have no percentiles. numbers are those of the goal's text.
func (r *Run) failover(name string, g goal, took []float64, numbers ...any) {
	r.figures(fmt.Sprintf("%s/kills=%d", name, len(took)),
		metric{median(took), "median-ms"}, metric{slices.Min(took), "min-ms"},
		metric{slices.Max(took), "max-ms"})
	r.judge(g, median(took), numbers...).
		beside("%d kills, %.4g to %.4g ms", len(took), slices.Min(took), slices.Max(took))
}

// failOver kills the leader once, waits until the clients are served by the next one, and starts
// the killed member again. Before the kill all members have the leader's data and bookings go on.
func failOver(c clusterProcesses, clients *bookers) (time.Duration, error) {
	leader, err := c.awaitLeader()
	if err != nil {
		return 0, err
	}
	if err := clients.progress(20); err != nil { // also through the member that was started last
		return 0, err
	}
	took, err := clients.after(leader.kill, leader.id)
	if err != nil {
		return 0, err
	}
	<-leader.ended
	return took, leader.start()
}

// clusterProcesses are the members of a cluster, each a process of this program.
type clusterProcesses []*memberProcess

// memberProcess is one member, which may be started again on its data after it was killed. The
// row's goroutine starts and kills it; a goroutine of its own waits for its end.
type memberProcess struct {
	// id is the member's number in the setting cluster.members.
	id     string
	binary string
	args   []string
	// http is where its order-matcher listens, raft where the members do, host:port.
	http, raft string

	cmd *exec.Cmd
	// said is its output; it may be read when ended is closed.
	said *bytes.Buffer
	// ended is closed when the process has ended, and made anew at each start.
	ended chan struct{}
}

// startMembers starts n members with the engine and no sidecars, the first with more arguments, and
// does not wait for them. When one cannot be started, those before it are ended.
func (r *Run) startMembers(dir string, n int, first ...string) (c clusterProcesses, err error) {
	list, err := loopbackMembers(n)
	if err != nil {
		return nil, err
	}
	members, err := quorum.ParseMembers(list)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		p := &memberProcess{id: m.ID, http: m.HTTP, raft: m.Raft, binary: r.o.Binary}
		p.args = []string{
			"serve", "--cluster.member-id=" + m.ID, "--cluster.members=" + list,
			"--data.dir=" + filepath.Join(dir, m.ID),
			"--sidecars.enabled=false", "--admin.listen=127.0.0.1:0", "--console.listen=",
			"--journal.reserve-bytes=0",
		}
		if len(c) == 0 {
			p.args = append(p.args, first...)
		}
		if err := p.start(); err != nil {
			c.kill()
			return nil, err
		}
		c = append(c, p)
	}
	return c, nil
}

// loopbackMembers are n members on loopback ports that are free now, in the form of the setting
// cluster.members. Another program can take a port before a member listens on it: the member then
// fails to start, which the caller sees.
func loopbackMembers(n int) (list string, err error) {
	var all []string
	for i := range n {
		var at [2]string
		for j := range at {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return "", err
			}
			defer l.Close() // all listen at once, so no port is given out twice
			at[j] = l.Addr().String()
		}
		all = append(all, strconv.Itoa(i+1)+"="+at[0]+"@"+at[1])
	}
	return strings.Join(all, ","), nil
}

// start starts the process, and starts it again if it has ended.
func (m *memberProcess) start() error {
	m.cmd, m.said, m.ended = exec.Command(m.binary, m.args...), new(bytes.Buffer), make(chan struct{})
	m.cmd.Stderr = m.said
	if err := start(m.cmd); err != nil {
		return fmt.Errorf("start member %s: %w", m.id, err)
	}
	cmd, ended := m.cmd, m.ended
	go func() {
		_ = cmd.Wait() // it was killed, or said has the reason
		close(ended)
	}()
	return nil
}

// kill ends the process at once, as kill -9 does, and does not wait for its end.
func (m *memberProcess) kill() error { return m.cmd.Process.Kill() }

// kill ends all members and waits until they are gone.
func (c clusterProcesses) kill() {
	for _, m := range c {
		_ = m.kill() // it may have ended already
		<-m.ended
	}
}

// memberHealth is a member's answer about its own health: the members of /health that the row
// needs.
type memberHealth struct {
	Role, Leader string
	Durable      uint64
}

// health asks the member; false when it does not answer or knows no leader.
func (m *memberProcess) health() (h memberHealth, ok bool) {
	answer, err := healthClient.Get("http://" + m.http + "/health")
	if err != nil {
		return h, false
	}
	defer answer.Body.Close()
	return h, json.NewDecoder(answer.Body).Decode(&h) == nil && h.Leader != ""
}

// vote reports whether every member knows of a vote of each. A member that has just come into a
// cluster has the data before it has the vote. ask gives what the member at an address knows.
func (c clusterProcesses) vote(ask func(at string) (quorum.Status, error)) bool {
	var all []quorum.Member
	for _, m := range c {
		all = append(all, quorum.Member{ID: m.id})
	}
	for _, m := range c {
		if s, err := ask(m.raft); err != nil || len(s.Voteless(all)) > 0 {
			return false
		}
	}
	return true
}

// statusOf asks the member at an address.
func statusOf(at string) (quorum.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), healthClient.Timeout)
	defer cancel()
	return quorum.Remote{}.Status(ctx, at)
}

// healthClient asks with a limit of a second: a member that was just killed may leave a request
// open.
var healthClient = &http.Client{Timeout: time.Second}

// membersTimeout is how long members may take to elect a leader or to catch up, with a long history
// too, and clients may go without an acknowledgement.
const membersTimeout = 5 * time.Minute

// awaitLeader waits until all members follow one leader, have the leader's data and a vote, so that
// each of them can be the next leader.
func (c clusterProcesses) awaitLeader() (*memberProcess, error) {
	for begun := time.Now(); time.Since(begun) < membersTimeout; time.Sleep(10 * time.Millisecond) {
		if leader := c.leader(); leader != nil && c.vote(statusOf) {
			return leader, nil
		}
		for _, m := range c {
			select {
			case <-m.ended:
				return nil, fmt.Errorf("member %s has ended: %v: %s", m.id, m.cmd.ProcessState,
					bytes.TrimSpace(m.said.Bytes()))
			default:
			}
		}
	}
	return nil, fmt.Errorf("no leader that all members follow after %v", membersTimeout)
}

// leader is the member that leads; nil while a member does not follow or lacks data.
func (c clusterProcesses) leader() (leader *memberProcess) {
	var has uint64
	for _, m := range c {
		if h, ok := m.health(); ok && h.Role == "LEADER" {
			leader, has = m, h.Durable
		}
	}
	for _, m := range c {
		if h, ok := m.health(); !ok || h.Durable < has {
			return nil
		}
	}
	return leader
}
