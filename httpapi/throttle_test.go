package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWrongMasterSecretsAreThrottled: five wrong secrets are answered, then the address has to
// wait, with the right secret too; it is logged once, without the secret. Then it goes on.
func TestWrongMasterSecretsAreThrottled(t *testing.T) {
	r := newProcessorRig(t)
	wrong := map[string]string{headerMasterSecret: "planted-guess"}
	for range throttleAfter {
		r.mint(goodToken, wrong).want(t, 401, CodeUnauthorized)
	}
	r.now.Add(1500)
	for _, header := range []map[string]string{wrong, nil} {
		a := r.mint(goodToken, header).want(t, 429, CodeTooManyRequests)
		if wait := a.header.Get("Retry-After"); wait != "59" {
			t.Errorf("Retry-After %q", wait)
		}
	}
	if log := r.log.String(); strings.Count(log, "wrong master secrets") != 1 ||
		strings.Contains(log, "planted-guess") {
		t.Errorf("log: %s", log)
	}
	r.now.Add(58_500)
	r.mint(goodToken, wrong).want(t, 401, CodeUnauthorized) // counted from one again
	r.mint(goodToken, nil).want(t, 200, "")
	for range throttleAfter - 1 { // the right secret has cleared the address
		r.mint(goodToken, wrong).want(t, 401, CodeUnauthorized)
	}
	r.mint(goodToken, nil).want(t, 200, "")
}

// TestThrottleKnowsAddressesApart: one address does not close another; the hosts of one IPv6
// network are one.
func TestThrottleKnowsAddressesApart(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var th throttle
	for i := range throttleAfter {
		if closes := th.note(fmt.Sprintf("2001:db8::%x", i+1), now); closes != (i == throttleAfter-1) {
			t.Errorf("mistake %d closes: %v", i+1, closes)
		}
		th.note("10.0.0.1", now)
		th.note("", now)
	}
	for address, closed := range map[string]bool{
		"2001:db8::ffff": true, "2001:db8:0:1::1": false, "10.0.0.1": true, "10.0.0.2": false, "": true,
	} {
		if got := th.wait(address, now); (got > 0) != closed {
			t.Errorf("%q waits %s, want closed=%v", address, got, closed)
		}
	}
	if got := th.wait("10.0.0.1", now.Add(throttleFor)); got != 0 {
		t.Errorf("after its time it waits %s", got)
	}
}

// TestThrottleIsBounded: a flood of addresses takes no more than its places, and the newest
// mistakes are the ones that are remembered.
func TestThrottleIsBounded(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var th throttle
	address := func(i int) string { return fmt.Sprintf("10.%d.%d.1", i>>8, i&255) }
	for i := range 3 * throttleSlots {
		now = now.Add(time.Millisecond)
		for range throttleAfter {
			th.note(address(i), now)
		}
		if len(th.wrong) > throttleSlots {
			t.Fatalf("%d addresses", len(th.wrong))
		}
	}
	last := 3*throttleSlots - 1
	if th.wait(address(last), now) == 0 || th.wait(address(last-throttleSlots+1), now) == 0 ||
		th.wait(address(last-throttleSlots), now) != 0 {
		t.Error("not the newest addresses are remembered")
	}
	now = now.Add(throttleFor)
	if th.note("10.200.0.1", now); len(th.wrong) != 1 {
		t.Errorf("%d addresses are left when all are over", len(th.wrong))
	}
}
