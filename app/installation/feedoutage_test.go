package installation

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/ring/must"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
)

// TestWithoutABrokerNothingIsAdmitted starts without NATS. Everything answers, changes are accepted
// and wait, and no order is admitted against a universe that may be old. When NATS comes,
// everything is delivered without an operator.
func TestWithoutABrokerNothingIsAdmitted(t *testing.T) {
	server := brokertest.ExternalWith(t, brokertest.Config{Stopped: true})
	data := t.TempDir()
	i := installFed(t, data, "nats.url", server.URL())
	for _, at := range [][2]string{
		{"order-matcher", "/health"}, {"trade-processor", "/health"}, {"account-service", "/health"},
		{"reference-data", "/health"},
		{"account-service", "/account/"}, {"reference-data", "/stocks"}, {"admin", "/healthz"},
	} {
		if status, body := requested(i, i.token, "GET", at[0], at[1], ""); status != http.StatusOK {
			t.Errorf("%s%s: %d %s", at[0], at[1], status, body)
		}
	}
	wantNothingAdmitted(t, i)
	postAccount(i, 777, true)
	if status := postStock(i, "ZZTOP", true, false); status != http.StatusCreated {
		t.Errorf("a new stock: %d", status)
	}
	postAccount(i, 2, false)
	apptest.Until(t, "rows wait", func() (bool, any) {
		_, text := requested(i, i.token, "GET", "admin", "/metrics", "")
		seen := strings.Contains(text, `svc_outbox_unpublished_rows{source="account"} 14`) &&
			strings.Contains(text, `svc_outbox_unpublished_rows{source="security"} 584`) &&
			!strings.Contains(text, `svc_outbox_publish_lag_seconds{source="account"} 0`+"\n") &&
			strings.Contains(text, `svc_replica_ready{source="account"} 0`) &&
			strings.Contains(text, `svc_replica_quarantine_total{reason="disconnected",source="account"}`)
		return seen, "not in /metrics"
	})
	if status, body := requested(i, "", "GET", "admin", "/readyz",
		""); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, `"source account"`) || !strings.Contains(body, `"source security"`) ||
		!strings.Contains(body, `"broker"`) {
		t.Errorf("readyz: %d %s", status, body)
	}
	wantNothingAdmitted(t, i)
	server.Restart()
	awaitFed(i)
	if got := refusalOf(i, 777, "ZZTOP"); got != "" {
		t.Errorf("an order of what came during the outage: %q", got)
	}
	if got := refusalOf(i, 2, "ZZTOP"); got != "ACCOUNT_DISABLED" {
		t.Errorf("an order of an account closed during the outage: %q", got)
	}
	wantStreams(t, i, 14, 584)
}

// wantStreams waits until the outboxes are empty. It checks that the streams hold each source's
// versions from 1, each once and in order.
func wantStreams(t *testing.T, i *installed, accounts, securities uint64) {
	t.Helper()
	for _, s := range control.Sources() {
		want := map[control.Source]uint64{control.Account: accounts, control.Security: securities}[s]
		stream, next := feeds.Stream{Broker: i.Beside.Load().broker, Source: s}, uint64(1)
		apptest.Until(t, "everything is on the stream", func() (bool, any) {
			n := i.Beside.Load().sources.feeds[s].Outbox.Unpublished()
			last, _, _, err := stream.Last(t.Context())
			return n == 0 && err == nil && last.MsgID == s.MsgID(want), fmt.Sprint(n, last.MsgID, err)
		})
		last, _, _, err := stream.Last(t.Context())
		must.OK(t, err)
		for at := uint64(1); at <= last.Sequence; at++ {
			m, found, err := stream.At(t.Context(), at)
			must.OK(t, err)
			d, err := control.ParseDelta(s, m.Data)
			if found && (err != nil || d.Version != next || m.MsgID != s.MsgID(next)) {
				t.Fatalf("%s: sequence %d is %s %+v, %v; want version %d", s, at, m.MsgID, d, err, next)
			}
			if found {
				next++
			}
		}
		if next != want+1 {
			t.Errorf("%s: %d versions on the stream, want %d", s, next-1, want)
		}
	}
}

// TestBrokerRestartsUnderTraffic stops and starts NATS while orders and changes come. When NATS is
// down for longer than the detection takes, no order is admitted. No change is lost.
func TestBrokerRestartsUnderTraffic(t *testing.T) {
	server := brokertest.External(t)
	i := installFed(t, t.TempDir(), "nats.url", server.URL())
	awaitFed(i)
	var changes, admitted, refused uint64
	end := during(t, func(ctx context.Context) {
		for ; ctx.Err() == nil; changes++ {
			postAccount(i, 4, changes%2 == 0)
			_, err := i.orders.CreateOrder(t.Context(), &client.OrderRequest{AccountID: 1,
				Security: "AAPL", Side: client.Buy, Quantity: 1,
				LimitPrice: 1_000_000})
			switch problem, ok := err.(*client.Problem); {
			case err == nil:
				admitted++
			case ok && problem.Reason == "CONTROL_STATE_STALE" && problem.NotSequenced():
				refused++
			default:
				t.Error(err)
			}
		}
	})
	for n := range 3 {
		before := feedStatus(i, control.Account)
		switch n {
		case 0:
			server.Stop()
		case 1:
			server.Cut()
		case 2:
			server.Stop()
			server.Cut()
		}
		apptest.Until(t, "the loss is noticed", func() (bool, any) {
			s := feedStatus(i, control.Account)
			return s.Quarantines[bootstrap.Disconnected] > before.Quarantines[bootstrap.Disconnected], s
		})
		if n != 1 {
			if i.Core.Gate.Ready() {
				t.Error("the gate is open without a broker")
			}
			server.Restart()
		}
		apptest.Until(t, "ready again", func() (bool, any) {
			return i.Core.Gate.Ready(), i.Core.Gate.Snapshot().Sources
		})
	}
	end()
	awaitFed(i)
	wantStreams(t, i, 12+changes, 583)
	if admitted == 0 || refused == 0 {
		t.Errorf("%d orders admitted, %d refused: the test has seen nothing", admitted, refused)
	}
	for _, s := range control.Sources() {
		for reason, n := range feedStatus(i, s).Quarantines {
			if reason != bootstrap.Disconnected && n > 0 {
				t.Errorf("source %s: %d quarantines for %s", s, n, reason)
			}
		}
	}
}

// TestBrokerHangs: the network passes nothing and closes no connection.
func TestBrokerHangs(t *testing.T) {
	server := brokertest.External(t)
	i := installFed(t, t.TempDir(), "nats.url", server.URL(), "risk.feed.max-silence-ms", "1500")
	awaitFed(i)
	server.Hang()
	postAccount(i, 777, true)
	apptest.Until(t, "the silence is noticed", func() (bool, any) {
		s, other := feedStatus(i, control.Account), feedStatus(i, control.Security)
		return s.Quarantines[bootstrap.Disconnected] > 0 && other.Quarantines[bootstrap.Disconnected] > 0,
			s
	})
	wantNothingAdmitted(t, i)
	server.Resume()
	awaitFed(i)
	awaitAdmission(i, 777, "AAPL", "")
	wantStreams(t, i, 13, 583)
	// A feed that is merely quiet does not count as one that hangs.
	before := feedStatus(i, control.Account)
	heard := before.LastHeard
	for range 8 { // heartbeats: together longer than the silence that is allowed
		apptest.Until(t, "a heartbeat", func() (bool, any) {
			s := feedStatus(i, control.Account)
			later := s.LastHeard.After(heard)
			if later {
				heard = s.LastHeard
			}
			return later, s
		})
	}
	if after := feedStatus(i, control.Account); quarantines(&after) != quarantines(&before) ||
		after.State != bootstrap.Ready {
		t.Errorf("quarantined without a reason: %+v", after)
	}
}

// TestFullStream: an operator has given a stream too little room. Rows wait, no old message is
// dropped for them, and the gate does not go on as if the rows did not exist.
func TestFullStream(t *testing.T) {
	server := brokertest.External(t)
	server.CreateStream(control.Account.Stream(), `{"name":"`+control.Account.Stream()+`",`+
		`"subjects":["`+control.Account.Subject()+`"],
		"storage":"file","retention":"limits","discard":"new","max_msgs":14,"num_replicas":1}`)
	i := installFed(t, t.TempDir(), "nats.url", server.URL(), "risk.feed.max-silence-ms", "1000")
	awaitFed(i)
	postAccount(i, 777, true)
	postAccount(i, 777, false)
	awaitFed(i)
	postAccount(i, 2, false)
	postAccount(i, 3, false)
	outbox := i.Beside.Load().sources.feeds[control.Account].Outbox
	apptest.Until(t, "rows wait", func() (bool, any) {
		return outbox.Unpublished() == 2, outbox.Unpublished()
	})
	apptest.Until(t, "the account's source does not stay ready while its changes wait",
		func() (bool, any) {
			s := feedStatus(i, control.Account)
			return s.Quarantines[bootstrap.Disconnected] > 0, s
		})
	// Its snapshot has the rows, and the stream is still full.
	awaitAdmission(i, 2, "AAPL", "ACCOUNT_DISABLED")
	if outbox.Unpublished() != 2 {
		t.Errorf("%d rows wait", outbox.Unpublished())
	}
	if s := feedStatus(i, control.Security); quarantines(&s) > 0 {
		t.Errorf("the other source has noticed: %+v", s)
	}
	server.DeleteMessage(control.Account.Stream(), 1)
	server.DeleteMessage(control.Account.Stream(), 2)
	awaitFed(i)
	apptest.Until(t, "the outbox is empty", func() (bool, any) {
		return outbox.Unpublished() == 0, outbox.Unpublished()
	})
	last, _, _, err := feeds.Stream{Broker: i.Beside.Load().broker,
		Source: control.Account}.Last(t.Context())
	if err != nil || last.MsgID != control.Account.MsgID(16) {
		t.Errorf("the stream ends with %s, %v", last.MsgID, err)
	}
}
