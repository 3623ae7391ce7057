package installation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/ring/must"
)

var (
	crashCycles = flag.Int("cycles", 3, "kill -9 cycles of TestKillUnderLoad")
	crashSeed   = flag.Uint64("seed", 1, "seed of TestKillUnderLoad")
)

const crashClients = 8

// outcome is what one client knows about one request.
type outcome struct {
	clientOrderID string // empty for a cancel, which names orderID
	body          string
	kind          string // the export's command type
	status        int    // 0: unknown
	sequence      uint64
	orderID       string
}

// oracle keeps everything that was ever acknowledged and checks an export against it.
type oracle struct {
	acked   []outcome
	unknown map[string]outcome // by client order id; the test still has to repeat it
	history []string           // the export's line of every sequence seen so far
}

// exported are the fields of an exported command that the oracle reads.
type exported struct {
	Sequence      uint64 `json:"sequence"`
	Type          string `json:"type"`
	ClientOrderID string `json:"clientOrderId"`
	OrderRef      uint32 `json:"orderRef"`
}

// TestKillUnderLoad kills the real binary with -9 while eight clients send, in modes "os" and
// "fsync" in turns on the same journal. After every kill it compares the journal's export with what
// was acknowledged. Everything acknowledged is there once (O1, O4). Sequences have no hole and
// never change their content (O2). A replay from the first command and from every snapshot reach
// one state (O3). A request with an unknown outcome is there once or not at all, and gets the same
// answer when it is repeated (O5).
func TestKillUnderLoad(t *testing.T) {
	binary := apptest.Program(t)
	data := t.TempDir()
	random := rand.New(rand.NewPCG(*crashSeed, 0))
	o := &oracle{unknown: map[string]outcome{}}
	t.Logf("seed %d, %d cycles", *crashSeed, *crashCycles)
	repeated := 0
	for cycle := range *crashCycles {
		server := startForCrash(t, binary, data,
			append(besideEngine(cycle), "--journal.durability="+[]string{"os", "fsync", "os"}[cycle%3])...)
		repeated += o.repeatUnknown(t, server.url)
		delay := time.Duration(random.IntN(400)) * time.Millisecond
		results := loadUntilKilled(t, server, cycle, random.Uint64(), delay)
		for _, r := range results {
			switch {
			case r.status != 0:
				o.acked = append(o.acked, r)
			case r.clientOrderID != "":
				o.unknown[r.clientOrderID] = r
			}
		}
		o.check(t, export(t, binary, data))
		if out, err := exec.Command(binary, "journal", "verify",
			"--data.dir="+data).CombinedOutput(); err != nil {
			t.Fatalf("cycle %d: journal verify: %v\n%s", cycle, err, out)
		}
	}
	t.Logf("%d kills, %d acknowledged, %d unknown outcomes repeated, %d commands in the journal, 0 "+
		"violations",
		*crashCycles, len(o.acked), repeated, len(o.history))
	if len(o.acked) == 0 {
		t.Fatal("nothing was ever acknowledged: the test tested nothing")
	}
}

// TestCrashOracleCanFail adds the errors that the oracle must find.
func TestCrashOracleCanFail(t *testing.T) {
	line := func(sequence uint64, id string) string {
		return fmt.Sprintf(`{"sequence":%d,"type":"ORDER_NEW","clientOrderId":%q}`, sequence, id)
	}
	acked := outcome{clientOrderID: "a", kind: "ORDER_NEW", status: 201, sequence: 2}
	tests := []struct {
		name    string
		history []string
		lines   []string
	}{
		{"acknowledged command is missing", nil, []string{line(1, "x")}},
		{"acknowledged command lies elsewhere", nil, []string{line(1, "a"), line(2, "x")}},
		{"acknowledged command is there twice", nil, []string{line(1, "x"), line(2, "a"), line(3, "a")}},
		{"acknowledged cancel is missing", nil, []string{line(1, "x"), line(2, "a")}},
		{"hole in the sequence", nil, []string{line(1, "x"), line(2, "a"), line(4, "y")}},
		{"sequence used again", []string{line(1, "w")}, []string{line(1, "x"), line(2, "a")}},
		{"history shrank", []string{line(1, "x"), line(2, "a"), line(3, "z")},
			[]string{line(1, "x"), line(2, "a")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &oracle{acked: []outcome{acked}, history: tt.history, unknown: map[string]outcome{}}
			if strings.Contains(tt.name, "cancel") {
				o.acked = append(o.acked, outcome{kind: "ORDER_CANCEL", status: 200, sequence: 1,
					orderID: "ord-1"})
			}
			if o.violation(tt.lines) == "" {
				t.Error("the oracle saw nothing")
			}
		})
	}
	o := &oracle{acked: []outcome{acked}, unknown: map[string]outcome{}}
	if v := o.violation([]string{line(1, "x"), line(2, "a")}); v != "" {
		t.Errorf("the oracle objects to a good history: %s", v)
	}
}

func (o *oracle) check(t *testing.T, lines []string) {
	t.Helper()
	if v := o.violation(lines); v != "" {
		t.Fatal(v)
	}
	o.history = lines
}

// violation describes the error in an export, "" when there is none.
func (o *oracle) violation(lines []string) string {
	byID, cancels, bySequence := map[string]int{}, map[string]int{}, make([]exported, 0, len(lines))
	for i, line := range lines {
		var e exported
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return fmt.Sprintf("export line %d: %v", i+1, err)
		}
		if e.Sequence != uint64(i+1) {
			return fmt.Sprintf("O2: sequence %d on line %d", e.Sequence, i+1)
		}
		if i < len(o.history) && o.history[i] != line {
			return fmt.Sprintf("O2: sequence %d was %s and is %s", e.Sequence, o.history[i], line)
		}
		if e.ClientOrderID != "" {
			byID[e.ClientOrderID]++
		}
		if e.Type == "ORDER_CANCEL" {
			cancels[fmt.Sprintf("ord-%d", e.OrderRef)]++
		}
		bySequence = append(bySequence, e)
	}
	if len(lines) < len(o.history) {
		return fmt.Sprintf("O2: %d commands, there were %d", len(lines), len(o.history))
	}
	for _, a := range o.acked {
		if a.clientOrderID == "" {
			if cancels[a.orderID] != 1 {
				return fmt.Sprintf("O1: acknowledged cancel of %s is there %d times", a.orderID,
					cancels[a.orderID])
			}
			continue
		}
		if a.sequence == 0 || a.sequence > uint64(len(bySequence)) {
			return fmt.Sprintf("O1: acknowledged %+v is absent", a)
		}
		e := bySequence[a.sequence-1]
		if e.Type != a.kind || e.ClientOrderID != a.clientOrderID {
			return fmt.Sprintf("O1: acknowledged %+v, the journal has %+v there", a, e)
		}
	}
	for id, n := range byID {
		if n > 1 {
			return fmt.Sprintf("O5: client order id %s is in the journal %d times", id, n)
		}
	}
	return ""
}

// repeatUnknown sends every unknown request again with its own client order id.
func (o *oracle) repeatUnknown(t *testing.T, url string) int {
	t.Helper()
	n := 0
	for id, u := range o.unknown {
		r := send(http.DefaultClient, url+"/orders", u)
		if r.status == 0 {
			t.Fatalf("repeating %s: no answer from a healthy server", id)
		}
		o.acked = append(o.acked, r)
		delete(o.unknown, id)
		n++
	}
	return n
}

type crashServer struct {
	cmd    *exec.Cmd
	url    string
	log    *bytes.Buffer
	exited chan error // one value, when the process has ended
}

// besideEngine runs every tenth cycle with all services, because a start is then slower.
// TestKillWithEverythingOn checks the services.
func besideEngine(cycle int) []string {
	if cycle%10 == 9 {
		return nil
	}
	return []string{"--sidecars.enabled=false"}
}

// startForCrash starts the server on its data directory and waits until it is ready.
func startForCrash(t *testing.T, binary, data string, flags ...string) *crashServer {
	t.Helper()
	ports := filepath.Join(data, "ports.json")
	os.Remove(ports)
	args := append([]string{"serve", "--data.dir=" + data, "--snapshot.interval-commands=2000",
		"--order-matcher.listen=127.0.0.1:0", "--trade-processor.listen=127.0.0.1:0",
		"--account-service.listen=127.0.0.1:0", "--reference-data.listen=127.0.0.1:0",
		"--admin.listen=127.0.0.1:0", "--console.listen=127.0.0.1:0"}, flags...)
	s := &crashServer{cmd: exec.Command(binary, args...), log: &bytes.Buffer{},
		exited: make(chan error, 1)}
	s.cmd.Stderr, s.cmd.Stdout = s.log, s.log
	must.OK(t, s.cmd.Start())
	go func() { s.exited <- s.cmd.Wait() }()
	t.Cleanup(func() { s.cmd.Process.Kill() })
	deadline := time.After(apptest.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-s.exited:
			t.Fatalf("server did not start: %v\n%s", err, s.log)
		case <-deadline:
			t.Fatalf("server is not ready after %s\n%s", apptest.Patience, s.log)
		case <-tick.C:
		}
		text, err := os.ReadFile(ports)
		var listen map[string]string
		if err != nil || json.Unmarshal(text, &listen) != nil {
			continue
		}
		s.url = "http://" + listen["order-matcher"]
		if answer, err := http.Get("http://" + listen["admin"] + "/readyz"); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return s
			}
		}
	}
}

// loadUntilKilled lets the clients send until the server is killed, and returns all outcomes that
// they know.
func loadUntilKilled(t *testing.T, s *crashServer, cycle int, seed uint64,
	delay time.Duration) []outcome {
	t.Helper()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		results []outcome
		killed  atomic.Bool
	)
	for c := range crashClients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			mine := crashClient(s.url, fmt.Sprintf("c%d-%d", cycle, c),
				rand.New(rand.NewPCG(seed, uint64(c))), &killed)
			mu.Lock()
			results = append(results, mine...)
			mu.Unlock()
		}()
	}
	<-time.After(delay)
	s.cmd.Process.Signal(syscall.SIGKILL)
	killed.Store(true)
	wg.Wait()
	<-s.exited // until then the process holds the journal's lock
	return results
}

// crashClient sends orders and cancels its own until the server stops answering.
func crashClient(url, name string, random *rand.Rand, killed *atomic.Bool) []outcome {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	var all []outcome
	var open []string
	for n := 0; !killed.Load(); n++ {
		var r outcome
		if len(open) > 0 && random.IntN(5) == 0 {
			id := open[len(open)-1]
			open = open[:len(open)-1]
			r = send(c, url+"/orders/"+id+"/cancel", outcome{kind: "ORDER_CANCEL"})
			if r.status == http.StatusConflict {
				continue // it traded first: this request sequenced nothing
			}
		} else {
			id := fmt.Sprintf("%s-%d", name, n)
			side := [2]string{"Buy", "Sell"}[random.IntN(2)]
			r = send(c, url+"/orders", outcome{clientOrderID: id, kind: "ORDER_NEW", body: fmt.Sprintf(
				`{"clientOrderId":%q,"accountId":%d,"security":"AAPL","side":%q,"quantity":%d,`+
					`"limitPrice":%d.%02d}`,
				id, 1+random.IntN(4), side, 1+random.IntN(100), 187, random.IntN(20))})
			if r.status == http.StatusCreated {
				open = append(open, r.orderID)
			}
		}
		all = append(all, r)
		if r.status == 0 {
			break
		}
	}
	return all
}

// send posts one request. A status of 0 says that the outcome is unknown.
func send(c *http.Client, url string, r outcome) outcome {
	answer, err := c.Post(url, "application/json", strings.NewReader(r.body))
	if err != nil {
		return r
	}
	defer answer.Body.Close()
	var body struct {
		Sequence uint64 `json:"sequence"`
		OrderID  string `json:"orderId"`
	}
	if json.NewDecoder(answer.Body).Decode(&body) != nil || answer.StatusCode >= 500 {
		return r
	}
	r.status, r.sequence, r.orderID = answer.StatusCode, body.Sequence, body.OrderID
	return r
}

// export returns the journal's commands, a line each.
func export(t *testing.T, binary, data string) []string {
	t.Helper()
	cmd := exec.Command(binary, "journal", "export", "--raw", "--data.dir="+data)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("journal export: %v\n%s", err, stderr.String())
	}
	var lines []string
	scanner := bufio.NewScanner(bytes.NewReader(out))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines
}
