package installation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/app/apptest"
)

// readerSelection is what an outside reader asks for, and what it must get by the documents alone.
type readerSelection struct {
	books, bbos []string // tickers, or "*"
	topics      []string
	account     int // narrows orders, own fills and contracts; 0: none
}

// randomSelection always has prices: the last event of a test is one.
func randomSelection(random *rand.Rand) (s readerSelection) {
	some := [][]string{nil, {"AAPL"}, {"AAPL", "MSFT"}, {"*"}}
	s.books, s.bbos = some[random.IntN(len(some))], some[random.IntN(len(some))]
	s.topics = []string{"prices"}
	for _, topic := range []string{"trades", "orders", "controls", "contracts"} {
		if random.IntN(2) == 0 {
			s.topics = append(s.topics, topic)
		}
	}
	if random.IntN(3) == 0 {
		s.account = 1 + random.IntN(4)
	}
	return s
}

func (s *readerSelection) query() string {
	topics := slices.Clone(s.topics)
	for _, ticker := range s.books {
		topics = append(topics, "book:"+ticker)
	}
	for _, ticker := range s.bbos {
		topics = append(topics, "bbo:"+ticker)
	}
	query := "topics=" + strings.Join(topics, ",")
	if s.account > 0 {
		query += "&accountId=" + strconv.Itoa(s.account)
	}
	return query
}

// has reports that an event of the whole stream belongs to the selection.
func (s *readerSelection) has(e *sseEvent) bool {
	of := func(tickers []string) bool {
		return slices.Contains(tickers, "*") || slices.Contains(tickers, fmt.Sprint(e.body["security"]))
	}
	account, owned := e.body["accountId"].(float64)
	mine := s.account == 0 || int(account) == s.account
	switch {
	case e.kind == "book":
		return of(s.books)
	case e.kind == "bbo":
		return of(s.bbos)
	case e.kind == "trade" && !owned:
		return slices.Contains(s.topics, "trades")
	case e.kind == "trade", e.kind == "order":
		return slices.Contains(s.topics, "orders") && mine
	case e.kind == "contract":
		return slices.Contains(s.topics, "contracts") && mine
	}
	return slices.Contains(s.topics, e.kind+"s")
}

// place is an id as a place in the history.
type place struct{ sequence, n uint64 }

func placeOf(t testing.TB, id string) place {
	t.Helper()
	sequence, n, ok := strings.Cut(id, ".")
	p := place{n: math.MaxUint64}
	var err, bad error
	p.sequence, err = strconv.ParseUint(sequence, 10, 64)
	if n != "s" {
		p.n, bad = strconv.ParseUint(n, 10, 64)
	}
	if !ok || err != nil || bad != nil {
		t.Errorf("the id %q is no place", id)
	}
	return p
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.sequence, q.sequence), cmp.Compare(p.n, q.n))
}

// feedReader is an outside reader that comes and goes.
type feedReader struct {
	t      *testing.T
	name   string
	random *rand.Rand
	base   func() string // of a server, another one each time
	token  string
	s      readerSelection
	from   string // fromSeq; empty: from the head

	start, last string // where it begins, and where it is
	snapshots   []sseEvent
	events      []string
	connections int
}

// run reads until the event that is the last one. stall returns when a reader that has stopped
// reading may go on.
func (r *feedReader) run(last func(e *sseEvent) bool, stall func()) {
	if r.from != "" {
		r.start = r.from + ".s"
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.Now().Add(4 * apptest.Patience)
	for !r.connection(last, stall) {
		if r.t.Failed() {
			return
		}
		if time.Now().After(late) {
			r.t.Errorf("%s: no end after %d events, behind %s", r.name, len(r.events), r.last)
			return
		}
		<-tick.C
	}
}

// connection reads for a while; done: the last event has come.
func (r *feedReader) connection(last func(e *sseEvent) bool, stall func()) (done bool) {
	query := r.s.query()
	if r.last == "" && r.from != "" {
		query += "&fromSeq=" + r.from
	}
	s, err := dialFeed(r.base(), r.token, query, r.last)
	if err != nil {
		if !errors.Is(err, errFeedLater) {
			r.t.Errorf("%s: %v", r.name, err)
		}
		return false
	}
	r.connections++
	defer s.cancel()
	late := time.AfterFunc(apptest.Patience, s.cancel)
	defer late.Stop()
	again := r.last
	for left := r.random.IntN(300); left >= 0; left-- {
		if left == 0 && r.random.IntN(3) == 0 {
			stall()
			left = r.random.IntN(3000)
		}
		e, err := s.read()
		if r.start == "" {
			r.start = s.firstID
		}
		if r.last = s.lastID; err != nil || e.kind == "gone" {
			return false
		}
		switch {
		case e.kind == "mark":
			continue
		case e.kind == "snapshot":
			if e.id == again && len(r.snapshots) > 0 { // those of several books come again
				again, r.snapshots = "", nil
			}
			r.snapshots = append(r.snapshots, e)
			continue
		}
		r.events = append(r.events, e.text())
		if last(&e) {
			return true
		}
	}
	return false
}

// errFeedLater: the server is gone, or says that it will have the feed later.
var errFeedLater = errors.New("the feed is not there now")

// dialFeed opens a feed of a server that may be gone.
func dialFeed(base, token, query, lastID string) (*sse, error) {
	request, err := http.NewRequest("GET", base+"/feed?"+query, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := feedClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFeedLater, err)
	}
	if answer.StatusCode != 200 {
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		err := fmt.Errorf("feed %s behind %q: %d %s", query, lastID, answer.StatusCode, text)
		if answer.StatusCode == 503 {
			err = fmt.Errorf("%w: %w", errFeedLater, err)
		}
		return nil, err
	}
	return newSSE(answer, lastID), nil
}

// outsideBook is a book that is built from the feed's events.
type outsideBook map[string]map[string]any // by side and price: the level

// outsideBooks are all of them, by ticker.
type outsideBooks map[string]outsideBook

func (o outsideBooks) apply(e *sseEvent) {
	ticker := fmt.Sprint(e.body["security"])
	switch e.kind {
	case "snapshot":
		o[ticker] = outsideBook{}
		for side, name := range map[string]string{"Buy": "bids", "Sell": "asks"} {
			for _, level := range e.body[name].([]any) {
				l := level.(map[string]any)
				o[ticker][fmt.Sprint(side, l["price"])] = l
			}
		}
	case "book":
		if o[ticker] == nil {
			o[ticker] = outsideBook{}
		}
		at := fmt.Sprint(e.body["side"], e.body["price"])
		if e.body["quantity"].(float64) == 0 {
			delete(o[ticker], at)
			return
		}
		o[ticker][at] = map[string]any{"price": e.body["price"], "quantity": e.body["quantity"],
			"orders": e.body["orders"]}
	}
}

// text is the book of a ticker in one line, the same for equal books.
func (o outsideBooks) text(ticker string) string {
	var levels []string
	for at, l := range o[ticker] {
		levels = append(levels, fmt.Sprint(at, ":", l["quantity"], "/", l["orders"]))
	}
	slices.Sort(levels)
	return strings.Join(levels, " ")
}

// bookText is a document of GET /book as such a line.
func bookText(t testing.TB, document []byte) (ticker string, sequence uint64, text string) {
	t.Helper()
	e := sseEvent{kind: "snapshot"}
	if err := json.Unmarshal(document, &e.body); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	books := outsideBooks{}
	books.apply(&e)
	ticker = fmt.Sprint(e.body["security"])
	return ticker, uint64(e.body["sequence"].(float64)), books.text(ticker)
}

// finish is the price that ends a test, and whether it was sent.
const finish = 77

func isFinish(e *sseEvent) bool { return e.has("price", "price", finish) }

// phases lets readers that stall wait for the next kill.
type phases struct {
	now  atomic.Int64
	over atomic.Bool
}

func (p *phases) stall() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for begun := p.now.Load(); p.now.Load() == begun && !p.over.Load(); {
		<-tick.C
	}
}
