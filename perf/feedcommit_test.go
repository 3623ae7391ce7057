package perf

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// gateServer refuses every security's first orders.
func gateServer(t *testing.T, refusals int,
	refusal int) (addr string, asked func(ticker string) int) {
	t.Helper()
	var mu sync.Mutex
	orders := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var order struct{ Security string }
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			t.Error(err)
		}
		mu.Lock()
		orders[order.Security]++
		late := orders[order.Security] <= refusals
		mu.Unlock()
		if late {
			w.WriteHeader(refusal)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func(ticker string) int {
		mu.Lock()
		defer mu.Unlock()
		return orders[ticker]
	}
}

func TestGateIsAskedUntilItLetsIn(t *testing.T) {
	addr, asked := gateServer(t, 2, http.StatusUnprocessableEntity)
	r := &Run{o: Options{Stdout: io.Discard}}
	var added []string
	_, err := r.commitToGate("Feeds/op=x", 3, gateAsks{addr: addr, prefix: "T"},
		func(ticker string) error {
			added = append(added, ticker)
			return nil
		})
	if err != nil || strings.Join(added, " ") != "T0 T1 T2" || asked("T0") != 3 || asked("T2") != 3 {
		t.Errorf("added %v, asked %d and %d times, %v", added, asked("T0"), asked("T2"), err)
	}
	if len(r.lines) != 1 || !strings.HasSuffix(r.lines[0], " 3 changes") {
		t.Errorf("%q", r.lines)
	}
	addr, _ = gateServer(t, 1, http.StatusServiceUnavailable)
	if _, err := (gateAsks{addr: addr}).untilIn("T"); err == nil ||
		!strings.Contains(err.Error(), "status 503") {
		t.Errorf("another status: %v", err)
	}
	if _, err := (gateAsks{addr: "127.0.0.1:0"}).untilIn("T"); err == nil {
		t.Error("a missing reader is no error")
	}
	if _, err := r.commitToGate("Feeds/op=x", 1, gateAsks{},
		func(string) error { return io.EOF }); err != io.EOF {
		t.Errorf("a change that fails: %v", err)
	}
}

// TestPollRowWritesIntoTheServersDatabase: the changes of the poll row are in the outbox of the
// server's own database, and no publisher was notified.
func TestPollRowWritesIntoTheServersDatabase(t *testing.T) {
	addr, asked := gateServer(t, 1, http.StatusUnprocessableEntity)
	c := &child{addr: addr, dir: t.TempDir()}
	r := &Run{o: Options{Stdout: io.Discard, Smoke: true}}
	must.OK(t, r.pollToGate(c))
	db := must.Get(store.Open(store.Options{Dir: c.dir}))(t)
	defer db.Close()
	must.OK(t, db.Ready(t.Context()))
	var backlog store.Backlog
	if err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
		backlog, err = tx.OutboxBacklog(string(control.Security))
		return err
	}); err != nil || backlog.Rows != 3 || asked("POLL2") != 2 {
		t.Errorf("%+v wait, asked %d times, %v", backlog, asked("POLL2"), err)
	}
	if len(r.targets) != 1 || !strings.Contains(r.targets[0].text, "with the poll of 250 ms") ||
		r.targets[0].limit != 300 {
		t.Errorf("%v", r.targets)
	}
	c.dir = filepath.Join(c.dir, "posttrade.db") // below a file
	if err := r.pollToGate(c); err == nil {
		t.Error("a database that cannot be opened is no error")
	}
}

// TestWakeRowNeedsASecurityThatIsNew is the row over HTTP against a reference-data service.
func TestWakeRowNeedsASecurityThatIsNew(t *testing.T) {
	addr, _ := gateServer(t, 0, 0)
	status := http.StatusCreated
	reference := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
	}))
	defer reference.Close()
	c := &child{addr: addr,
		ports: map[string]string{"reference-data": strings.TrimPrefix(reference.URL, "http://")}}
	r := &Run{o: Options{Stdout: io.Discard, Smoke: true}}
	if err := r.wakeToGate(c); err != nil || len(r.targets) != 1 ||
		!strings.Contains(r.targets[0].text, "with the wake-up") {
		t.Errorf("%v, %v", r.targets, err)
	}
	status = http.StatusOK // it was there already
	if err := r.wakeToGate(c); err == nil || !strings.Contains(err.Error(), "status 200") {
		t.Errorf("got %v", err)
	}
}
