package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
)

// script is a server that answers with a list of replies, in order, and records the requests.
type script struct {
	mu      sync.Mutex
	answers []reply
	asked   []string
}

// reply is one answer. Status 0 closes the connection instead.
type reply struct {
	status int
	body   string
}

// ServeHTTP implements http.Handler.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = []byte(err.Error())
	}
	asked := fmt.Sprintf("%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("Authorization"), body)
	for _, name := range []string{"X-Auth-Master-Secret", "X-Reason", "X-Min-Sequence",
		"X-Min-Version", "X-Consistency"} {
		if value := r.Header.Get(name); value != "" {
			asked += " " + value
		}
	}
	next := s.next(asked)
	if next.status == 0 {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	w.WriteHeader(next.status)
	_, _ = io.WriteString(w, next.body) // a client that is gone has its own error
}

// next is the answer to what was asked.
func (s *script) next(asked string) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, asked)
	if len(s.answers) == 0 {
		return reply{599, "no more answers"}
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next
}

// requests are the requests so far.
func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// scripted returns a client of a scripted server.
func scripted(t *testing.T, cfg Config, answers ...reply) (*Client, *script) {
	t.Helper()
	s := &script{answers: answers}
	server := httptest.NewServer(s)
	cfg.Address = strings.TrimPrefix(server.URL, "http://")
	c := New(cfg)
	t.Cleanup(func() {
		c.Close()
		server.Close()
	})
	return c, s
}

func TestPrices(t *testing.T) {
	var p Price
	if err := json.Unmarshal([]byte("1.5"), &p); err != nil || p != 1_500_000 || p.String() != "1.5" {
		t.Errorf("%v %v", p, err)
	}
	if err := json.Unmarshal([]byte("null"), &p); err != nil || p != 0 {
		t.Errorf("%v %v", p, err)
	}
	if err := json.Unmarshal([]byte("1.0000001"), &p); err == nil {
		t.Error("7 decimals pass")
	}
}

// TestOnlyWhatIsSafeIsRepeated is the retry matrix.
func TestOnlyWhatIsSafeIsRepeated(t *testing.T) {
	safe := reply{503, `{"code":"OVERLOADED","sequenced":false}`}
	busy := reply{429, `{"code":"TOO_MANY_REQUESTS","sequenced":false}`}
	unknown := reply{504, `{"code":"OUTCOME_UNKNOWN"}`}
	journal := reply{503, `{"code":"JOURNAL_FAILED"}`}
	refused := reply{422, `{"code":"RISK_REFUSED","reason":"INVALID","sequence":5,"orderId":"ord-5"}`}
	cut := reply{}
	done := reply{201, "{}"}
	keyed := OrderRequest{ClientOrderID: "k"}
	var bare OrderRequest
	tests := []struct {
		name    string
		order   *OrderRequest
		answers []reply
		asked   int
		ok      bool
	}{
		{"safe, without a key", &bare, []reply{safe, busy, done}, 3, true},
		{"unknown, without a key", &bare, []reply{unknown, done}, 1, false},
		{"unknown, with a key", &keyed, []reply{unknown, journal, done}, 3, true},
		{"cut off, without a key", &bare, []reply{cut, done}, 1, false},
		{"cut off, with a key", &keyed, []reply{cut, done}, 2, true},
		{"refused", &keyed, []reply{refused, done}, 1, false},
		{"unreadable", &keyed, []reply{{201, "{"}, done}, 1, false},
		{"no problem document", &keyed, []reply{{400, "oops"}, done}, 1, false},
		{"too often", &keyed, []reply{safe, safe, safe, done}, 3, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pauses := 0
			c, s := scripted(t, Config{Retries: 2,
				Pause: func(_ context.Context, n int) { pauses += n }}, tt.answers...)
			_, err := c.CreateOrder(t.Context(), tt.order)
			if (err == nil) != tt.ok || len(s.requests()) != tt.asked {
				t.Errorf("asked %d times, want %d: %v", len(s.requests()), tt.asked, err)
			}
			if want := (tt.asked - 1) * tt.asked / 2; pauses != want {
				t.Errorf("paused %d, want %d", pauses, want)
			}
		})
	}
	t.Run("a batch needs a key in every order", func(t *testing.T) {
		c, s := scripted(t, Config{Retries: 2, Pause: func(context.Context, int) {}}, unknown,
			reply{201, "[]"})
		if _, err := c.CreateOrderBatch(t.Context(), []OrderRequest{keyed, bare}); err == nil ||
			len(s.requests()) != 1 {
			t.Errorf("asked %d times: %v", len(s.requests()), err)
		}
	})
}

func TestProblems(t *testing.T) {
	c, _ := scripted(t, Config{},
		reply{422,
			`{"status":422,"code":"RISK_REFUSED","reason":"INVALID","detail":"no","sequence":5,` +
				`"orderId":"ord-5"}`},
		reply{503, `{"code":"OVERLOADED","detail":"full","sequenced":false}`},
		reply{502, `<html>`})
	_, err := c.CreateOrder(t.Context(), &OrderRequest{})
	var p *Problem
	if !errors.As(err, &p) || p.Status != 422 || p.Reason != "INVALID" || p.Sequence != 5 ||
		p.OrderID != "ord-5" || Unknown(err) {
		t.Errorf("%#v", err)
	}
	if !strings.Contains(err.Error(), "422 RISK_REFUSED reason=INVALID") {
		t.Errorf("%v", err)
	}
	if _, err = c.CreateOrder(t.Context(), &OrderRequest{}); Unknown(err) ||
		err.Error() != "client: 503 OVERLOADED: full" {
		t.Errorf("%v", err)
	}
	if _, err = c.CreateOrder(t.Context(), &OrderRequest{}); !Unknown(err) {
		t.Errorf("%v", err)
	}
	if Unknown(nil) {
		t.Error("no error is unknown")
	}
}

func TestTimeoutIsUnknown(t *testing.T) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	c := New(Config{Address: ln.Addr().String(), Timeout: 20 * time.Millisecond})
	defer c.Close()
	if _, err := c.CreateOrder(t.Context(), &OrderRequest{}); !Unknown(err) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
