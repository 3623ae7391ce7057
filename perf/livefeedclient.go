package perf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// turn is one round of reading. Clients write the counters and took; the round's own goroutine
// writes samples and over.
type turn struct {
	f      *feedFanOut
	joined atomic.Int64
	// events counts the events that all clients have read; slow counts the clients that were ended.
	events atomic.Int64
	slow   atomic.Int64
	// over tells the clients to end; each sees it after its next read.
	over atomic.Bool
	// passes counts the samples that came to a client, once for each of both.
	passes atomic.Int64

	// mu guards samples and took. A client takes it for each read.
	mu      sync.Mutex
	samples []sample
	// took is nanoseconds from durable to a client's socket, of all clients.
	took []int64
}

// note adds a sample. Sequences come in rising order, on which passed depends.
func (t *turn) note(inputSeq uint64) {
	now := time.Now()
	t.mu.Lock()
	t.samples = append(t.samples, sample{inputSeq, now})
	t.mu.Unlock()
}

// client reads the feed until the turn is over; a client that is ended as slow comes again. An
// error of a connection, also of one that the server closes without the event gone, ends the row.
func (t *turn) client() error {
	joined := false
	for !t.over.Load() {
		conn, err := net.Dial("tcp", t.f.address)
		if err != nil {
			return err
		}
		err = t.connection(conn, &joined)
		if err = errors.Join(err, conn.Close()); err != nil {
			return err
		}
	}
	return nil
}

// connection reads one stream. It looks at the last id of what a read returns: the events before it
// have come with it or earlier. It takes only samples that were noted after it was made. A line is
// looked at when it has come whole.
func (t *turn) connection(conn net.Conn, joined *bool) error {
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", feedTopics); err != nil {
		return err
	}
	var took []int64
	defer func() {
		t.mu.Lock()
		t.took = append(t.took, took...)
		t.mu.Unlock()
	}()
	in := bufio.NewReaderSize(conn, 64<<10)
	status, err := in.ReadString('\n')
	if err != nil || !bytes.Contains([]byte(status), []byte(" 200 ")) {
		return errors.Join(fmt.Errorf("live feed: answer %q", status), err)
	}
	next := t.sampled()
	buf, left := make([]byte, 64<<10), 0 // left: bytes of a line that has not come whole
	for !t.over.Load() {
		if err := conn.SetReadDeadline(time.Now().Add(feedSilence)); err != nil {
			return err
		}
		n, err := in.Read(buf[left:])
		now := time.Now()
		if err != nil {
			return fmt.Errorf("live feed: %w", err)
		}
		if !*joined {
			*joined = true
			t.joined.Add(1)
		}
		text := buf[:left+n]
		lines := text[:bytes.LastIndexByte(text, '\n')+1]
		t.events.Add(int64(countLines(lines, "data: ")))
		if countLines(lines, "event: gone") > 0 {
			t.slow.Add(1)
			return nil
		}
		if last, ok := lastSequence(lines); ok {
			took, next = t.passed(took, next, last, now)
		}
		if left = copy(buf, text[len(lines):]); left == len(buf) {
			return fmt.Errorf("live feed: a line of more than %d bytes", left)
		}
	}
	return nil
}

// countLines counts the lines of a text that begin so. The text begins with a line.
func countLines(text []byte, begin string) int {
	n := bytes.Count(text, []byte("\n"+begin))
	if bytes.HasPrefix(text, []byte(begin)) {
		n++
	}
	return n
}

// feedSilence is longer than a server that has nothing to say stays silent; a longer silence is an
// error.
const feedSilence = 30 * time.Second

// lastSequence is the sequence of the last whole id in a text: the number before the point of "id:
// <inputSeq>.<place>". false: there is none, or the text ends within it.
func lastSequence(text []byte) (uint64, bool) {
	at := bytes.LastIndex(text, []byte("id: "))
	if at < 0 {
		return 0, false
	}
	number, _, whole := bytes.Cut(text[at+len("id: "):], []byte("."))
	if !whole {
		return 0, false
	}
	n, err := strconv.ParseUint(string(number), 10, 64)
	return n, err == nil
}

// sampled is the number of samples so far.
func (t *turn) sampled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.samples)
}

// passed adds how long ago the samples from next on, up to a sequence, were durable, and returns
// the index of the first sample that has not come. now is the time of the read, taken before.
func (t *turn) passed(took []int64, next int, last uint64, now time.Time) ([]int64, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := next + slices.IndexFunc(t.samples[next:], func(s sample) bool { return s.inputSeq > last })
	if end < next {
		end = len(t.samples)
	}
	t.passes.Add(int64(end - next))
	for ; next < end; next++ {
		took = append(took, now.Sub(t.samples[next].at).Nanoseconds())
	}
	return took, next
}

// sample is a moment at which a sequence was durable. at is read just after the wait for it has
// ended.
type sample struct {
	inputSeq uint64
	at       time.Time
}
