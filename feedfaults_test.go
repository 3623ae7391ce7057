package main

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
)

var feedRepeats = flag.Int("feed.repeats", 10, "how often each fault of a control feed is provoked")

// publishByHand puts bytes on a source's stream behind the source's back.
func publishByHand(i *installed, s control.Source, payload []byte) {
	i.t.Helper()
	if _, err := i.beside.Load().broker.Publish(i.t.Context(), s.Subject(), payload, broker.PublishOptions{}); err != nil {
		i.t.Fatal(err)
	}
}

// deltaByHand is what the source might say of account 5.
func deltaByHand(epoch, version uint64) []byte {
	d := control.Delta{Source: control.Account, Epoch: epoch, Version: version,
		Record: control.Record{ID: 5, Name: "Account 5", Enabled: true, Version: version}}
	return d.AppendJSON(nil)
}

// TestFaultsOnTheStream provokes every fault that a stream can have, again and
// again, on a real one: the reason is right, orders are refused until the source
// is whole again, which it becomes by itself, and the other source does not notice.
func TestFaultsOnTheStream(t *testing.T) {
	server := brokertest.External(t)
	i := installFed(t, t.TempDir(), "nats.url", server.URL())
	awaitFed(i)
	faults := []struct {
		name    string
		reason  bootstrap.Reason
		provoke func(epoch, version uint64)
	}{
		{"gap", bootstrap.Gap, func(e, v uint64) { publishByHand(i, control.Account, deltaByHand(e, v+2)) }},
		{"regression", bootstrap.VersionRegression, func(e, v uint64) { publishByHand(i, control.Account, deltaByHand(e, v-1)) }},
		{"the last version with other bytes", bootstrap.VersionRegression, func(e, v uint64) {
			publishByHand(i, control.Account, append(deltaByHand(e, v), ' '))
		}},
		{"another epoch", bootstrap.EpochChange, func(e, v uint64) { publishByHand(i, control.Account, deltaByHand(e+1, v+1)) }},
		{"an older epoch", bootstrap.EpochChange, func(e, v uint64) { publishByHand(i, control.Account, deltaByHand(e-1, v+1)) }},
		{"no JSON", bootstrap.Malformed, func(uint64, uint64) { publishByHand(i, control.Account, []byte("\x00\xff")) }},
		{"nothing", bootstrap.Malformed, func(uint64, uint64) { publishByHand(i, control.Account, nil) }},
		{"of the other source", bootstrap.Malformed, func(e, v uint64) {
			d := control.Delta{Source: control.Security, Epoch: e, Version: v + 1, Record: control.Record{Ticker: "A", Name: "A", Version: v + 1}}
			publishByHand(i, control.Account, d.AppendJSON(nil))
		}},
		{"the consumer is deleted", bootstrap.Disconnected, func(uint64, uint64) {
			if n := server.DeleteConsumers(control.Account.Stream()); n != 1 {
				t.Errorf("%d consumers of the stream", n)
			}
		}},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			for n := range *feedRepeats {
				provokeFault(t, i, f.reason, n, f.provoke)
			}
		})
	}
}

// provokeFault does something to the account's feed and sees what must follow.
func provokeFault(t *testing.T, i *installed, want bootstrap.Reason, n int, provoke func(epoch, version uint64)) {
	t.Helper()
	before, other := feedStatus(i, control.Account), feedStatus(i, control.Security)
	provoke(before.Epoch, before.Watermark)
	until(t, string(want), func() (bool, any) {
		s := feedStatus(i, control.Account)
		return s.Quarantines[want] > before.Quarantines[want], s
	})
	// What follows may be another fault, of the stream's new last message; but not this soon.
	if after := feedStatus(i, control.Account); quarantines(&after) == quarantines(&before)+1 && after.LastReason != want {
		t.Errorf("round %d: the reason is %s, want %s: %s", n, after.LastReason, want, after.Detail)
	}
	// Two changes more, and the source's own word is the last on the stream again.
	postAccount(i, 4, n%2 == 0)
	postAccount(i, 4, n%2 == 1)
	awaitFed(i)
	until(t, "the sequence goes on", func() (bool, any) {
		s := feedStatus(i, control.Account)
		return s.State == bootstrap.Ready && s.Watermark == before.Watermark+2, s
	})
	now := feedStatus(i, control.Security)
	if now.State != bootstrap.Ready || now.Epoch != other.Epoch || now.Watermark != other.Watermark ||
		fmt.Sprint(now.Quarantines) != fmt.Sprint(other.Quarantines) || now.Applied != other.Applied {
		t.Fatalf("the other source has noticed: %+v, before %+v", now, other)
	}
	if got, want := admission(i, 4, "AAPL"), map[bool]string{true: "", false: "ACCOUNT_DISABLED"}[n%2 == 1]; got != want {
		t.Errorf("round %d: an order afterwards: %q, want %q", n, got, want)
	}
}

func quarantines(s *bootstrap.Status) (n uint64) {
	for _, of := range s.Quarantines {
		n += of
	}
	return n
}

// admissions are one request of each kind that puts something into the engine.
var admissions = []struct{ path, body string }{
	{"/orders", buyOrder},
	{"/orders", `{"accountId":777,"security":"NONE","side":"Buy","quantity":1,"limitPrice":1}`},
	{"/orders/batch", "[" + buyOrder + "," + sellOrder + "]"},
	{"/trades", `{"accountId":1,"security":"AAPL","side":"Buy","quantity":1}`},
}

// wantNothingAdmitted sends every kind of admission and sees it refused, and
// nothing sequenced.
func wantNothingAdmitted(t *testing.T, i *installed) {
	t.Helper()
	before := i.core.journal.Durable()
	for _, a := range admissions {
		status, body := requested(i, i.token, "POST", "order-matcher", a.path, a.body)
		if status != http.StatusServiceUnavailable || !strings.Contains(body, `"reason":"CONTROL_STATE_STALE"`) || !strings.Contains(body, `"sequenced":false`) {
			t.Errorf("POST %s: %d %s", a.path, status, body)
		}
	}
	if now := i.core.journal.Durable(); now != before {
		t.Errorf("%d commands were sequenced", now-before)
	}
	if status, body := requested(i, "", "GET", "admin", "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "source account") {
		t.Errorf("readyz: %d %s", status, body)
	}
}

// TestNothingIsAdmittedWhileASourceIsNotReady closes the gate by a message that
// somebody else has put on the account's stream: the source cannot have caught up
// with it before it has given as many versions itself.
func TestNothingIsAdmittedWhileASourceIsNotReady(t *testing.T) {
	i := installFed(t, t.TempDir())
	awaitFed(i)
	postStock(i, "LATER", true, false)
	awaitAdmission(i, 1, "LATER", "")
	for range 3 {
		s := feedStatus(i, control.Account)
		publishByHand(i, control.Account, deltaByHand(s.Epoch, s.Watermark+2))
		until(t, "the gap is found", func() (bool, any) {
			now := feedStatus(i, control.Account)
			return now.Quarantines[bootstrap.Gap] > s.Quarantines[bootstrap.Gap], now
		})
		wantNothingAdmitted(t, i)
		// The other source goes on meanwhile.
		other := feedStatus(i, control.Security)
		postStock(i, "LATER", other.Watermark%2 == 0, false)
		until(t, "the other source is applied", func() (bool, any) {
			now := feedStatus(i, control.Security)
			return now.State == bootstrap.Ready && now.Watermark == other.Watermark+1 && quarantines(&now) == 0, now
		})
		wantNothingAdmitted(t, i)
		postAccount(i, 4, true)
		postAccount(i, 4, true)
		awaitFed(i)
		awaitAdmission(i, 4, "AAPL", "")
	}
}
