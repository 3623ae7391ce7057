package installation

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/ring/must"
)

var leaderKills = flag.Int("kills", 3, "kills of TestKillTheLeader")

// killedMember is a member as a process of its own.
type killedMember struct {
	t      *testing.T
	args   []string
	binary string
	data   string
	peers  string // where the other members reach it
	http   string
	cmd    *exec.Cmd
	exited chan error
	log    *bytes.Buffer
}

func (m *killedMember) start() {
	m.t.Helper()
	m.cmd, m.exited, m.log = exec.Command(m.binary, m.args...), make(chan error, 1), &bytes.Buffer{}
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	must.OK(m.t, m.cmd.Start())
	cmd, exited := m.cmd, m.exited
	go func() { exited <- cmd.Wait() }()
	m.t.Cleanup(func() { cmd.Process.Kill() })
}

// startMembers starts three members without sidecars, with more settings.
func startMembers(t *testing.T, binary string, settings ...string) (members []*killedMember) {
	t.Helper()
	at := freePorts(t, 6)
	var list []string
	for i := range 3 {
		list = append(list, fmt.Sprintf("%d=%s@%s", i+1, at[i], at[i+3]))
	}
	for i := range 3 {
		m := &killedMember{t: t, binary: binary, data: t.TempDir(), peers: at[i], http: at[i+3]}
		m.args = append([]string{"serve", "--cluster.member-id=" + strconv.Itoa(i+1),
			"--cluster.members=" + strings.Join(list, ","), "--sidecars.enabled=false",
			"--data.dir=" + m.data, "--admin.listen=127.0.0.1:0", "--console.listen=",
			"--journal.reserve-bytes=0"}, settings...)
		m.start()
		members = append(members, m)
	}
	return members
}

// interrupt stops a member in order.
func (m *killedMember) interrupt() {
	m.t.Helper()
	must.OK(m.t, m.cmd.Process.Signal(os.Interrupt))
	if err := <-m.exited; err != nil {
		m.t.Fatalf("stop: %v\n%s", err, m.log)
	}
}

// sameJournals stops the members in order, and returns what is in the journal of each.
func sameJournals(t *testing.T, members []*killedMember) string {
	t.Helper()
	var exports []string
	for _, m := range members {
		m.interrupt()
		exports = append(exports, strings.Join(export(t, m.binary, m.data), "\n"))
	}
	for _, e := range exports[1:] {
		if e != exports[0] {
			t.Error("the members' journals differ")
		}
	}
	return exports[0]
}

// role is the role that a member reports, "" when it does not answer.
func (m *killedMember) role() string {
	answer, err := http.Get("http://" + m.http + "/health")
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	var health struct{ Role, Leader string }
	if json.NewDecoder(answer.Body).Decode(&health) != nil || health.Leader == "" {
		return ""
	}
	return health.Role
}

// awaitLeader waits until three members answer, and returns the leader.
func awaitLeader(t *testing.T, members []*killedMember) (leader *killedMember) {
	t.Helper()
	apptest.Until(t, "three members with a leader", func() (bool, any) {
		roles := make([]string, 3)
		leader = nil
		for i, m := range members {
			if roles[i] = m.role(); roles[i] == "LEADER" {
				leader = m
			}
		}
		return leader != nil && !slices.Contains(roles, ""), roles
	})
	return leader
}

// TestKillTheLeader kills the leader of three real members with -9 again and again, while clients
// book through all of them. Every acknowledged booking is there once, on every member, and all
// journals are the same to the byte. The test prints how long it took from each kill to the first
// acknowledged booking that was sent after it.
func TestKillTheLeader(t *testing.T) {
	binary := apptest.Program(t)
	members := startMembers(t, binary)
	b := &bookers{t: t, members: members}
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() { b.run(i) })
	}
	var took []time.Duration
	for range *leaderKills {
		leader := awaitLeader(t, members)
		b.progress(20)
		first := b.after(func() {
			must.OK(t, leader.cmd.Process.Kill())
		})
		<-leader.exited
		took = append(took, first)
		leader.start()
	}
	b.progress(20)
	b.done.Store(true)
	clients.Wait()
	slices.Sort(took)
	t.Logf("%d kills, %d acknowledged; from kill to acknowledgement: median %v, all %v", len(took),
		len(b.acked), took[len(took)/2], took)
	b.settle()
	b.check(sameJournals(t, members))
}

// bookers book swaps through all members.
type bookers struct {
	t       *testing.T
	members []*killedMember
	done    atomic.Bool

	mu      sync.Mutex
	acked   map[string]uint64 // the sequence of each key
	killed  time.Time         // only bookings sent after this count
	first   chan time.Time
	changed chan struct{}
}

// run books one swap after the other, each until it is acknowledged.
func (b *bookers) run(client int) {
	c := &http.Client{Timeout: 10 * time.Second}
	for n := 0; !b.done.Load(); n++ {
		key := fmt.Sprintf("c%d-%d", client, n)
		for try := 0; ; try++ {
			sent := time.Now()
			if sequence, ok := b.book(c, b.members[(client+try)%3], key); ok {
				b.note(key, sequence, sent)
				break
			}
			<-time.After(time.Millisecond)
		}
	}
}

func (b *bookers) book(c *http.Client, m *killedMember, key string) (sequence uint64, ok bool) {
	body := `{"clientOrderId":"` + key +
		`","accountId":1,"payReceive":"Pay","notional":1000,"fixedRate":4.25,` +
		`"effectiveDate":"2026-11-23",` +
		`"maturityDate":"2031-11-23","conventions":"USD-SOFR-1Y-ACT360"}`
	answer, err := c.Post("http://"+m.http+"/swaps", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 {
		if err == nil && answer.StatusCode < 500 && answer.StatusCode != 429 {
			b.t.Errorf("%s: %d %s", key, answer.StatusCode, text)
		}
		return 0, false
	}
	var booked struct{ Sequence uint64 }
	if err := json.Unmarshal(text, &booked); err != nil || booked.Sequence == 0 {
		b.t.Errorf("%s: %s", key, text)
	}
	return booked.Sequence, true
}

func (b *bookers) note(key string, sequence uint64, sent time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.acked == nil {
		b.acked = map[string]uint64{}
	}
	b.acked[key] = sequence
	if b.first != nil && sent.After(b.killed) {
		b.first <- time.Now()
		b.first = nil
	}
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// after calls do and returns the time until the first acknowledgement of a booking that was sent
// after it.
func (b *bookers) after(do func()) time.Duration {
	b.t.Helper()
	first := make(chan time.Time, 1)
	b.mu.Lock()
	do()
	b.killed, b.first = time.Now(), first
	b.mu.Unlock()
	select {
	case then := <-first:
		return then.Sub(b.killed)
	case <-time.After(apptest.Patience):
		for _, m := range b.members {
			b.t.Logf("%s", m.log)
		}
		b.t.Fatal("nothing was acknowledged after the kill")
		return 0
	}
}

// progress waits until n more bookings are acknowledged.
func (b *bookers) progress(n int) {
	b.t.Helper()
	for range n {
		changed := make(chan struct{})
		b.mu.Lock()
		b.changed = changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(apptest.Patience):
			b.t.Fatal("no bookings are acknowledged")
		}
	}
}

// settle waits until every member has the same last sequence.
func (b *bookers) settle() {
	b.t.Helper()
	apptest.Until(b.t, "all members have everything", func() (bool, any) {
		var seen [3]uint64
		for i, m := range b.members {
			answer, err := http.Get("http://" + m.http + "/health")
			if err != nil {
				return false, err
			}
			var health struct{ Durable uint64 }
			err = json.NewDecoder(answer.Body).Decode(&health)
			answer.Body.Close()
			if err != nil {
				return false, err
			}
			seen[i] = health.Durable
		}
		return seen[0] > 0 && seen[1] == seen[0] && seen[2] == seen[0], seen
	})
}

// check compares the acknowledged bookings with a journal: each key is there once as a contract,
// under the sequence in the answer.
func (b *bookers) check(lines string) {
	b.t.Helper()
	first := map[string]uint64{}
	next := uint64(1)
	for line := range strings.Lines(lines) {
		var e exported
		must.OK(b.t, json.Unmarshal([]byte(line), &e))
		if e.Sequence != next {
			b.t.Fatalf("sequence %d follows %d", e.Sequence, next-1)
		}
		next++
		if _, again := first[e.ClientOrderID]; e.ClientOrderID != "" && !again {
			first[e.ClientOrderID] = e.Sequence // a later one is a duplicate, and was refused
		}
	}
	for key, sequence := range b.acked {
		if first[key] != sequence {
			b.t.Errorf("%s was acknowledged at %d and is at %d", key, sequence, first[key])
		}
	}
}
