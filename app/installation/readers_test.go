package installation

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

var (
	readerKills  = flag.Int("readerkills", 2, "kills of the tests of outside readers, in each of them")
	readerCount  = flag.Int("readers", 10, "readers of the tests of outside readers")
	resumePoints = flag.Int("resumepoints", 100, "places in which an outside reader begins")
	readerSeed   = flag.Uint64("readerseed", 1, "seed of the tests of outside readers")
)

// readersRig is readers, and clients that trade, beside servers that are killed.
type readersRig struct {
	t      *testing.T
	random *rand.Rand
	token  string
	base   func() string // of one of the servers

	phases  phases
	traded  atomic.Int64 // acknowledged requests
	readers []*feedReader
	running sync.WaitGroup
	mu      sync.Mutex
	books   [][]byte // documents of GET /book that were seen
}

// run lets readers and clients run while kill is called again and again, and returns when every
// reader has got the last event.
func (g *readersRig) run(kill func(n int)) {
	for n := range *readerCount {
		r := &feedReader{t: g.t, name: fmt.Sprintf("reader %d", n), base: g.base, token: g.token,
			random: rand.New(rand.NewPCG(*readerSeed, uint64(n))), s: randomSelection(g.random)}
		if n%3 == 0 {
			r.from = "0"
		}
		g.readers = append(g.readers, r)
		g.running.Go(func() { r.run(isFinish, g.phases.stall) })
	}
	var trading sync.WaitGroup
	done := make(chan struct{})
	for n := range 4 {
		random := rand.New(rand.NewPCG(*readerSeed, 1000+uint64(n)))
		trading.Go(func() { g.trade(random, n, done) })
	}
	trading.Go(func() { g.lookAtBooks(done) })
	for n := range *readerKills {
		g.await(150)
		kill(n)
		g.phases.now.Add(1)
	}
	g.await(150)
	close(done)
	trading.Wait()
	g.phases.over.Store(true)
	price := fmt.Sprintf(`[{"security":"AAPL","price":%d}]`, finish)
	apptest.Until(g.t, "the last price is sent", func() (bool, any) {
		r := send(g.client(), g.base()+"/prices", outcome{body: price})
		return r.status == 200 || r.status == 202, r
	})
	g.running.Wait()
}

// client sends the rig's token with everything.
func (g *readersRig) client() *http.Client {
	return &http.Client{Transport: withToken(g.token), Timeout: 20 * time.Second}
}

type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+string(token))
	return feedClient.Transport.RoundTrip(r)
}

// await waits for some more acknowledged requests.
func (g *readersRig) await(more int64) {
	g.t.Helper()
	from := g.traded.Load()
	apptest.Until(g.t, "clients trade", func() (bool, any) {
		return g.traded.Load() >= from+more || g.t.Failed(), g.traded.Load() - from
	})
}

// trade sends orders, cancels, prices and bookings until done, whether they are answered or not.
func (g *readersRig) trade(random *rand.Rand, client int, done <-chan struct{}) {
	c := g.client()
	var last string
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		path, body := "/orders", fmt.Sprintf(`{"clientOrderId":"r%d-%d","accountId":%d,"security":%q,`+
			`"side":%q,"quantity":%d,"limitPrice":%d.%02d}`, client, n, 1+random.IntN(4),
			[]string{"AAPL", "MSFT"}[random.IntN(2)], []string{"Buy", "Sell"}[random.IntN(2)],
			1+random.IntN(50), 187, random.IntN(20))
		switch kind := random.IntN(20); {
		case kind < 4 && last != "":
			path, body, last = "/orders/"+last+"/cancel", "", ""
		case kind == 4:
			path = "/prices"
			body = fmt.Sprintf(`[{"security":"MSFT","price":187.%02d}]`, random.IntN(20))
		case kind == 5:
			path, body = "/swaps", fmt.Sprintf(`{"clientOrderId":"s%d-%d","accountId":%d,`+
				`"payReceive":"Pay","notional":1000,"fixedRate":4.25,"effectiveDate":"2026-11-23",`+
				`"maturityDate":"2031-11-23","conventions":"USD-SOFR-1Y-ACT360"}`, client, n, 1+random.IntN(4))
		}
		r := send(c, g.base()+path, outcome{body: body})
		if r.status != 0 {
			g.traded.Add(1)
		}
		if r.status == http.StatusCreated && path == "/orders" {
			last = r.orderID
		}
	}
}

// lookAtBooks keeps what GET /book says, as of any sequence.
func (g *readersRig) lookAtBooks(done <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		answer, err := feedClient.Get(g.base() + "/book/" + []string{"AAPL", "MSFT"}[n%2])
		if err != nil {
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err == nil && answer.StatusCode == 200 {
			g.mu.Lock()
			g.books = append(g.books, text)
			g.mu.Unlock()
		}
	}
}

// whole reads the stream of everything from the first command on.
func (g *readersRig) whole(base string) (truth []sseEvent) {
	g.t.Helper()
	s := openFeed(g.t, base, g.token,
		"topics=book:*,bbo:*,trades,orders,prices,controls,contracts&fromSeq=0", "")
	defer s.cancel()
	all := s.until(isFinish)
	at := place{}
	for _, e := range all {
		if e.kind == "snapshot" && len(truth) == 0 {
			continue // the empty books
		}
		if p := placeOf(g.t, e.id); p.compare(at) <= 0 {
			g.t.Fatalf("%s behind %+v", e.text(), at)
		} else {
			at = p
		}
		truth = append(truth, e)
	}
	return truth
}

// check compares what every reader got with the one true stream, and books with GET /book.
func (g *readersRig) check(truth []sseEvent) {
	g.t.Helper()
	events, connections := 0, 0
	for _, r := range g.readers {
		start := placeOf(g.t, r.start)
		if v := firstDifference(r.events, g.expected(truth, &r.s, start, len(truth))); v != "" {
			g.t.Errorf("%s, %s, from %s: %s", r.name, r.s.query(), r.start, v)
		}
		if len(r.s.books) == 0 != (len(r.snapshots) == 0) {
			g.t.Errorf("%s, %s: %d snapshots", r.name, r.s.query(), len(r.snapshots))
		}
		for _, e := range r.snapshots {
			g.books = append(g.books, []byte(e.data))
		}
		events, connections = events+len(r.events), connections+r.connections
	}
	g.checkBooks(truth)
	g.t.Logf("seed %d: %d requests, %d events in all, %d of %d readers with %d connections, %d books",
		*readerSeed, g.traded.Load(), len(truth), events, len(g.readers), connections, len(g.books))
}

// expected are the first events of a selection behind a place.
func (g *readersRig) expected(truth []sseEvent, s *readerSelection, behind place,
	most int) (want []string) {
	for n := range truth {
		e := &truth[n]
		if placeOf(g.t, e.id).compare(behind) > 0 && s.has(e) {
			if want = append(want, e.text()); len(want) == most {
				break
			}
		}
	}
	return want
}

// firstDifference says where two streams part.
func firstDifference(got, want []string) string {
	for n := range max(len(got), len(want)) {
		switch {
		case n >= len(got):
			return fmt.Sprintf("event %d is missing: %s", n, want[n])
		case n >= len(want):
			return fmt.Sprintf("event %d is too much: %s", n, got[n])
		case got[n] != want[n]:
			return fmt.Sprintf("event %d is %s, want %s", n, got[n], want[n])
		}
	}
	return ""
}

// checkBooks compares each book that was seen with the one that the events make at its sequence.
func (g *readersRig) checkBooks(truth []sseEvent) {
	g.t.Helper()
	type seen struct {
		ticker   string
		sequence uint64
		text     string
	}
	var all []seen
	for _, document := range g.books {
		ticker, sequence, text := bookText(g.t, document)
		all = append(all, seen{ticker, sequence, text})
	}
	slices.SortFunc(all, func(a, b seen) int { return int(a.sequence) - int(b.sequence) })
	books, next := outsideBooks{}, 0
	for _, b := range all {
		for ; next < len(truth) && placeOf(g.t, truth[next].id).sequence <= b.sequence; next++ {
			books.apply(&truth[next])
		}
		if got := books.text(b.ticker); got != b.text {
			g.t.Fatalf("%s at %d: the events make %s, GET /book says %s", b.ticker, b.sequence, got,
				b.text)
		}
	}
}

// resume begins in many places of the history, four at a time.
func (g *readersRig) resume(truth []sseEvent) {
	g.t.Helper()
	points := make(chan *rand.Rand)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for random := range points {
				g.resumeOnce(truth, random)
			}
		})
	}
	for n := range *resumePoints {
		points <- rand.New(rand.NewPCG(*readerSeed, 5000+uint64(n)))
	}
	close(points)
	running.Wait()
}

func (g *readersRig) resumeOnce(truth []sseEvent, random *rand.Rand) {
	r := &feedReader{t: g.t, random: random, base: g.base, token: g.token,
		s: randomSelection(random)}
	r.last = truth[random.IntN(len(truth)-1)].id
	if random.IntN(2) == 0 {
		r.from, _, _ = strings.Cut(r.last, ".")
		r.last = ""
	} else {
		r.start = r.last
	}
	r.name = fmt.Sprintf("begin at %s%s with %s", r.last, r.from, r.s.query())
	r.run(func(e *sseEvent) bool { return isFinish(e) || len(r.events) == 20 }, func() {})
	want := g.expected(truth, &r.s, placeOf(g.t, r.start), 20)
	if v := firstDifference(r.events, want); v != "" {
		g.t.Errorf("%s: %s", r.name, v)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range r.snapshots {
		g.books = append(g.books, []byte(e.data))
	}
}

// TestReadersOfOneServer: whatever readers ask for, and however often they and the server go, each
// gets the one true stream, exactly once and in order. Books are those of GET /book.
func TestReadersOfOneServer(t *testing.T) {
	binary, data := apptest.Program(t), t.TempDir()
	start := func() *crashServer {
		return startForCrash(t, binary, data, "--sidecars.enabled=false", "--feed.max-clients=64")
	}
	server := start()
	var base atomic.Value
	base.Store(server.url)
	secret := must.Get(apptest.Settled(t, "data.dir", data).JWTSecret())(t)
	g := &readersRig{t: t, random: rand.New(rand.NewPCG(*readerSeed, 1)),
		token: gate.Mint(secret, gate.Claims{Subject: "reader", Admin: true}, "", time.Hour, time.Now()),
		base:  func() string { return base.Load().(string) }}
	g.run(func(int) {
		must.OK(t, server.cmd.Process.Kill())
		<-server.exited
		server = start()
		base.Store(server.url)
	})
	truth := g.whole(g.base())
	g.resume(truth)
	g.check(truth)
}

// TestReadersOfThreeMembers: the same on any member of a cluster whose leader is killed.
func TestReadersOfThreeMembers(t *testing.T) {
	members := startMembers(t, apptest.Program(t), "--auth.jwt.secret="+clusterSecret)
	g := &readersRig{t: t, random: rand.New(rand.NewPCG(*readerSeed, 2)),
		token: gate.Mint([]byte(clusterSecret), gate.Claims{Subject: "reader", Admin: true}, "",
			time.Hour, time.Now()),
		base: func() string { return "http://" + members[rand.IntN(3)].http }}
	leader := awaitLeader(t, members)
	g.run(func(int) {
		must.OK(t, leader.cmd.Process.Kill())
		<-leader.exited
		g.await(50) // the other two go on
		leader.start()
		leader = awaitLeader(t, members)
	})
	truth := g.whole("http://" + members[0].http)
	for n, m := range members[1:] {
		other := g.whole("http://" + m.http)
		for k := range min(len(truth), len(other)) {
			if truth[k].text() != other[k].text() {
				t.Fatalf("member %d: event %d is %s, the first member's %s", n+2, k, other[k].text(),
					truth[k].text())
			}
		}
		if len(other) != len(truth) {
			t.Errorf("member %d has %d events, the first %d", n+2, len(other), len(truth))
		}
	}
	g.resume(truth)
	g.check(truth)
}
