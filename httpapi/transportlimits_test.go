package httpapi

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"posttrade/ring/must"
)

func TestSlowRequestIsAnswered408AndClosed(t *testing.T) {
	r := newRig(t)
	r.serve(func(*Deps) {}, func(m *OrderMatcher) {
		m.server.http.ReadTimeout = 30 * time.Millisecond
	})
	for _, raw := range []string{"GET /health HT", postOrder("Content-Length: 10\r\n", "{")} {
		w := r.dial()
		w.send(raw)
		w.receive("GET").want(t, 408, CodeRequestTimeout)
		w.closed()
	}
}

func TestPanicIsOneAnswerAndOneCount(t *testing.T) {
	r := newRig(t)
	r.serve(func(d *Deps) { d.Clock = func() int64 { panic("secret") } })
	w := r.dial()
	w.send(postOrder("Content-Length: "+itoa(uint64(len(goodOrder)))+"\r\n", goodOrder))
	a := w.receive("POST").want(t, 500, CodeInternal)
	if strings.Contains(string(a.body), "secret") || strings.Contains(string(a.body), ".go") {
		t.Errorf("the answer shows the panic: %s", a.body)
	}
	w.closed()
	if n := r.m.server.panics.Load(); n != 1 {
		t.Errorf("%d panics counted, want 1", n)
	}
	r.get("/health", "").want(t, 200, "")
	if n := r.desk.Out(); n != 0 {
		t.Errorf("%d tickets are out after the panic", n)
	}
}

func TestRequestsBeyondTheLimitAreRefused(t *testing.T) {
	r := newRig(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var first bool
	r.serve(func(d *Deps) {
		d.MaxInflight = 1
		d.Clock = func() int64 {
			if !first {
				first = true
				close(entered)
				<-leave
			}
			return testStart
		}
	})
	w := r.dial()
	w.send(postOrder("Content-Length: "+itoa(uint64(len(goodOrder)))+"\r\n", goodOrder))
	<-entered
	a := r.get("/health", "").want(t, 429, CodeTooManyRequests)
	if a.header.Get("Retry-After") != "1" || a.field(t, "sequenced") != false {
		t.Errorf("429 without advice: %v %s", a.header, a.body)
	}
	close(leave)
	w.receive("POST").want(t, 201, "")
	r.get("/health", "").want(t, 200, "")
}

func TestConnectionsBeyondTheLimitAreRefused(t *testing.T) {
	r := newRig(t)
	r.serve(func(d *Deps) { d.MaxInflight = 1 })
	var open []*wire
	for range connectionsPerInflight {
		w := r.dial()
		w.send(healthy)
		w.receive("GET").want(t, 200, "")
		open = append(open, w)
	}
	over := r.dial()
	over.receive("GET").want(t, 429, CodeTooManyRequests)
	over.closed()
	open[0].conn.Close()
	for range 1000 { // the server notices the close on its own time
		w := r.dial()
		w.send(healthy)
		if a := w.receive("GET"); a.status == 200 {
			return
		}
		w.conn.Close()
	}
	t.Error("a closed connection does not make room")
}

// failingListener reports errors before it accepts.
type failingListener struct {
	net.Listener
	errs []error
}

func (l *failingListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

func TestListenerOutlivesPassingErrors(t *testing.T) {
	r := newRig(t)
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.address = ln.Addr().String()
	failing := &failingListener{ln, []error{
		&net.OpError{Op: "accept", Err: syscall.EMFILE},
		&net.OpError{Op: "accept", Err: syscall.ECONNABORTED},
	}}
	done := make(chan error, 1)
	go func() { done <- r.m.Serve(failing) }()
	r.get("/health", "").want(t, 200, "")
	failing.Listener.Close()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	broken := &failingListener{ln, []error{errors.New("the card is gone")}}
	if err := r.m.Serve(broken); err == nil || !strings.Contains(err.Error(), "the card is gone") {
		t.Errorf("Serve with a broken listener: %v", err)
	}
}

func TestPrefixIsStripped(t *testing.T) {
	r := newRig(t, prefixed)
	for path, status := range map[string]int{
		"/om/health": 200, "/health": 200, "/om": 404, "/om/": 404, "/omx/health": 404,
		"/om/om/health": 404,
	} {
		r.get(path, "").want(t, status, "")
	}
	body := strings.Repeat(" ", 70_000) + "[" + goodOrder + "]"
	r.post("/om/orders/batch", body, "").want(t, 201, "")
}

// TestShutdownAnswersWhatIsInFlight ends the server while a request waits.
func TestShutdownAnswersWhatIsInFlight(t *testing.T) {
	r := newRig(t)
	r.recorder.hold()
	w := r.dial()
	w.send(postOrder("Content-Length: "+itoa(uint64(len(goodOrder)))+"\r\n", goodOrder))
	r.recorder.waitApplied(1)
	down := make(chan error, 1)
	go func() { down <- r.m.Shutdown(t.Context()) }()
	for { // the listener is closed first
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			break
		}
		conn.Close()
	}
	r.recorder.letGo()
	if a := w.receive("POST").want(t, 201, ""); !a.closes {
		t.Error("the answer does not say that it is the last")
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}
