package perf

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// httpLoad is a closed-loop load on one address: every connection sends the next request when the
// answer to the last one is complete. The client does as little as possible, so that its own cost
// hides little of the server's.
//
// A closed loop measures throughput. Its latencies are those at saturation, of as many callers as
// connections: a slow answer delays the caller's next request, which hides how many requests an
// independent caller would have had waiting. The curve of row P8 has those.
type httpLoad struct {
	// addr is host:port. connections is how many are open at a time, each with a goroutine of its own.
	addr        string
	connections int
	// request appends the nth request of a connection to buf, headers and all.
	request func(buf []byte, connection, n int) []byte
	// status is what every answer must have: a load of refusals would be fast and worth nothing.
	status int
}

// loadResult is what all connections have done together.
type loadResult struct {
	requests int
	elapsed  time.Duration
	// ns is the time of every request until its answer is complete, unsorted, in nanoseconds. It is
	// all in memory: 8 bytes a request.
	ns []int64
}

// run sends for about the given time and returns the results: every connection ends with the answer
// to its last request. The first answer with another status ends it with an error. elapsed runs
// from before the connections are opened to the last answer.
func (l httpLoad) run(d time.Duration) (loadResult, error) {
	var (
		stop     atomic.Bool
		wg       sync.WaitGroup
		mu       sync.Mutex
		total    loadResult
		firstErr error
	)
	start := time.Now()
	for c := range l.connections {
		wg.Add(1)
		go func() {
			defer wg.Done()
			ns, err := l.one(c, &stop)
			mu.Lock()
			defer mu.Unlock()
			total.requests += len(ns)
			total.ns = append(total.ns, ns...)
			if err != nil && firstErr == nil {
				firstErr = err
				stop.Store(true)
			}
		}()
	}
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	wg.Wait()
	timer.Stop()
	total.elapsed = time.Since(start)
	return total, firstErr
}

// one is the load of one connection until stop is set, and its times.
func (l httpLoad) one(connection int, stop *atomic.Bool) ([]int64, error) {
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 256<<10)
	var out []byte
	ns := make([]int64, 0, 1<<16)
	for n := 0; !stop.Load(); n++ {
		begun := time.Now()
		if out, err = l.exchange(conn, in, out[:0], connection, n); err != nil {
			return ns, err
		}
		ns = append(ns, time.Since(begun).Nanoseconds())
	}
	return ns, nil
}

// exchange sends the nth request of a connection from buf, in one write, and reads the whole
// answer. It returns buf for the next request.
func (l httpLoad) exchange(conn net.Conn, in *bufio.Reader, buf []byte,
	connection, n int) ([]byte, error) {
	buf = l.request(buf, connection, n)
	if _, err := conn.Write(buf); err != nil {
		return buf, err
	}
	status, err := readAnswer(in)
	if err == nil && status != l.status {
		err = fmt.Errorf("answer %d, want %d, to %s", status, l.status, buf)
	}
	return buf, err
}

// contentLength is compared byte by byte: the servers here write the header in these letters.
var contentLength = []byte("Content-Length: ")

// readAnswer reads one whole HTTP/1.1 answer with a Content-Length and returns its status. It knows
// no chunks and skips every other header: it is for the servers of this repository. An answer that
// it cannot frame is an error, or the next one would be read from the middle.
func readAnswer(in *bufio.Reader) (status int, err error) {
	length := -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		switch {
		case first:
			if len(line) < 12 {
				return 0, fmt.Errorf("short status line %q", line)
			}
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, err
			}
		case len(line) == 2:
			if length < 0 {
				return 0, fmt.Errorf("answer without Content-Length")
			}
			_, err = in.Discard(length)
			return status, err
		case bytes.HasPrefix(line, contentLength):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, err
			}
		}
	}
}

// appendPost appends a POST with a JSON body that body appends. The length is written into blanks
// that were left for it, so that no request is built twice; five digits are room for any body here.
func appendPost(buf []byte, path string, body func([]byte) []byte) []byte {
	buf = append(buf, "POST "...)
	buf = append(buf, path...)
	buf = append(buf,
		" HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
			"application/json\r\nContent-Length:      \r\n\r\n"...)
	at := len(buf)
	buf = body(buf)
	length := strconv.AppendInt(nil, int64(len(buf)-at), 10)
	copy(buf[at-4-len(length):], length) // right-aligned into the blank field
	return buf
}
