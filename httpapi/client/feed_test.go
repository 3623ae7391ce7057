package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"posttrade/ring/must"
)

// frames is a stream of events: each is an id, a kind and a document, with | between them.
func frames(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		part := strings.SplitN(e, "|", 3)
		fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: %s\n\n", part[0], part[1], part[2])
	}
	return b.String()
}

// feeding is a server whose connections send one text each and end, and a client of it. asked gets
// what each connection asked for: fromSeq, or the last ID. The last text stays open.
func feeding(t *testing.T, texts ...string) (c *Client, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	c = reporting(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/om/feed" || q.Get("topics") == "" ||
			r.Header.Get("Authorization") != "Bearer tok" {
			t.Errorf("asked %s", r.URL)
		}
		mu.Lock()
		all = append(all, q.Get("fromSeq")+r.Header.Get("Last-Event-ID")+q.Get("accountId"))
		n := len(all) - 1
		mu.Unlock()
		if n >= len(texts) {
			t.Errorf("connection %d", n+1)
			return
		}
		if code, busy := strings.CutPrefix(texts[n], "!"); busy {
			w.WriteHeader(map[string]int{"BUSY": 503, "FORBIDDEN": 403, "ARCHIVE_NEEDED": 503,
				"TOO_MANY_REQUESTS": 429, "REQUEST_TIMEOUT": 408}[code])
			_, _ = io.WriteString(w, `{"code":"`+code+`"}`)
			return
		}
		_, _ = io.WriteString(w, texts[n])
		_ = http.NewResponseController(w).Flush()
		if n == len(texts)-1 {
			<-r.Context().Done()
		}
	})
	c.link.pause = func(context.Context, int) {}
	return c, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

// TestFeedGoesOn: whatever ends the connections, the loop gets each event once and in order.
func TestFeedGoesOn(t *testing.T) {
	last := frames("9.1|price|{}")
	for _, tt := range []struct {
		name, from string
		texts      []string
		got, asked []string
	}{
		{"one connection", "", []string{frames("3.1|trade|1", "3.2|bbo|2") + last},
			[]string{"3.1 trade 1", "3.2 bbo 2"}, []string{""}},
		{"from a sequence, before the first event", "2", []string{"", frames("3.1|trade|1"), last},
			[]string{"3.1 trade 1"}, []string{"2", "2", "3.1"}},
		{"cut in the middle of an event", "2.7", []string{
			frames("3.1|trade|1") + "id: 3.2\nevent: trade\ndata: 2\n", frames("3.2|trade|2") + last},
			[]string{"3.1 trade 1", "3.2 trade 2"}, []string{"2.7", "3.1"}},
		{"an ID alone, then a mark", "", []string{"id: 4.s\n\n", frames("6.2|mark|{}"), last},
			[]string{"6.2 mark {}"}, []string{"", "4.s", "6.2"}},
		{"a mark without an ID", "2", []string{"event: mark\ndata: {}\n\n", last},
			[]string{" mark {}"}, []string{"2", "2"}},
		{"told that it was slow", "", []string{
			frames("3.1|trade|1") + "event: gone\ndata: {\"reason\":\"SLOW\"}\n\n", last},
			[]string{"3.1 trade 1"}, []string{"", "3.1"}},
		{"no room for a while", "3.1", []string{"!BUSY", "!BUSY", last}, nil,
			[]string{"3.1", "3.1", "3.1"}},
		{"asked to wait", "3.1", []string{"!TOO_MANY_REQUESTS", "!REQUEST_TIMEOUT", last}, nil,
			[]string{"3.1", "3.1", "3.1"}},
		{"snapshots come again", "", []string{frames("3.s|snapshot|a", "3.s|snapshot|b"),
			frames("3.s|snapshot|a"), frames("3.s|snapshot|a", "3.s|snapshot|b", "3.s|snapshot|c"),
			frames("3.s|snapshot|a", "3.s|snapshot|b", "3.s|snapshot|c", "4.1|book|d"), last},
			[]string{"3.s snapshot a", "3.s snapshot b", "3.s snapshot c", "4.1 book d"},
			[]string{"", "3.s", "3.s", "3.s", "4.1"}},
		{"a long line", "", []string{frames("3.1|trade|"+strings.Repeat("x", 1<<18)) + last},
			[]string{"3.1 trade " + strings.Repeat("x", 1<<18)}, []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, asked := feeding(t, tt.texts...)
			var got []string
			for e, err := range c.Feed(t.Context(), tt.from, "trades", "book:*") {
				must.OK(t, err)
				if e.Sequence() == 9 {
					break
				}
				got = append(got, e.ID+" "+e.Kind+" "+string(e.Data))
			}
			if !slices.Equal(got, tt.got) {
				t.Errorf("got %.200q, want %.200q", got, tt.got)
			}
			if a := asked(); !slices.Equal(a, tt.asked) {
				t.Errorf("asked for %q, want %q", a, tt.asked)
			}
		})
	}
}

// TestFeedEnds: what would be the same at the next try ends the loop, with the reason.
func TestFeedEnds(t *testing.T) {
	for _, tt := range []struct {
		name, text, code string
		answer           bool
	}{
		{"refused", "!FORBIDDEN", "FORBIDDEN", false},
		{"the token has expired", "event: gone\ndata: {\"reason\":\"TOKEN_EXPIRED\"}\n\n",
			"TOKEN_EXPIRED", false},
		{"refused, the history is in an archive", "!ARCHIVE_NEEDED", "ARCHIVE_NEEDED", false},
		{"the history is in an archive", "event: gone\ndata: {\"reason\":\"ARCHIVE_NEEDED\"}\n\n",
			"ARCHIVE_NEEDED", false},
		{"no stream of events", "<html>\n", "", true},
		{"an end without a reason", "event: gone\ndata: {\n\n", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := feeding(t, tt.text)
			pairs := 0
			for e, err := range c.Feed(t.Context(), "", "orders") {
				pairs++
				var p *Problem
				if errors.As(err, &p); (p == nil || p.Code != tt.code) && !tt.answer ||
					errors.Is(err, ErrAnswer) != tt.answer {
					t.Errorf("got %+v: %v", e, err)
				}
			}
			if pairs != 1 {
				t.Errorf("%d pairs, want the error alone", pairs)
			}
		})
	}
	t.Run("what it would send cannot be sent", func(t *testing.T) {
		there, _ := feeding(t)
		for _, tt := range []struct{ token, from, named string }{
			{"abc\n", "3.1", "the token"}, {"abc", "3.1\n", "the ID of the event"}} {
			c := New(Config{Address: there.address(), Token: tt.token})
			defer c.Close()
			var last error
			for _, err := range c.FeedOf(t.Context(), FeedQuery{From: tt.from, Topics: []string{"trades"},
				Lost: func(err error) { t.Fatalf("tried again after %v", err) }}) {
				last = err
			}
			if last == nil || !strings.Contains(last.Error(), tt.named) || Unknown(last) {
				t.Errorf("%q, %q: ended with %v", tt.token, tt.from, last)
			}
		}
	})
	t.Run("its context has ended", func(t *testing.T) {
		c, _ := feeding(t, frames("3.1|trade|1"))
		ctx, end := context.WithCancel(t.Context())
		defer end()
		var last error
		for _, err := range c.Feed(ctx, "", "trades") {
			last = err
			end()
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("ended with %v", last)
		}
	})
}

// TestFeedGoesToAnotherMember, and says why it has left the one before.
func TestFeedGoesToAnotherMember(t *testing.T) {
	there, asked := feeding(t, frames("3.2|trade|1"))
	c := New(Config{Address: nowhere(t), Others: []string{there.address()}, Prefix: "/om",
		Token: "tok", Pause: func(context.Context, int) {}})
	defer c.Close()
	account, lost := uint32(7), 0
	for e, err := range c.FeedOf(t.Context(), FeedQuery{Topics: []string{"trades"}, From: "3.1",
		AccountID: &account, Lost: func(error) { lost++ }}) {
		if err != nil || e.ID != "3.2" {
			t.Errorf("got %+v: %v", e, err)
		}
		break
	}
	if a := asked(); lost != 1 || !slices.Equal(a, []string{"3.17"}) {
		t.Errorf("lost %d connections, asked for %q", lost, a)
	}
}
