package installation

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/matcher"
	"posttrade/matcher/note"
	"posttrade/ring/must"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

var feedRepeats = flag.Int("feed.repeats", 10, "how often each fault of a control feed is provoked")

// deltaByHand is a possible delta of the source for account 5.
func deltaByHand(epoch, version uint64) []byte {
	d := control.Delta{Source: control.Account, Epoch: epoch, Version: version,
		Record: control.Record{ID: 5, Name: "Account 5", Enabled: true, Version: version}}
	return d.AppendJSON(nil)
}

// TestOtherHandsOnTheStream publishes on a source's stream messages that the source has not sent,
// again and again. Orders go on, neither source notices, the message is counted, and nothing waits
// for a change of the source. A start that finds such a message on the stream does not wait either.
func TestOtherHandsOnTheStream(t *testing.T) {
	server := brokertest.External(t)
	data := t.TempDir()
	i := installFed(t, data, "nats.url", server.URL())
	awaitFed(i)
	put := func(id string, payload []byte) {
		t.Helper()
		ack, err := i.Beside.Load().broker.Publish(t.Context(), control.Account.Subject(), payload,
			broker.PublishOptions{MsgID: id})
		must.OK(t, err)
		if ack.Duplicate {
			t.Fatalf("the stream has %q already", id)
		}
	}
	next := func(v uint64) string { return control.Account.MsgID(v + 1) }
	hands := []struct {
		name string
		put  func(epoch, version uint64)
	}{
		{"ahead", func(e, v uint64) { put("", deltaByHand(e, v+2)) }},
		{"the next one", func(e, v uint64) { put("", deltaByHand(e, v+1)) }},
		{"the next one under its id", func(e, v uint64) { put(next(v), deltaByHand(e, v+1)) }},
		{"far ahead under its id",
			func(e, v uint64) { put(control.Account.MsgID(v+1e6), deltaByHand(e, v+1e6)) }},
		{"behind", func(e, v uint64) { put("", deltaByHand(e, v-1)) }},
		{"the last version with other bytes",
			func(e, v uint64) { put("", append(deltaByHand(e, v), ' ')) }},
		{"another epoch", func(e, v uint64) { put("", deltaByHand(e+1, v+1)) }},
		{"an older epoch", func(e, v uint64) { put("", deltaByHand(e-1, v+1)) }},
		{"no JSON", func(uint64, uint64) { put("", []byte("\x00\xff")) }},
		{"nothing", func(uint64, uint64) { put("", nil) }},
		{"of the other source", func(e, v uint64) {
			d := control.Delta{Source: control.Security, Epoch: e, Version: v + 1,
				Record: control.Record{Ticker: "A", Name: "A", Version: v + 1}}
			put(control.Security.MsgID(v+1), d.AppendJSON(nil))
		}},
	}
	met, begin := 0, feedStatus(i, control.Account).Watermark
	for _, h := range hands {
		t.Run(h.name, func(t *testing.T) {
			for n := range *feedRepeats {
				// An order sees a change before the status says so, and the id of a version that the
				// stream has is no message of another hand.
				s := feedStatus(i, control.Account)
				apptest.Until(t, "both changes of each round are applied", func() (bool, any) {
					s = feedStatus(i, control.Account)
					return s.Watermark == begin+2*uint64(met), s
				})
				h.put(s.Epoch, s.Watermark)
				met++
				awaitForeign(i, met)
				if got := refusalOf(i, 4, "AAPL"); got != "" {
					t.Fatalf("round %d: an order: %q", n, got)
				}
				// The next change is in force, although its id may have been used.
				postAccount(i, 4, false)
				awaitAdmission(i, 4, "AAPL", "ACCOUNT_DISABLED")
				postAccount(i, 4, true)
				awaitAdmission(i, 4, "AAPL", "")
			}
		})
	}
	for _, s := range control.Sources() {
		if status := feedStatus(i, s); status.State != bootstrap.Ready || quarantines(&status) > 0 {
			t.Errorf("source %s has noticed: %+v", s, status)
		}
	}
	// The last of these is the stream's last message at the next start.
	s := feedStatus(i, control.Account)
	put("", deltaByHand(s.Epoch, s.Watermark+2))
	awaitForeign(i, met+1)
	i.stop()
	i = installFed(t, data, "nats.url", server.URL())
	awaitFed(i)
	awaitAdmission(i, 4, "AAPL", "")
	if status := feedStatus(i, control.Account); quarantines(&status) > 0 {
		t.Errorf("after a restart: %+v", status)
	}
}

// awaitForeign returns when the metrics show n messages that the source has not sent.
func awaitForeign(i *installed, n int) {
	i.t.Helper()
	want := fmt.Sprintf("svc_outbox_foreign_messages_total{source=%q} %d\n", control.Account, n)
	apptest.Until(i.t, want, func() (bool, any) {
		_, text := requested(i, "", "GET", "admin", "/metrics", "")
		return strings.Contains(text, want), feedStatus(i, control.Account)
	})
}

// TestLostConsumerHealsByItself deletes the replica's consumer again and again. Orders are refused
// until the source is complete again, which needs no change, and the other source does not notice.
func TestLostConsumerHealsByItself(t *testing.T) {
	server := brokertest.External(t)
	i := installFed(t, t.TempDir(), "nats.url", server.URL())
	awaitFed(i)
	for range *feedRepeats {
		before, other := feedStatus(i, control.Account), feedStatus(i, control.Security)
		if n := server.DeleteConsumers(control.Account.Stream()); n != 1 {
			t.Errorf("%d consumers of the stream", n)
		}
		apptest.Until(t, "the loss is noticed", func() (bool, any) {
			s := feedStatus(i, control.Account)
			return s.Quarantines[bootstrap.Disconnected] > before.Quarantines[bootstrap.Disconnected], s
		})
		awaitFed(i)
		awaitAdmission(i, 4, "AAPL", "")
		now := feedStatus(i, control.Security)
		if now.State != bootstrap.Ready || now.Watermark != other.Watermark ||
			fmt.Sprint(now.Quarantines) != fmt.Sprint(other.Quarantines) {
			t.Fatalf("the other source has noticed: %+v, before %+v", now, other)
		}
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

// wantNothingAdmitted sends every kind of admission, and checks that it is refused and that nothing
// is sequenced: nothing but notes, which put acts on record that were made before.
func wantNothingAdmitted(t *testing.T, i *installed) {
	t.Helper()
	before := i.Core.Journal.Answered()
	for _, a := range admissions {
		status, body := requested(i, i.token, "POST", "order-matcher", a.path, a.body)
		if status != http.StatusServiceUnavailable || !strings.Contains(body,
			`"reason":"CONTROL_STATE_STALE"`) || !strings.Contains(body, `"sequenced":false`) {
			t.Errorf("POST %s: %d %s", a.path, status, body)
		}
	}
	for _, c := range sequencedAfter(i, before) {
		if c.Type != matcher.OperatorNote {
			t.Errorf("command %d was sequenced, of type %v", c.InputSeq, c.Type)
		}
	}
	if status, body := requested(i, "", "GET", "admin", "/readyz",
		""); status != http.StatusServiceUnavailable || !strings.Contains(body, "source account") {
		t.Errorf("readyz: %d %s", status, body)
	}
}

// sequencedAfter are the commands behind a sequence, as far as they were answered at the call.
func sequencedAfter(i *installed, before uint64) (all []matcher.Command) {
	i.t.Helper()
	now := i.Core.Journal.Answered()
	if now == before {
		return nil
	}
	must.OK(i.t, i.Core.Journal.WaitHead(i.t.Context(), now))
	must.OK(i.t, i.Core.Journal.Commands(i.t.Context(), before+1, now,
		func(c []matcher.Command) error {
			all = append(all, c...)
			return nil
		}))
	return all
}

// TestNothingIsAdmittedWhileASourceIsNotReady closes the gate: it removes from the account's tables
// a change that its stream has, as a database does that was restored from a backup. The source
// stays out until an operator bumps its epoch.
func TestNothingIsAdmittedWhileASourceIsNotReady(t *testing.T) {
	server := brokertest.External(t)
	i := installFed(t, t.TempDir(), "nats.url", server.URL())
	awaitFed(i)
	postStock(i, "LATER", true, false)
	awaitAdmission(i, 1, "LATER", "")
	for range 3 {
		fed := feedStatus(i, control.Account).Watermark
		postAccount(i, 4, true) // as it is: the gate looks the same before the stream has the change
		apptest.Until(t, "the change is fed", func() (bool, any) {
			now := feedStatus(i, control.Account)
			return now.Watermark > fed, now
		})
		awaitFed(i)
		forgetLastChange(i)
		before := feedStatus(i, control.Account)
		server.DeleteConsumers(control.Account.Stream()) // the replica starts again
		apptest.Until(t, "the source is out", func() (bool, any) {
			now := feedStatus(i, control.Account)
			return now.Quarantines[bootstrap.VersionRegression] >
				before.Quarantines[bootstrap.VersionRegression], now
		})
		wantNothingAdmitted(t, i)
		// The other source goes on meanwhile.
		other := feedStatus(i, control.Security)
		postStock(i, "LATER", other.Watermark%2 == 0, false)
		apptest.Until(t, "the other source is applied", func() (bool, any) {
			now := feedStatus(i, control.Security)
			return now.State == bootstrap.Ready && now.Watermark == other.Watermark+1 &&
				quarantines(&now) == 0, now
		})
		wantNothingAdmitted(t, i)
		if _, err := i.Beside.Load().sources.Bump(t.Context(), control.Account,
			note.Note{}); err != nil {
			t.Fatal(err)
		}
		awaitFed(i)
		awaitAdmission(i, 4, "AAPL", "")
	}
}

// forgetLastChange removes the last change of an account from the database.
func forgetLastChange(i *installed) {
	i.t.Helper()
	if err := i.Beside.Load().Db.Write(i.t.Context(), func(tx *store.Tx) error {
		for _, edit := range []string{
			"delete from outbox where source = 'account' and version = (select version from sources where " +
				"source = 'account')",
			"update accounts set version = 1 where version = (select version from sources where source = " +
				"'account')",
			"update sources set version = version - 1 where source = 'account'",
		} {
			if _, err := tx.Exec(edit); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		i.t.Fatal(err)
	}
}
