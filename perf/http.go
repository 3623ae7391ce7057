package perf

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"posttrade/httpapi"
)

// What the row asks for, in relation to a server of the same library that answers every request
// with the same bytes: what HTTP itself leaves over on this machine. An order may cost a fifth of
// the rate in mode os, two fifths with fsync, and 1.6 times the processor time. Batches have an
// absolute rate, because there is no bare server for them.
var (
	httpOS      = atLeast("P8", 0.8, "HTTP orders, mode os, against fasthttp hello")
	httpFsync   = atLeast("P8", 0.6, "HTTP orders, mode fsync, against fasthttp hello")
	httpBatches = atLeast("P8", 500_000, "orders/s in batches of 100, mode fsync")
	httpCPU     = atMost("P8", 1.6, "server CPU per order, mode os, against hello")
	httpPath    = atMost("P8", 1.6, "the same without the threads of a lower priority")
)

// httpConnections is the number of keep-alive connections in the HTTP rows. With fsync as many
// orders can share a commit.
const httpConnections = 64

// httpRounds is how often server and comparator are measured in turns; the median of each counts.
const httpRounds = 3

// wideFlags let the orders of a load pass every risk check; all checks are made. Without them the
// positions of a few accounts would meet their limits in the middle of a load.
var wideFlags = []string{"--risk.max-position-quantity=2000000000",
	"--risk.credit-limit=4000000000000",
	"--risk.max-concentration-notional=4000000000000"}

// httpPhase is one server under one load, measured in turns with the others.
type httpPhase struct {
	// name is in the names of the lines and of the profiles.
	name string
	// server may be that of another phase too: singles and batches with fsync share one.
	server *child
	load   httpLoad
	// perCall is the number of orders in one request.
	perCall int
	// rate is requests a second, one value for each round, as in cpu and path.
	rate []float64
	// cpu is microseconds of the server's processor time per order, user and system.
	cpu []float64
	// path is the part of cpu that is not on threads of a lower priority.
	path []float64
	// ns is the nanoseconds of every request of all rounds; requests is their number.
	ns       []int64
	requests int
}

// measureHTTP is row P8: orders over 64 keep-alive connections, in turns with a bare fasthttp
// server under the same load in the same run. The bare server gets the same requests, bodies and
// all, and reads none of them.
//
// The load is a closed loop in this process. Servers and load share the cores, so a rate is what is
// left beside the client; the client costs both servers the same, and so hides part of the
// difference between them. The processor time of a server does not have the client in it. A server
// is paused while another one is measured, because its sidecars, which follow the orders at a lower
// priority, would take time of that one. They go on in its own next phase.
func measureHTTP(r *Run) error {
	hello, err := r.startHello()
	if err != nil {
		return err
	}
	defer hello.stop()
	os, err := r.startWide("os")
	if err != nil {
		return err
	}
	defer os.stop()
	fsync, err := r.startWide("fsync")
	if err != nil {
		return err
	}
	defer fsync.stop()
	phases := []*httpPhase{
		{name: "hello", server: hello, perCall: 1, load: httpLoad{status: 200, request: helloRequest}},
		{name: "orders/durability=os", server: os, perCall: 1,
			load: httpLoad{status: 201, request: orderRequest}},
		{name: "orders/durability=fsync", server: fsync, perCall: 1,
			load: httpLoad{status: 201, request: orderRequest}},
		{name: "batches/durability=fsync", server: fsync, perCall: 100,
			load: httpLoad{status: 201, request: batchRequest}},
	}
	// The followers of the journal need longer than a round to process a round of batches, and would
	// do so beside the single orders of the same server. So the batches come after the others.
	singles := len(phases) - 1
	if err := measureInTurn(r, phases[:singles]); err != nil {
		return err
	}
	if err := measureInTurn(r, phases[singles:]); err != nil {
		return err
	}
	r.judgeHTTP(phases)
	return nil
}

// judgeHTTP judges the phases of measureHTTP, in their order: hello, os, fsync, batches. A line's
// ns/op is the time of a request at the median rate; its percentiles are over all rounds, in
// microseconds.
func (r *Run) judgeHTTP(phases []*httpPhase) {
	for _, p := range phases {
		rate := median(p.rate)
		r.bench("HTTP/op="+p.name, p.requests,
			time.Duration(float64(time.Second)/rate*float64(p.requests)),
			metric{rate * float64(p.perCall), "orders/s"}, metric{median(p.cpu), "server-us/order"},
			metric{median(p.path), "path-us/order"},
			metric{float64(percentile(p.ns, 50)) / 1e3, "p50-us"},
			metric{float64(percentile(p.ns, 99)) / 1e3, "p99-us"})
	}
	bare := median(phases[0].rate)
	r.judge(httpOS, median(phases[1].rate)/bare).beside("hello %.4g/s", bare)
	r.judge(httpFsync, median(phases[2].rate)/bare).beside("hello %.4g/s", bare)
	r.judge(httpBatches, median(phases[3].rate)*100)
	r.judge(httpCPU, median(phases[1].cpu)/median(phases[0].cpu)).
		beside("hello %.4g us", median(phases[0].cpu))
	r.judge(httpPath, median(phases[1].path)/median(phases[0].path))
}

// startWide starts a server of that durability with wideFlags, in a folder of its own.
func (r *Run) startWide(durability string) (*child, error) {
	return r.startServer("http-"+durability,
		append([]string{"--journal.durability=" + durability}, wideFlags...)...)
}

// measureInTurn measures each phase in every round: A B C, A B C, ... The servers of the other
// phases are paused meanwhile; all run again when it returns, also with an error.
func measureInTurn(r *Run, phases []*httpPhase) error {
	for round := range httpRounds {
		for _, p := range phases {
			err := p.alone(phases, func() error { return p.measure(r, round) })
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// alone calls f while the servers of the other phases are paused, and once this one, which may have
// been paused for long, admits orders again. The others go on before it returns.
func (p *httpPhase) alone(phases []*httpPhase, f func() error) (err error) {
	for _, other := range phases {
		if other.server == p.server {
			continue
		}
		if err := pause(other.server.cmd.Process); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, resume(other.server.cmd.Process)) }()
	}
	if err := p.server.admits(); err != nil {
		return err
	}
	return f()
}

// measure sends for four seconds and adds the round's figures. Client order ids have the round in
// them, in place of a connection of another round, so that none is used twice.
func (p *httpPhase) measure(r *Run, round int) error {
	p.load.addr, p.load.connections = p.server.addr, httpConnections
	request := p.load.request
	timed := p.load
	timed.request = func(buf []byte, connection, n int) []byte {
		return request(buf, round*httpConnections+connection, n)
	}
	before, err := p.server.cpu()
	if err != nil {
		return err
	}
	refused, err := p.refused()
	if err != nil {
		return err
	}
	beside := p.server.politeCPU()
	d := r.duration(4 * time.Second)
	profiled := p.profile(r, d)
	result, err := timed.run(d)
	if err = errors.Join(err, <-profiled); err != nil {
		return err
	}
	after, err := p.server.cpu()
	if err != nil {
		return err
	}
	switch now, err := p.refused(); {
	case err != nil:
		return err
	case now > refused:
		return fmt.Errorf("%.0f orders were refused", now-refused)
	}
	p.requests += result.requests
	p.ns = append(p.ns, result.ns...)
	p.rate = append(p.rate, float64(result.requests)/result.elapsed.Seconds())
	orders := float64(result.requests * p.perCall)
	p.cpu = append(p.cpu, float64((after-before).Microseconds())/orders)
	p.path = append(p.path,
		float64((after-before-p.server.politeCPU().since(beside)).Microseconds())/orders)
	return nil
}

// refused is how many orders the server has refused so far: a batch's status does not say it. The
// status of a single order does; 0 then.
func (p *httpPhase) refused() (float64, error) {
	if p.perCall == 1 {
		return 0, nil
	}
	return p.server.metric("svc_orders_total", `decision="rejected"`)
}

// helloRequest is the comparator's request: always the same order, as long as those of the other
// phases but for the length of its ids.
func helloRequest(buf []byte, _, _ int) []byte {
	return appendPost(buf, "/orders", func(b []byte) []byte { return appendOrder(b, 0, 0, 0) })
}

// orderRequest is a single order; a connection's nth request.
func orderRequest(buf []byte, connection, n int) []byte {
	return appendPost(buf, "/orders",
		func(b []byte) []byte { return appendOrder(b, connection, n, 0) })
}

// batchRequest is a hundred orders in one body, as row P8 asks.
func batchRequest(buf []byte, connection, n int) []byte {
	return appendPost(buf, "/orders/batch", func(b []byte) []byte {
		b = append(b, '[')
		for i := range 100 {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendOrder(b, connection, n, i+1)
		}
		return append(b, ']')
	})
}

// appendOrder appends a limit order near the touch: buys and sells in turns, so that about every
// second one trades and the book stays small. The client order id is unique for the round,
// connection, request and place in the batch.
//
// i is the place in a batch, from 1, or 0 for a single order. A buy and the sell that follows it on
// its connection have the same price; accounts and ticker are those of the default seed.
func appendOrder(b []byte, connection, n, i int) []byte {
	b = append(b, `{"clientOrderId":"p-`...)
	b = strconv.AppendInt(b, int64(connection), 36)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(n), 36)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(i), 36)
	b = append(b, `","accountId":`...)
	b = strconv.AppendInt(b, int64((connection+n)%4*2+(n+i)%2+1), 10)
	side, px := `,"security":"AAPL","side":"Buy","quantity":10,"limitPrice":187.`, 50
	if (n+i)%2 == 1 {
		side = `,"security":"AAPL","side":"Sell","quantity":10,"limitPrice":187.`
	}
	b = append(b, side...)
	b = strconv.AppendInt(b, int64(px+(n+i)/2%8), 10)
	return append(b, '}')
}

// median is the middle value, or the mean of the two middle ones; v stays as it is and must not be
// empty.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// percentile sorts ns and returns its pth percentile in their unit, 0 without any. It is a value
// that was measured, never one between two.
func percentile(ns []int64, p float64) int64 {
	if len(ns) == 0 {
		return 0
	}
	slices.Sort(ns)
	return ns[min(int(float64(len(ns))*p/100), len(ns)-1)]
}

// ServeHello is the bare HTTP server that orders are compared with: it answers every request with
// the same bytes until it is killed. It writes its address (host:port) to out when it listens, as
// the first and only line, for startHello.
func ServeHello(out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, l.Addr())
	return httpapi.ServeHello(l)
}
