package perf

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// bookers are clients that book swaps through all members. Each client sends one booking after the
// other, and repeats each until it is acknowledged.
//
// A booking that is repeated has the same client order id, so the members book it once at most. A
// client moves on to the next member with each try, so that one that is gone costs it one try.
type bookers struct {
	// members are the addresses of the members' order-matchers, host:port.
	members []string
	http    *http.Client
	// done is closed by stop; every client ends after its try under way.
	done    chan struct{}
	running sync.WaitGroup

	// mu guards since, dead, first and failed.
	mu sync.Mutex
	// acked has one place: a value says that there was an acknowledgement since progress looked last.
	// Several in between count as one.
	acked chan struct{}
	// since, dead and first are what a caller of after waits for: a booking that was sent after since,
	// and acknowledged by any other member than dead. The time of its acknowledgement goes to first,
	// once. first is nil while no caller waits.
	since time.Time
	dead  string
	first chan time.Time
	// failed is the first answer that no member is allowed to give.
	failed error
	// broken is closed when failed is set, so that a caller that waits sees it.
	broken chan struct{}
}

const (
	// bookerCount clients book at a time: more bookings than one are under way at the kill.
	bookerCount = 4
	// bookerPause is the time between two bookings of a client, so that the members have idle moments.
	bookerPause = 2 * time.Millisecond
	// bookerRetry is the pause before another try: a figure of the row can be so much too high.
	bookerRetry = time.Millisecond
	// bookerTimeout is for one request, so that a member that hangs does not hold a client for ever.
	bookerTimeout = 10 * time.Second
)

// startBookers starts the clients. The caller stops them.
func startBookers(members []string) *bookers {
	b := newBookers(members)
	for i := range bookerCount {
		b.running.Go(func() { b.run(i) })
	}
	return b
}

// newBookers makes the clients without starting any.
func newBookers(members []string) *bookers {
	return &bookers{
		members: members, http: &http.Client{Timeout: bookerTimeout,
			Transport: &http.Transport{MaxIdleConnsPerHost: bookerCount}},
		done: make(chan struct{}), acked: make(chan struct{}, 1), broken: make(chan struct{}),
	}
}

// stop ends the clients and returns the first wrong answer.
func (b *bookers) stop() error {
	close(b.done)
	b.running.Wait()
	b.http.CloseIdleConnections()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// run books until it is stopped, or an answer is wrong. The keys of its bookings are its own.
func (b *bookers) run(client int) {
	for n := 0; ; n++ {
		key := fmt.Sprintf("c%d-%d", client, n)
		for try := 0; ; try++ {
			sent := time.Now()
			by, err := b.book(b.members[(client+try)%len(b.members)], key)
			if err != nil {
				b.fail(err)
				return
			}
			booked, pause := by != "", bookerRetry
			if booked {
				b.note(sent, by)
				pause = bookerPause
			}
			if !b.wait(pause) {
				return
			}
			if booked {
				break
			}
		}
	}
}

// wait pauses for d; false when the clients are stopped.
func (b *bookers) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-b.done:
	}
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

// book books once and returns the number of the member that has acknowledged it, "" when it is not
// known whether it is booked: no answer, a status of 500 or more, or too many requests. A refusal
// is an error, and so is an acknowledgement that does not name its member.
//
// The member in the answer is the one that has booked, which a relay in front of it need not be.
func (b *bookers) book(member, key string) (by string, err error) {
	body := `{"clientOrderId":"` + key +
		`","accountId":1,"payReceive":"Pay","notional":1000,"fixedRate":4.25,` +
		`"effectiveDate":"2026-11-23",` +
		`"maturityDate":"2031-11-23","conventions":"USD-SOFR-1Y-ACT360"}`
	answer, err := b.http.Post("http://"+member+"/swaps", "application/json", strings.NewReader(body))
	if err != nil {
		return "", nil // the member was killed
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil, answer.StatusCode >= 500, answer.StatusCode == http.StatusTooManyRequests:
		return "", nil
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("booking %s: %d %s", key, answer.StatusCode, text)
	}
	if by = answer.Header.Get("X-Member"); by == "" {
		return "", fmt.Errorf("booking %s: the answer does not name a member: %s", key, text)
	}
	return by, nil
}

// fail notes a client's error; the first one counts.
func (b *bookers) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = err
		close(b.broken)
	}
}

// note counts an acknowledgement by a member of a booking that was sent at a time.
func (b *bookers) note(sent time.Time, by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first != nil && by != b.dead && sent.After(b.since) {
		b.first <- time.Now()
		b.first = nil
	}
	select {
	case b.acked <- struct{}{}:
	default:
	}
}

// errNoBooking ends a row when the cluster acknowledges no more bookings. When a client has failed,
// the error of stop has the reason.
var errNoBooking = errors.New("nothing is acknowledged")

// progress waits until n more bookings, or a few more than n, are acknowledged.
func (b *bookers) progress(n int) error {
	late := time.After(membersTimeout)
	for range n {
		select {
		case <-b.acked:
		case <-b.broken:
			return errNoBooking // stop returns the reason
		case <-late:
			return fmt.Errorf("%w for %v", errNoBooking, membersTimeout)
		}
	}
	return nil
}

// after kills a member. It returns how long it took from then until another member acknowledged a
// booking that was sent after the kill.
//
// The time begins before the kill, so it has the kill's own system call in it. One caller at a
// time.
func (b *bookers) after(kill func() error, dead string) (time.Duration, error) {
	begun := time.Now()
	first, err := b.watch(kill, dead)
	if err != nil {
		return 0, err
	}
	select {
	case then := <-first:
		return then.Sub(begun), nil
	case <-b.broken:
		return 0, errNoBooking // stop returns the reason
	case <-time.After(membersTimeout):
		return 0, fmt.Errorf("%w for %v", errNoBooking, membersTimeout)
	}
}

// watch kills a member and returns a channel for the time of that first acknowledgement. It holds
// the lock during the kill, so that no acknowledgement is noted between the kill and the start of
// the wait.
func (b *bookers) watch(kill func() error, dead string) (<-chan time.Time, error) {
	first := make(chan time.Time, 1)
	b.mu.Lock() // bookings that are acknowledged meanwhile were sent before
	defer b.mu.Unlock()
	if err := kill(); err != nil {
		return nil, err
	}
	b.since, b.dead, b.first = time.Now(), dead, first
	return first, nil
}
