package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/ring/must"
)

// TestContextEndsTheRequest: when the caller's context ends, the method returns its error and the
// server sees the connection close. Nothing is repeated, and no other member is asked.
func TestContextEndsTheRequest(t *testing.T) {
	for _, tt := range []struct {
		name string
		ctx  func(t *testing.T, arrived <-chan struct{}) context.Context
		want error
	}{
		{"cancelled", func(t *testing.T, arrived <-chan struct{}) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-arrived; cancel() }()
			return ctx
		}, context.Canceled},
		{"past its deadline", func(t *testing.T, _ <-chan struct{}) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			arrived, gone := make(chan struct{}), make(chan struct{})
			busy := reporting(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then does the server look at the connection
				close(arrived)                     // a second request panics
				<-r.Context().Done()
				close(gone)
			})
			other, s := scripted(t, Config{})
			c := New(Config{Address: busy.address(), Others: []string{other.address()}, Retries: 3})
			defer c.Close()
			// Its clientOrderId would allow the client to send it again.
			_, err := c.CreateOrder(tt.ctx(t, arrived), &OrderRequest{ClientOrderID: "k"})
			if !errors.Is(err, tt.want) || !Unknown(err) {
				t.Errorf("%v", err)
			}
			select {
			case <-arrived:
				<-gone
			default: // the deadline was over before the connection
			}
			if len(s.requests()) != 0 || c.link.at.Load() != 0 {
				t.Errorf("asked another member %q", s.requests())
			}
		})
	}
}

// TestEndedContextSendsNothing, and says so.
func TestEndedContextSendsNothing(t *testing.T) {
	c, s := scripted(t, Config{Retries: 3})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Cancel(ctx, "ord-1"); !errors.Is(err, context.Canceled) || Unknown(err) ||
		len(s.requests()) != 0 {
		t.Errorf("%v after %q", err, s.requests())
	}
}

// TestWhatCannotBeSent is refused before it is sent, with an error that names it and has no secret.
// Another attempt or another member would change nothing, so there is none.
func TestWhatCannotBeSent(t *testing.T) {
	at, s := scripted(t, Config{}, reply{200, "{}"})
	for _, tt := range []struct{ token, reason, secret, named string }{
		{token: "abc\n", named: "the token"},
		{token: "abc\x00", named: "the token"},
		{token: "abc", reason: "r\nx", named: "the reason"},
		{token: "abc", reason: "r\x7fx", named: "the reason"},
		{token: "abc", secret: "abc\r", named: "the master secret"},
	} {
		c := New(Config{Address: at.address(), Others: []string{at.address()}, Token: tt.token,
			Retries: 3, Pause: func(context.Context, int) { t.Error("another attempt") }})
		defer c.Close()
		var err error
		if tt.secret != "" {
			_, err = c.DevToken(t.Context(), tt.secret, TokenRequest{})
		} else {
			_, err = c.Because(tt.reason).ForceSettlement(t.Context(), "trd-1")
		}
		if err == nil || Unknown(err) || !strings.Contains(err.Error(), tt.named) ||
			strings.Contains(err.Error(), "abc") || c.link.at.Load() != 0 || len(s.requests()) != 0 {
			t.Errorf("%+v: %v after %q", tt, err, s.requests())
		}
	}
	_, err := at.Because("r\tx, \u00e9").ForceSettlement(t.Context(), "trd-1")
	if err != nil || len(s.requests()) != 1 {
		t.Errorf("%v after %q", err, s.requests())
	}
}

// TestUnknownCountsEveryAttempt: a later attempt settles the outcome of an earlier one only when
// its answer stands for both.
func TestUnknownCountsEveryAttempt(t *testing.T) {
	cut, unknown := reply{}, reply{504, `{"code":"OUTCOME_UNKNOWN"}`}
	refused := reply{422, `{"code":"RISK_REFUSED","sequence":7}`}
	busy := reply{503, `{"code":"OVERLOADED","sequenced":false}`}
	for _, tt := range []struct {
		name    string
		answers []reply
		dials   int64 // further ones are refused; 0: none is
		ends    bool  // ctx ends in the pause
		unknown bool
		code    string
	}{
		{name: "cut off, then gone", answers: []reply{cut}, dials: 1, unknown: true},
		{name: "cut off, then ended", answers: []reply{cut}, ends: true, unknown: true},
		{name: "unknown, then ended", answers: []reply{unknown}, ends: true, unknown: true},
		{name: "cut off, then not sequenced", answers: []reply{cut, busy, busy}, unknown: true,
			code: "OVERLOADED"},
		{name: "cut off, then too fast", answers: []reply{cut, {429, `{"code":"TOO_MANY_REQUESTS"}`}},
			unknown: true, code: "TOO_MANY_REQUESTS"},
		{name: "cut off, then no token", answers: []reply{cut, {401, `{"code":"UNAUTHORIZED"}`}},
			unknown: true, code: "UNAUTHORIZED"},
		{name: "cut off, then decided", answers: []reply{cut, refused}, code: "RISK_REFUSED"},
		{name: "not sequenced, then decided", answers: []reply{busy, refused}, code: "RISK_REFUSED"},
		{name: "not sequenced, then ended", answers: []reply{busy}, ends: true},
		{name: "decided in the end", answers: []reply{cut, unknown, {201, "{}"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, _ := scripted(t, Config{}, tt.answers...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var dials atomic.Int64
			c := New(Config{Address: at.address(), Retries: 2,
				Pause: func(context.Context, int) {
					if tt.ends {
						cancel()
					}
				},
				Dial: func(ctx context.Context, address string) (net.Conn, error) {
					if n := dials.Add(1); tt.dials > 0 && n > tt.dials {
						return nil, errors.New("refused")
					}
					return new(net.Dialer).DialContext(ctx, "tcp", address)
				}})
			defer c.Close()
			_, err := c.CreateOrder(ctx, &OrderRequest{ClientOrderID: "k"})
			code := ""
			if p := (*Problem)(nil); errors.As(err, &p) {
				code = p.Code
			}
			if code != tt.code || Unknown(err) != tt.unknown {
				t.Errorf("unknown %v, want %v: %v", Unknown(err), tt.unknown, err)
			}
		})
	}
}

// TestContextEndsTheWait between two attempts.
func TestContextEndsTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	busy := reply{503, `{"code":"OVERLOADED","sequenced":false}`}
	c, s := scripted(t, Config{Retries: 9, Pause: func(ctx context.Context, _ int) {
		cancel()
		pause(ctx, 100) // a second, if ctx had not ended
	}}, busy, busy)
	_, err := c.Cancel(ctx, "ord-1")
	if err == nil || Unknown(err) || len(s.requests()) != 1 {
		t.Errorf("%v after %q", err, s.requests())
	}
}

// TestReadsShowWhatWasWritten: the headers of a Client that asks for more go with every read, also
// with one that streams, and a reason goes with every write.
func TestReadsShowWhatWasWritten(t *testing.T) {
	c, s := scripted(t, Config{}, reply{200, "{}"}, reply{200, "{}"}, reply{200, "{}"},
		reply{200, "{}"})
	ctx := t.Context()
	more := c.After(9).AfterVersion(8).Confirmed().Because("a test")
	_, err1 := more.Positions(ctx, PositionsQuery{})
	_, err2 := more.ForceSettlement(ctx, "trd-1")
	_, err3 := c.Because("once").Because("").ForceSettlement(ctx, "trd-1")
	file, err4 := more.Export(ctx, ExportQuery{Table: TablePositions})
	must.OK(t, errors.Join(err1, err2, err3, err4))
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	_, _ = c.Health(ctx) // itself unchanged
	want := []string{"GET /positions   9 8 confirmed",
		"POST /trades/trd-1/settlement/force   a test", "POST /trades/trd-1/settlement/force  ",
		"GET /positions   9 8 confirmed", "GET /health  "}
	for n, asked := range s.requests() {
		if asked != want[n] {
			t.Errorf("asked %q, want %q", asked, want[n])
		}
	}
}
