package installation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// clusterSecret signs the tokens of a test's members.
const clusterSecret = "a secret that all members of a test share"

// memberOfTest is one member as `posttrade serve` runs it, in this process: an installation that is
// opened again when the leader has sent it a journal.
type memberOfTest struct {
	t        *testing.T
	id       int
	settings []string
	data     string
	log      waittest.Log

	mu      sync.Mutex
	in      *Installation // guarded by mu; nil while it is not open
	cancel  context.CancelFunc
	ended   chan struct{}
	hash    [32]byte // of the engine's state, once it is closed
	written [32]byte // the same, of its snapshot
}

// three is a cluster of three members.
type three struct {
	t       *testing.T
	members [3]*memberOfTest
	http    [3]string

	heardMu sync.Mutex
	heard   uint64 // the highest sequence that an answer of post named
}

// freePorts are addresses that no process listens on. They are below those that the system gives to
// clients: a server that is started again finds its own free.
func freePorts(t *testing.T, n int) (addresses []string) {
	t.Helper()
	for range n {
		for {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
			if err == nil {
				defer l.Close()
				addresses = append(addresses, l.Addr().String())
				break
			}
		}
	}
	return addresses
}

func newThree(t *testing.T, nameValue ...string) *three {
	c := &three{t: t}
	at := freePorts(t, 6)
	var list []string
	for i := range 3 {
		c.http[i] = at[i+3]
		list = append(list, fmt.Sprintf("%d=%s@%s", i+1, at[i], at[i+3]))
	}
	for i := range 3 {
		m := &memberOfTest{t: t, id: i + 1, data: t.TempDir()}
		m.settings = append([]string{
			"cluster.member-id", strconv.Itoa(i + 1), "cluster.members", strings.Join(list, ","),
			"cluster.heartbeat-ms", "1000",
			"order-matcher.listen", at[i+3], "auth.jwt.secret", clusterSecret, "sidecars.enabled", "false",
		}, nameValue...)
		c.members[i] = m
		t.Cleanup(m.stop)
	}
	return c
}

// TestAdoptWithoutAJournalIsRefused: a wrong folder, or a restore that was forgotten, must not
// begin a new history.
func TestAdoptWithoutAJournalIsRefused(t *testing.T) {
	m := newThree(t).members[0]
	code, line := openFails(t, m.data, append(m.settings, "cluster.adopt", "true")...)
	if code != settings.ExitUsage || !strings.Contains(line, "cluster.adopt: ") ||
		!strings.Contains(line, m.data) {
		t.Errorf("exit %d, %q", code, line)
	}
}

func (c *three) start() {
	for _, m := range c.members {
		m.start()
	}
	for _, m := range c.members {
		m.awaitOpen()
	}
}

// start serves in the background until stop.
func (m *memberOfTest) start() {
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel, m.ended = cancel, make(chan struct{})
	c := apptest.Settled(m.t, append(anyPorts(m.data), m.settings...)...)
	go func() {
		defer close(m.ended)
		for m.serve(ctx, c) {
		}
	}()
}

// serve runs one installation; it returns true when the installation must be opened again.
func (m *memberOfTest) serve(ctx context.Context, c *settings.Config) (again bool) {
	o := EngineOptions(c)
	o.Fatal = func(err error) { m.t.Errorf("member %d failed: %v", m.id, err) }
	in, err := Open(ctx, c, o, slog.New(slog.NewTextHandler(&m.log, nil)))
	if err != nil {
		if ctx.Err() == nil {
			m.t.Errorf("member %d: %v", m.id, err)
		}
		return false
	}
	in.Core.BeforeDiscard = func() {
		m.hash = in.Core.Engine.StateHash()
		sum := sha256.New()
		if err := in.Core.Engine.WriteSnapshot(sum); err != nil {
			m.t.Error(err)
		}
		sum.Sum(m.written[:0])
	}
	m.mu.Lock()
	m.in = in
	m.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-in.restart():
		again = true
	}
	m.mu.Lock()
	m.in = nil
	m.mu.Unlock()
	if err := in.Stop(); err != nil {
		m.t.Errorf("member %d: stop: %v", m.id, err)
	}
	return again
}

func (m *memberOfTest) stop() {
	if m.cancel != nil {
		m.cancel()
		<-m.ended
		m.cancel = nil
	}
}

// open is the installation that runs now, nil for none.
func (m *memberOfTest) open() *Installation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.in
}

func (m *memberOfTest) awaitOpen() {
	m.t.Helper()
	apptest.Until(m.t, fmt.Sprintf("member %d is open", m.id), func() (bool, any) {
		in := m.open()
		return in != nil && in.ready(), m.log.String()
	})
}

// destroy removes the disk of a stopped member.
func (m *memberOfTest) destroy() {
	m.t.Helper()
	must.OK(m.t, os.RemoveAll(m.data))
}

// durable is the last sequence that a member has.
func (m *memberOfTest) durable() uint64 {
	if in := m.open(); in != nil {
		return in.Core.Journal.Answered()
	}
	return 0
}

// post sends a body to a member until it gets another answer than that nothing was sequenced.
func (c *three) post(at int, path, body string) (status int, answer string) {
	c.t.Helper()
	apptest.Until(c.t, "an answer", func() (bool, any) {
		request, err := http.NewRequest("POST", "http://"+c.http[at%3]+path, strings.NewReader(body))
		must.OK(c.t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+c.token())
		got, err := http.DefaultClient.Do(request)
		if err != nil {
			at++ // the member is down
			return false, err
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		status, answer = got.StatusCode, string(text)
		if said := sequenceOf.FindSubmatch(text); said != nil {
			n, _ := strconv.ParseUint(string(said[1]), 10, 64)
			c.heardMu.Lock()
			c.heard = max(c.heard, n)
			c.heardMu.Unlock()
		}
		return err == nil && !(status == 503 && strings.Contains(answer, `"sequenced":false`)), answer
	})
	return status, answer
}

// sequenceOf finds the sequence that an answer of post names.
var sequenceOf = regexp.MustCompile(`"sequence":([0-9]+)`)

func (c *three) token() string {
	return gate.Mint([]byte(clusterSecret), gate.Claims{Subject: "test", Admin: true}, "", time.Hour,
		time.Now())
}

// get reads a resource of one member.
func (c *three) get(at int, path string) string {
	c.t.Helper()
	request, err := http.NewRequest("GET", "http://"+c.http[at]+path, nil)
	must.OK(c.t, err)
	request.Header.Set("Authorization", "Bearer "+c.token())
	request.Header.Set("Accept", "application/x-ndjson")
	got, err := http.DefaultClient.Do(request)
	must.OK(c.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != 200 {
		c.t.Fatalf("%s: %d %v %.200s", path, got.StatusCode, err, text)
	}
	return string(text)
}

// alike waits until every member has the same last sequence and what post was answered, and returns
// it: an answer needs two members, and comes before the journal of either has the command.
func (c *three) alike() (sequence uint64) {
	c.t.Helper()
	c.heardMu.Lock()
	least := max(c.heard, 1)
	c.heardMu.Unlock()
	apptest.Until(c.t, "all members have everything", func() (bool, any) {
		seen := [3]uint64{}
		for i, m := range c.members {
			seen[i] = m.durable()
		}
		sequence = seen[0]
		return sequence >= least && seen[1] == sequence && seen[2] == sequence, seen
	})
	return sequence
}

// TestSwapsAreOnEveryMember books a swap of each direction through a member that does not lead. The
// sequence moves by two on every member, both contracts are in the cut, the cut is the same on all
// members, and a bad request moves nothing.
func TestSwapsAreOnEveryMember(t *testing.T) {
	c := newThree(t)
	c.start()
	if status, answer := c.post(0, "/orders", sellOrder); status != 201 {
		t.Fatalf("order: %d %s", status, answer)
	}
	before := c.alike()
	const terms = `"accountId":1,"notional":10000000,"effectiveDate":"2026-11-23",` +
		`"maturityDate":"2031-11-23","conventions":"USD-SOFR-1Y-ACT360"`
	for i, body := range []string{
		`{"payReceive":"Receive","fixedRate":0.042,` + terms + `}`,
		`{"payReceive":"Pay","fixedRate":0.043,` + terms + `}`,
	} {
		want := fmt.Sprintf(`{"contractId":"SW-%d","sequence":%d,"booked":true}`, before+uint64(i)+1,
			before+uint64(i)+1)
		if status, answer := c.post(i+1, "/swaps", body); status != 200 || answer != want {
			t.Fatalf("swap: %d %s, want %s", status, answer, want)
		}
	}
	if at := c.alike(); at != before+2 {
		t.Errorf("sequence %d on every member, want %d", at, before+2)
	}
	for i := range 3 {
		if status, answer := c.post(i, "/swaps",
			`{"payReceive":"Pay","fixedRate":0,`+terms+`}`); status != 400 {
			t.Errorf("a rate of 0: %d %s", status, answer)
		}
	}
	if at := c.alike(); at != before+2 {
		t.Errorf("sequence %d after bad requests, want %d", at, before+2)
	}
	if status, answer := c.post(2, "/risk/extract", `{"sessionDate":"2026-11-20"}`); status != 202 &&
		status != 200 {
		t.Fatalf("extract: %d %s", status, answer)
	}
	cuts := c.cuts(before + 3)
	if !strings.Contains(cuts[0], "contracts=2 ") || !strings.Contains(strings.Join(cuts[:], " "),
		"role=LEADER") ||
		strings.Count(strings.Join(cuts[:], " "), "role=FOLLOWER") != 2 {
		t.Errorf("cuts %q", cuts)
	}
}

var cutLine = regexp.MustCompile(
	`RISK-EXTRACT-CUT seq=(\d+) rows=\d+ contracts=\d+ sha256=[0-9a-f]{64} role=[A-Z]+`)

// cuts waits until every member has rendered the cut of a sequence, compares the cuts and returns
// the lines.
func (c *three) cuts(sequence uint64) (lines [3]string) {
	c.t.Helper()
	apptest.Until(c.t, fmt.Sprintf("the cut at %d on every member", sequence), func() (bool, any) {
		found := 0
		for i, m := range c.members {
			for _, match := range cutLine.FindAllStringSubmatch(m.log.String(), -1) {
				if match[1] == strconv.FormatUint(sequence, 10) {
					lines[i] = match[0]
				}
			}
			if lines[i] != "" {
				found++
			}
		}
		return found == 3, lines
	})
	for _, line := range lines {
		if a, b, _ := strings.Cut(line, " role="); !strings.HasPrefix(lines[0], a+" role=") {
			c.t.Errorf("a member's cut differs: %s, %s (%s)", lines[0], line, b)
		}
	}
	return lines
}

// TestThreeMembersAfterMixedCommands sends orders, trades, prices and bookings through all members.
// Meanwhile it removes one member's disk and stops the leader. Then it compares state, snapshot,
// cut and report of all three.
func TestThreeMembersAfterMixedCommands(t *testing.T) {
	commands := 100_000
	if testing.Short() {
		commands = 5_000
	}
	c := newThree(t, "snapshot.interval-commands", "20000")
	c.start()
	flow := newMixedFlow(7)
	sent := 0
	batch := func(n int) {
		for sent < n {
			path, body, count := flow.next()
			if status, answer := c.post(sent, path, body); status/100 != 2 && status != 422 {
				t.Fatalf("%s: %d %s", path, status, answer)
			}
			sent += count
		}
	}
	batch(commands / 3)
	lost := c.members[1]
	lost.stop()
	lost.destroy()
	batch(commands / 2)
	for _, m := range c.members { // so that the log alone is not enough
		if in := m.open(); in != nil {
			must.OK(t, in.Member.Node.Compact(0))
		}
	}
	lost.start()
	lost.awaitOpen()
	if !testing.Short() && !strings.Contains(lost.log.String(), "a journal has come") {
		t.Error("the lost disk's journal was not sent as a whole")
	}
	for _, m := range c.members {
		if in := m.open(); in != nil && in.Member.Node.Leads() {
			m.stop()
			batch(commands * 2 / 3)
			m.start()
			m.awaitOpen()
			break
		}
	}
	batch(commands)
	if status, answer := c.post(0, "/risk/extract", `{"sessionDate":"2026-11-20"}`); status/100 != 2 {
		t.Fatalf("extract: %d %s", status, answer)
	}
	last := c.alike()
	t.Logf("%d commands", last)
	c.cuts(last)
	want := c.get(0, "/regulatory/report")
	for i := 1; i < 3; i++ {
		if got := c.get(i, "/regulatory/report"); got != want {
			t.Errorf("member %d gives another report: %d bytes, %d", i+1, len(got), len(want))
		}
	}
	for _, m := range c.members {
		m.stop()
	}
	for _, m := range c.members[1:] {
		if m.hash != c.members[0].hash || m.written != c.members[0].written {
			t.Errorf("member %d: state %x snapshot %x, member 1: %x %x", m.id, m.hash[:8], m.written[:8],
				c.members[0].hash[:8], c.members[0].written[:8])
		}
	}
	// The same through the journal's own verification, on a member's directory.
	if code, _, errs := apptest.Run("journal", "verify", "--data.dir="+lost.data); code != 0 {
		t.Errorf("the rebuilt member's journal: exit %d, %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(lost.data, "journal.incoming")); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a received journal is left over: %v", err)
	}
}
