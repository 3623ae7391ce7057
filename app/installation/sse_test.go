package installation

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/ring/must"
)

// sse is an outside reader of the feed: it knows server-sent events and nothing of the product.
type sse struct {
	t      testing.TB
	answer *http.Response
	lines  *bufio.Reader
	// The IDs that the stream has named first and last; lastID begins as the one that was asked for.
	firstID, lastID string
	cancel          func()
}

// sseEvent is one event as a browser would dispatch it.
type sseEvent struct {
	id, kind string
	data     string
	body     map[string]any
}

// feedClient has no time-out, and trusts any certificate.
var feedClient = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// tryFeed asks for a feed; the answer may be any.
func tryFeed(t testing.TB, base, token, query, lastID string) *http.Response {
	t.Helper()
	request := must.Get(http.NewRequest("GET", base+"/feed?"+query, nil))(t)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	answer := must.Get(feedClient.Do(request))(t)
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// openFeed opens a feed that must begin.
func openFeed(t testing.TB, base, token, query, lastID string) *sse {
	t.Helper()
	answer := tryFeed(t, base, token, query, lastID)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("feed %s: %d %s", query, answer.StatusCode, text)
	}
	s := newSSE(answer, lastID)
	s.t = t
	return s
}

func newSSE(answer *http.Response, lastID string) *sse {
	return &sse{answer: answer, lines: bufio.NewReader(answer.Body), lastID: lastID,
		cancel: func() { answer.Body.Close() }}
}

// read returns the next event. An error is the end of the stream.
func (s *sse) read() (e sseEvent, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line != "\n" && name == "id":
			e.id = value
		case name == "event":
			e.kind = value
		case name == "data":
			e.data += value
		case line != "\n":
			return e, fmt.Errorf("line %q", line)
		default:
			s.lastID = cmp.Or(e.id, s.lastID)
			s.firstID = cmp.Or(s.firstID, e.id)
			if e.data != "" { // else it sets the id only
				return e, json.Unmarshal([]byte(e.data), &e.body)
			}
			e = sseEvent{}
		}
	}
}

// next returns the next event that is no mark.
func (s *sse) next() sseEvent {
	s.t.Helper()
	late := time.AfterFunc(apptest.Patience, s.cancel)
	defer late.Stop()
	for {
		e, err := s.read()
		if err != nil {
			s.t.Fatalf("the stream ended behind %s: %v", s.lastID, err)
		}
		if e.kind != "mark" {
			return e
		}
	}
}

// until returns the events up to the first that is the last one wanted.
func (s *sse) until(last func(e *sseEvent) bool) (all []sseEvent) {
	s.t.Helper()
	for {
		e := s.next()
		if all = append(all, e); last(&e) {
			return all
		}
	}
}

// text is an event in one line.
func (e *sseEvent) text() string { return e.id + " " + e.kind + " " + e.data }

// has reports that the event's document holds these members.
func (e *sseEvent) has(kind string, nameValue ...any) bool {
	if e.kind != kind {
		return false
	}
	for i := 0; i+1 < len(nameValue); i += 2 {
		if fmt.Sprint(e.body[nameValue[i].(string)]) != fmt.Sprint(nameValue[i+1]) {
			return false
		}
	}
	return true
}
