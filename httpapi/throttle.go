package httpapi

import (
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Bounds of a throttle.
const (
	// An address that has sent throttleAfter wrong secrets has to wait until throttleFor has passed
	// since the last one. Its guesses meanwhile are not looked at.
	throttleAfter = 5           // wrong secrets
	throttleFor   = time.Minute // since the last of them
	throttleSlots = 1024        // addresses that are remembered, those of the oldest mistake go first
)

// throttle counts the wrong secrets of each address. Any goroutine may use it.
//
// The zero throttle is ready for use. It is in memory alone: a restart forgets it.
type throttle struct {
	mu    sync.Mutex
	wrong map[netip.Prefix]mistakes
}

// mistakes are the wrong secrets of one address.
type mistakes struct {
	count int
	until time.Time // when they are forgotten
}

// neighbours is what an address is counted as: an IPv6 caller has a whole /64 for itself. All that
// are no addresses, such as pipes, are counted as one.
func neighbours(address string) netip.Prefix {
	at, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 32
	if at.Is6() {
		bits = 64
	}
	net, _ := at.WithZone("").Prefix(bits) // the family has as many bits
	return net
}

// wait is how long an address must wait, 0 if it need not.
func (t *throttle) wait(address string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.wrong[neighbours(address)]; m.count >= throttleAfter && now.Before(m.until) {
		return m.until.Sub(now)
	}
	return 0
}

// note counts a wrong secret. It reports the one that closes the address.
//
// It is called for wrong secrets that were looked at, so a waiting address does not prolong its
// wait.
func (t *throttle) note(address string, now time.Time) (closes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := neighbours(address)
	m := t.wrong[key]
	if !now.Before(m.until) {
		m.count = 0
	}
	if t.wrong == nil {
		t.wrong = map[netip.Prefix]mistakes{}
	}
	if _, known := t.wrong[key]; !known && len(t.wrong) >= throttleSlots {
		t.forget(now)
	}
	m.count++
	m.until = now.Add(throttleFor)
	t.wrong[key] = m
	return m.count == throttleAfter
}

// forget makes room: it drops what is over, or else the address whose last mistake is the oldest.
//
// It goes through all of them, at most throttleSlots. The caller holds mu.
func (t *throttle) forget(now time.Time) {
	var oldest netip.Prefix
	var until time.Time
	for key, m := range t.wrong {
		if !now.Before(m.until) {
			delete(t.wrong, key)
		} else if until.IsZero() || m.until.Before(until) {
			oldest, until = key, m.until
		}
	}
	if len(t.wrong) >= throttleSlots {
		delete(t.wrong, oldest)
	}
}

// right forgets the mistakes of an address that knows the secret.
func (t *throttle) right(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.wrong, neighbours(address))
}

// problemThrottled is the answer to an address that has sent too many wrong secrets.
var problemThrottled = problem{status: 429, code: CodeTooManyRequests,
	detail: "too many wrong secrets from this address: wait as Retry-After says"}

// throttled writes the answer with the time to wait, in whole seconds. It has written the answer
// itself, for the header, and returns no problem.
func (v *serviceRequest) throttled(wait time.Duration) problem {
	problemThrottled.write(v.ctx)
	seconds := int64((wait + time.Second - 1) / time.Second)
	v.ctx.Response.Header.SetCanonical(headerRetryAfter, strconv.AppendInt(nil, seconds, 10))
	return problem{}
}
