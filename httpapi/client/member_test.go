package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
)

// nowhere is an address without a listener.
func nowhere(t *testing.T) string {
	t.Helper()
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	return ln.Addr().String()
}

// address is the address of the first member.
func (c *Client) address() string {
	at, _, _ := strings.Cut(strings.TrimPrefix(string(c.link.members[0]), "http://"), "/")
	return at
}

// TestNextMemberIsAsked: the client goes to the next member when the one in use cannot answer and
// the request may be sent again. Each member answers by its script; "" refuses connections.
func TestNextMemberIsAsked(t *testing.T) {
	noLeader := reply{503, `{"code":"NO_LEADER","sequenced":false,"leader":null}`}
	notLeader := reply{503, `{"code":"NOT_LEADER","sequenced":false,"leader":"2"}`}
	unsure := reply{503, `{"code":"NO_LEADER"}`}
	overloaded := reply{503, `{"code":"OVERLOADED","sequenced":false}`}
	unknown := reply{504, `{"code":"OUTCOME_UNKNOWN"}`}
	refused := reply{422, `{"code":"RISK_REFUSED"}`}
	cut, done := reply{}, reply{201, "{}"}
	keyed, bare := OrderRequest{ClientOrderID: "k"}, OrderRequest{}
	gone := []reply(nil)
	for _, tt := range []struct {
		name    string
		order   *OrderRequest
		retries int
		members [3][]reply // nil: it is gone
		asked   [3]int
		pauses  int
		ok      bool
	}{
		{"the first answers", &bare, 0, [3][]reply{{done}, {done}, {done}}, [3]int{1, 0, 0}, 0, true},
		{"the first is gone", &bare, 0, [3][]reply{gone, {done}, {done}}, [3]int{0, 1, 0}, 0, true},
		{"two are gone", &bare, 0, [3][]reply{gone, gone, {done}}, [3]int{0, 0, 1}, 0, true},
		{"all are gone", &bare, 0, [3][]reply{gone, gone, gone}, [3]int{}, 0, false},
		{"the first has no leader", &bare, 0, [3][]reply{{noLeader}, {done}, {done}},
			[3]int{1, 1, 0}, 0, true},
		{"the first leads no more", &bare, 0, [3][]reply{{notLeader}, {done}, {done}},
			[3]int{1, 1, 0}, 0, true},
		{"none has a leader", &bare, 0, [3][]reply{{noLeader}, {noLeader}, {notLeader}},
			[3]int{1, 1, 1}, 0, false},
		{"none has a leader, yet", &bare, 1, [3][]reply{{noLeader, done}, {noLeader}, gone},
			[3]int{2, 1, 0}, 1, true},
		{"not said to be safe", &bare, 2, [3][]reply{{unsure}, {done}, {done}},
			[3]int{1, 0, 0}, 0, false},
		{"not said to be safe, with a key", &keyed, 1, [3][]reply{{unsure, done}, {done}, {done}},
			[3]int{2, 0, 0}, 1, true},
		{"cut off", &bare, 2, [3][]reply{{cut}, {done}, {done}}, [3]int{1, 0, 0}, 0, false},
		{"cut off, with a key", &keyed, 0, [3][]reply{{cut}, {done}, {done}}, [3]int{1, 1, 0}, 0, true},
		{"unknown", &bare, 2, [3][]reply{{unknown}, {done}, {done}}, [3]int{1, 0, 0}, 0, false},
		{"unknown, with a key", &keyed, 1, [3][]reply{{unknown, done}, {done}, {done}},
			[3]int{2, 0, 0}, 1, true},
		{"overloaded is no reason to go", &bare, 1, [3][]reply{{overloaded, done}, {done}, {done}},
			[3]int{2, 0, 0}, 1, true},
		{"refused", &keyed, 2, [3][]reply{{refused}, {done}, {done}}, [3]int{1, 0, 0}, 0, false},
		{"unreadable", &keyed, 2, [3][]reply{{{201, "{"}}, {done}, {done}}, [3]int{1, 0, 0}, 0, false},
		{"gone, then cut off", &bare, 2, [3][]reply{gone, {cut}, {done}}, [3]int{0, 1, 0}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var scripts [3]*script
			var addresses [3]string
			for i, answers := range tt.members {
				scripts[i], addresses[i] = &script{}, nowhere(t)
				if answers != nil {
					var at *Client
					at, scripts[i] = scripted(t, Config{}, answers...)
					addresses[i] = at.address()
				}
			}
			pauses := 0
			c := New(Config{Address: addresses[0], Others: addresses[1:], Retries: tt.retries,
				Pause: func(context.Context, int) { pauses++ }})
			defer c.Close()
			_, err := c.CreateOrder(t.Context(), tt.order)
			if (err == nil) != tt.ok || pauses != tt.pauses {
				t.Errorf("%d pauses, want %d: %v", pauses, tt.pauses, err)
			}
			var bodies []string
			for i, s := range scripts {
				if got := s.requests(); len(got) != tt.asked[i] {
					t.Errorf("member %d was asked %d times, want %d", i+1, len(got), tt.asked[i])
				} else {
					bodies = append(bodies, got...)
				}
			}
			for _, body := range bodies {
				if body != bodies[0] || tt.order == &keyed && !strings.Contains(body, `"clientOrderId":"k"`) {
					t.Errorf("sent %s after %s", body, bodies[0])
				}
			}
		})
	}
}

// TestMemberThatAnsweredIsKept for the following requests, and is left when it is gone.
func TestMemberThatAnsweredIsKept(t *testing.T) {
	done := reply{201, "{}"}
	at, s := scripted(t, Config{}, done, done,
		reply{503, `{"code":"NO_LEADER","sequenced":false}`}, done)
	c := New(Config{Address: nowhere(t), Others: []string{at.address()},
		Pause: func(context.Context, int) {}})
	defer c.Close()
	for n := range 2 {
		if _, err := c.CreateOrder(t.Context(), &OrderRequest{}); err != nil ||
			len(s.requests()) != n+1 || c.link.at.Load() != 1 {
			t.Errorf("order %d: asked %d times, member %d: %v", n, len(s.requests()), c.link.at.Load(), err)
		}
	}
	// the other one is still gone
	if _, err := c.CreateOrder(t.Context(), &OrderRequest{}); err == nil || Unknown(err) {
		t.Errorf("%v", err)
	}
	if _, err := c.CreateOrder(t.Context(), &OrderRequest{}); err != nil {
		t.Error(err)
	}
}

// TestWhatWasNotSentIsNotUnknown. Neither is an answer that says so.
func TestWhatWasNotSentIsNotUnknown(t *testing.T) {
	c := New(Config{Address: nowhere(t), Retries: 1, Pause: func(context.Context, int) {}})
	defer c.Close()
	if _, err := c.CreateOrder(t.Context(), &OrderRequest{}); err == nil || Unknown(err) ||
		!errors.Is(err, errUnsent) {
		t.Errorf("%v", err)
	}
	var p *Problem
	c, _ = scripted(t, Config{}, reply{503, `{"code":"NOT_LEADER","sequenced":false,"leader":"3"}`})
	if _, err := c.CreateOrder(t.Context(), &OrderRequest{}); Unknown(err) || !errors.As(err, &p) ||
		p.Leader != "3" {
		t.Errorf("%v", err)
	}
}

// TestReportGoesToTheNextMember with the next call: a report streams, so it is not repeated.
func TestReportGoesToTheNextMember(t *testing.T) {
	at, _ := scripted(t, Config{}, reply{429, `{"code":"TOO_MANY_REQUESTS"}`})
	c := New(Config{Address: nowhere(t), Others: []string{at.address()}})
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var p *Problem
	if _, err := c.RegulatoryReport(ctx, 0, 0); err == nil || errors.As(err, &p) {
		t.Errorf("%v", err)
	}
	if _, err := c.RegulatoryReport(ctx, 0, 0); !errors.As(err, &p) || p.Status != 429 {
		t.Errorf("%v", err)
	}
}
