package installation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/ring/must"
)

// served is a server running in this process.
type served struct {
	url, admin string
	cancel     context.CancelFunc
	ended      chan error
}

// anyPorts are the flags of a server that conflicts with no other process and is ready at once.
func anyPorts(data string) []string {
	return []string{
		"data.dir", data, "order-matcher.listen", "127.0.0.1:0", "trade-processor.listen", "127.0.0.1:0",
		"account-service.listen", "127.0.0.1:0", "reference-data.listen", "127.0.0.1:0", "admin.listen",
		"127.0.0.1:0", "console.listen", "127.0.0.1:0",
		"recon.blotter.capacity", "1000", "journal.reserve-bytes", "0", "risk.bootstrap.enabled", "false",
	}
}

// serveFor calls serve as `posttrade serve` does.
func serveFor(ctx context.Context, c *settings.Config, stdout, stderr io.Writer) error {
	fatal := NewFatalStderr(stderr)
	o := EngineOptions(c)
	o.Fatal = fatal.Failed
	return serve(ctx, c, o, slog.New(slog.NewTextHandler(fatal, nil)), stdout, nil)
}

// startServer serves on data and returns when both listeners are announced.
func startServer(t *testing.T, data string, nameValue ...string) *served {
	t.Helper()
	c := apptest.Settled(t, append(anyPorts(data), nameValue...)...)
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	s := &served{cancel: cancel, ended: make(chan error, 1)}
	go func() {
		err := serveFor(ctx, c, writer, io.Discard)
		writer.CloseWithError(err)
		s.ended <- err
	}()
	t.Cleanup(cancel)
	lines := bufio.NewScanner(reader)
	for s.url == "" || s.admin == "" {
		if !lines.Scan() {
			t.Fatalf("server did not start: %v", <-s.ended)
		}
		if at, ok := strings.CutPrefix(lines.Text(), "order-matcher listening on "); ok {
			s.url = "http://" + at
		}
		if at, ok := strings.CutPrefix(lines.Text(), "admin listening on "); ok {
			s.admin = "http://" + at
		}
	}
	go io.Copy(io.Discard, reader)
	return s
}

func (s *served) stop(t *testing.T) {
	t.Helper()
	s.cancel()
	if err := <-s.ended; err != nil {
		t.Fatalf("stop: %v", err)
	}
}

// call sends a request and returns status and body.
func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request := must.Get(http.NewRequest(method, url, strings.NewReader(body)))(t)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	status, _, text := answerTo(t, request)
	return status, text
}

const (
	sellOrder = `{"clientOrderId":"s","accountId":1,"security":"AAPL","side":"Sell","quantity":100,` +
		`"limitPrice":187.25}`
	buyOrder = `{"clientOrderId":"b","accountId":2,"security":"AAPL","side":"Buy","quantity":40,` +
		`"limitPrice":187.30}`
)

func TestServerRecoversWhatItAnswered(t *testing.T) {
	data := t.TempDir()
	reads := []string{"/orders?status=all", "/orders/ord-1", "/positions?accountId=2",
		"/book/AAPL?depth=5"}
	s := startServer(t, data)
	for _, order := range []string{sellOrder, buyOrder} {
		if status, body := call(t, "POST", s.url+"/orders", order); status != http.StatusCreated {
			t.Fatalf("order: %d %s", status, body)
		}
	}
	var before []string
	for _, path := range reads {
		_, body := call(t, "GET", s.url+path, "")
		before = append(before, body)
	}
	s.stop(t)

	var ports map[string]string
	text, err := os.ReadFile(filepath.Join(data, "ports.json"))
	if err != nil || json.Unmarshal(text, &ports) != nil || "http://"+ports["order-matcher"] != s.url {
		t.Errorf("ports.json: %s, %v", text, err)
	}

	s = startServer(t, data)
	defer s.stop(t)
	for i, path := range reads {
		if _, body := call(t, "GET", s.url+path, ""); body != before[i] {
			t.Errorf("%s after the restart:\n%s\nbefore:\n%s", path, body, before[i])
		}
	}
	if status, body := call(t, "POST", s.url+"/orders", buyOrder); status != http.StatusCreated ||
		!strings.Contains(body, `"sequence":2`) {
		t.Errorf("repeated order after the restart: %d %s", status, body)
	}
	if status, body := call(t, "GET", s.admin+"/readyz", ""); status != http.StatusOK ||
		!strings.Contains(body, `"journal"`) {
		t.Errorf("readyz: %d %s", status, body)
	}
	_, metrics := call(t, "GET", s.admin+"/metrics", "")
	for _, name := range []string{"svc_ring_depth", "svc_stage_sequence", "svc_journal_bytes_total",
		"svc_journal_commit_seconds",
		"svc_orders_total", "svc_stage_latency_seconds", "go_goroutines"} {
		if !strings.Contains(metrics, "\n"+name) {
			t.Errorf("/metrics has no %s", name)
		}
	}
}

func TestStartIsRefusedByName(t *testing.T) {
	data := t.TempDir()
	s := startServer(t, data)
	tests := []struct {
		name     string
		settings []string
		want     string
		usage    bool
	}{
		{"journal in use", nil, journal.ErrLocked.Error(), false},
		{"data directory is a file", []string{"data.dir", filepath.Join(data, "ports.json")}, "data.dir",
			false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantNoStart(t, append(anyPorts(data), tt.settings...), tt.want, tt.usage)
		})
	}
	s.stop(t)
	wantNoStart(t, append(anyPorts(data), "risk.max-open-orders", "17"), "risk.max-open-orders", true)
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	for _, name := range []string{"order-matcher.listen", "admin.listen", "console.listen"} {
		wantNoStart(t, append(anyPorts(data), name, taken.Addr().String()), name, false)
	}
}

func wantNoStart(t *testing.T, nameValue []string, want string, usage bool) {
	t.Helper()
	c, err := apptest.SettleFlags(nameValue)
	if err == nil {
		err = serveFor(context.Background(), c, io.Discard, io.Discard)
	}
	var u settings.UsageError
	if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &u) != usage {
		t.Errorf("start: %v, want one that names %q (usage error: %v)", err, want, usage)
	}
}

// TestSnapshotCarriesTheStart restores from the snapshot and not from the first command.
func TestSnapshotCarriesTheStart(t *testing.T) {
	dir := t.TempDir()
	k := testCore(t, dir)
	submit(t, k, 500)
	s, err := k.Shadow.Take(context.Background())
	must.OK(t, err)
	submit(t, k, 7)
	hash := stopAndHash(t, k)

	k = testCore(t, dir)
	if k.Recovered.Snapshot != s.InputSeq || k.Recovered.Replayed != 7 {
		t.Errorf("started from snapshot %d with %d replayed, want %d and 7", k.Recovered.Snapshot,
			k.Recovered.Replayed, s.InputSeq)
	}
	if err := k.Views.Check(k.Engine); err != nil {
		t.Error(err)
	}
	if got := stopAndHash(t, k); got != hash {
		t.Errorf("state %x after the restart, %x before", got, hash)
	}

	// A damaged snapshot is skipped, and the start says so.
	files, err := filepath.Glob(filepath.Join(dir, s.State.Path))
	if err != nil || len(files) != 1 {
		t.Fatalf("snapshot file: %v %v", files, err)
	}
	must.OK(t, os.Truncate(files[0], s.State.Bytes-1))
	k = testCore(t, dir)
	if k.Recovered.Snapshot != 0 || len(k.Recovered.Notes) == 0 {
		t.Errorf("started from snapshot %d, notes %v: want none, and a note", k.Recovered.Snapshot,
			k.Recovered.Notes)
	}
	if got := stopAndHash(t, k); got != hash {
		t.Errorf("state %x from the first command, %x before", got, hash)
	}
}

// testCore opens an engine with small limits.
func testCore(t *testing.T, dir string) *engine.Engine {
	t.Helper()
	return openTestCore(t, dir, false)
}

// openTestCore opens an engine in dir. With feeds, its gate waits for the control sources.
func openTestCore(t *testing.T, dir string, feeds bool, nameValue ...string) *engine.Engine {
	t.Helper()
	o := EngineOptions(apptest.Settled(t, append(anyPorts(dir), nameValue...)...))
	o.Dir, o.Feeds = dir, feeds
	o.Fatal = func(err error) { t.Errorf("journal failed: %v", err) }
	return must.Get(engine.Open(o))(t)
}

// submit sends n orders through the desk and waits for their answers.
func submit(t *testing.T, k *engine.Engine, n int) {
	t.Helper()
	ticket := must.Get(k.Desk.Acquire(n))(t)
	defer ticket.Release()
	for i := range n {
		c := ticket.Command(i)
		*c = matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Qty = uint32(i%2+1), 1, 10
		c.Side, c.LimitPx = matcher.Side(i%2), 100_000_000+int64(i%5)*1_000_000
	}
	must.OK(t, ticket.Submit())
	must.OK(t, ticket.Wait(0))
}

// stopAndHash stops the stages, takes the engine's state hash and closes everything.
func stopAndHash(t *testing.T, k *engine.Engine) [32]byte {
	t.Helper()
	hash := [32]byte{}
	k.BeforeDiscard = func() { hash = k.Engine.StateHash() }
	must.OK(t, k.Stop())
	return hash
}

// TestJournalFailureEndsEverything makes the journal fail. It expects waiting callers to be told
// and new ones to be refused.
func TestJournalFailureEndsEverything(t *testing.T) {
	k := testCore(t, t.TempDir())
	cause := errors.New("planted")
	k.Fail(cause)
	if _, err := k.Desk.Acquire(1); !errors.Is(err, desk.ErrFailed) {
		t.Errorf("acquire after the failure: %v", err)
	}
	if err := k.Watermark.WaitDurable(1<<40, time.Minute); !errors.Is(err, cause) {
		t.Errorf("a reader waits on: %v", err)
	}
	if err := k.Stop(); err != nil {
		t.Error(err)
	}
}

// TestLobsterBookMatchesThroughEngineAndServer sends the published order flow through a whole
// engine in this process and through the server, and compares ten levels with the published book
// after every event.
func TestLobsterBookMatchesThroughEngineAndServer(t *testing.T) {
	dir := sharedData(t, filepath.Join("data", "lobster"))
	if dir == "" {
		return
	}
	send := "replay"
	data := t.TempDir()
	s := startServer(t, data)
	defer s.stop(t)
	for name, args := range map[string][]string{
		"in process":       {"--data.dir=" + t.TempDir(), "--journal.reserve-bytes=0"},
		"through a server": {"--url=" + s.url},
	} {
		code, out, errs := apptest.Run(send, append(args, "--lobster="+dir, "--check")...)
		if code != settings.ExitOK || !strings.Contains(out, "998 of 998 transitions match") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
}

// sharedData finds the data beside the project, "" when there is none. In CI the absence is a
// failure.
func sharedData(t *testing.T, name string) string {
	t.Helper()
	roots := []string{os.Getenv("POSTTRADE_TEST_SHARED")}
	dir := must.Get(os.Getwd())(t)
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		roots = append(roots, filepath.Join(dir, "shared"))
	}
	for _, root := range roots {
		found := filepath.Join(root, name)
		if root != "" {
			if _, err := os.Stat(found); err == nil {
				return found
			}
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("no %s in %v", name, roots)
	}
	t.Logf("no %s in %v: nothing was compared", name, roots)
	return ""
}

// TestAHiddenBootIDIsSaid: in mode os it is what tells a lost answer from a power cut. The other
// modes do without.
func TestAHiddenBootIDIsSaid(t *testing.T) {
	for _, c := range []struct {
		durability, boot string
		member, said     bool
	}{
		{journal.DurabilityOS, "", false, true}, {journal.DurabilityOS, "1a2b", false, false},
		{journal.DurabilityOS, "", true, false}, {journal.DurabilityFsync, "", false, false},
	} {
		var log bytes.Buffer
		k := &engine.Engine{Options: engine.Options{Durability: c.durability, Member: c.member}}
		logRecovery(slog.New(slog.NewTextHandler(&log, nil)), k, c.boot)
		if strings.Contains(log.String(), "hides its boot id") != c.said {
			t.Errorf("%+v: %s", c, &log)
		}
	}
}
