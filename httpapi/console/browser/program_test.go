package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

// root is the source tree.
const root = "../../.."

var built struct {
	once    sync.Once
	program string
	err     error
}

// program is the posttrade of this source tree, built once.
func program(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "posttrade-browser-*")
		built.program, built.err = filepath.Join(dir, "posttrade"), err
		if given := os.Getenv("CONSOLE_BINARY"); given != "" {
			built.program, built.err = filepath.Abs(given)
			return
		}
		build := exec.Command("go", "build", "-o", built.program, "./cmd/posttrade")
		build.Dir = root
		if text, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, text)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.program
}

// TestMain removes the program when all tests are through.
func TestMain(m *testing.M) {
	code := m.Run()
	if built.program != "" && os.Getenv("CONSOLE_BINARY") == "" {
		_ = os.RemoveAll(filepath.Dir(built.program))
	}
	os.Exit(code)
}

// services are the listeners of an installation.
var services = []string{"console", "order-matcher", "trade-processor", "account-service",
	"reference-data", "admin"}

// server is a running posttrade.
type server struct {
	t     *testing.T
	dir   string
	flags []string
	ports map[string]string
	cmd   *exec.Cmd
	log   *bytes.Buffer
	token string
}

// start starts an installation of its own with the given settings.
func start(t *testing.T, flags ...string) *server {
	t.Helper()
	s := newServer(t, flags...)
	s.run()
	s.ready()
	return s
}

// newServer prepares an installation; run starts it.
func newServer(t *testing.T, flags ...string) *server {
	s := &server{t: t, dir: t.TempDir(), flags: flags, ports: map[string]string{}}
	for _, name := range services {
		s.ports[name] = freePort(t)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the server's log:\n%s", tail(s.log.String(), 4000))
		}
	})
	return s
}

// ports counts the ports that were tried, so that freePort answers none twice.
var ports struct {
	mu   sync.Mutex
	next int
}

// The ports of freePort. They are below those that the system gives to clients: a server that is
// started again finds its own free.
const firstPort, numPorts = 20000, 12000

// freePort is a port that no process listens on, and that no other call got: a server listens on it
// only later.
func freePort(t *testing.T) string {
	t.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if ports.next == 0 {
		ports.next = rand.IntN(numPorts) // beside other processes that run these tests
	}
	for range 1000 {
		ports.next++
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+ports.next%numPorts))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func tail(text string, most int) string { return text[max(0, len(text)-most):] }

// run starts the program.
func (s *server) run() {
	s.t.Helper()
	args := []string{"serve", "--data.dir=" + filepath.Join(s.dir, "data"),
		"--journal.reserve-bytes=0"}
	for _, name := range services {
		args = append(args, "--"+name+".listen="+s.ports[name])
	}
	s.log = &bytes.Buffer{}
	s.cmd = exec.Command(program(s.t), append(args, s.flags...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// ready waits until the server is.
func (s *server) ready() {
	s.t.Helper()
	eventually(s.t, "the server is ready", func() bool {
		answer, err := http.Get("http://" + s.ports["admin"] + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// kill is kill -9.
func (s *server) kill() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // the error says that it was killed
	}
}

// url is an address of the console.
func (s *server) url(path string) string { return "http://" + s.ports["console"] + path }

// admin is a token that may do everything.
func (s *server) admin() string {
	if s.token == "" {
		s.token = s.mint("--subject=ops", "--admin", "--ttl=2h")
	}
	return s.token
}

// mint is a token of the server's secret.
func (s *server) mint(claims ...string) string {
	s.t.Helper()
	args := append([]string{"token", "--data.dir=" + filepath.Join(s.dir, "data")}, claims...)
	for _, flag := range s.flags {
		if strings.HasPrefix(flag, "--auth.jwt.secret=") {
			args = append(args, flag)
		}
	}
	text, err := exec.Command(program(s.t), args...).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// call sends a request to a service, beside the console, and returns the answer's document. What a
// server that has no time for its control feed has not sequenced is sent again.
func (s *server) call(method, service, path string, body any) map[string]any {
	s.t.Helper()
	var status int
	var answer map[string]any
	comes(func() bool {
		status, answer = s.try(method, service, path, body)
		return status != http.StatusServiceUnavailable || answer["sequenced"] != false
	})
	if status >= 300 {
		s.t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

func (s *server) try(method, service, path string, body any) (int, map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	if body == nil {
		text = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.ports[service]+path,
		bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.admin())
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Reason", "the tests of the console")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	all, _ := io.ReadAll(answer.Body)
	var document map[string]any
	_ = json.Unmarshal(all, &document) // a list stays nil: its callers do not read it
	return answer.StatusCode, document
}

// document is the body of a GET of the order-matcher, empty unless it is 200.
func (s *server) document(path string) []byte {
	s.t.Helper()
	r, err := http.NewRequest("GET", "http://"+s.ports["order-matcher"]+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.admin())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil
	}
	return text
}

// number is a number of a document as text; grouped is the same as the pages write it.
func number(v any) string { return strconv.FormatInt(int64(v.(float64)), 10) }

func grouped(v float64) string {
	text := number(v)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// price sets the market price of a security.
func (s *server) price(security string, price float64) {
	s.t.Helper()
	s.call("POST", "order-matcher", "/prices", []any{map[string]any{"security": security,
		"price": price}})
}

// order places an order and returns its document.
func (s *server) order(account int, security, side string, quantity int, price float64,
	clientID string) map[string]any {
	s.t.Helper()
	return s.call("POST", "order-matcher", "/orders", map[string]any{"accountId": account,
		"security": security, "side": side, "quantity": quantity, "limitPrice": price,
		"clientOrderId": clientID})
}

// eventually waits until holds does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !comes(holds) {
		t.Fatalf("did not happen in %s: %s", patience, what)
	}
}

// comes waits until holds does; false: not in time. Every wait of these tests is one.
func comes(holds func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			return false
		}
	}
	return true
}
