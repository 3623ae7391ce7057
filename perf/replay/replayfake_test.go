package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"posttrade/matcher/strictjson"
	"posttrade/perf/orderflow"
)

// fakeMatcher answers like an order-matcher, from a book in one slice. A test can make it
// misbehave.
type fakeMatcher struct {
	mu       sync.Mutex
	orders   []fakeOrder // resting, in priority order
	issued   int
	sequence uint64
	paths    map[string]int
	tokens   map[string]int

	busy     int            // answers 429 this many times
	unready  int            // then 503 with sequenced:false this many times
	refuse   map[int]string // account: risk reason
	broken   int            // status of every answer when not 0
	garbage  string         // body of every 2xx answer when not empty
	lag      int            // reads of the book that show an older sequence, unless they ask for one
	wanted   string         // the sequence that a read asks for
	shortBy  int            // answers missing from a batch
	hideBest bool           // the book omits its best bid
}

type fakeOrder struct {
	id, side      string
	account       int
	px            int64
	total, leaves int64
}

// fakeRequest is any request body.
type fakeRequest struct {
	ClientOrderID string      `json:"clientOrderId"`
	AccountID     int         `json:"accountId"`
	Security      string      `json:"security"`
	Side          string      `json:"side"`
	Quantity      int64       `json:"quantity"`
	LimitPrice    json.Number `json:"limitPrice"`
	Type          string      `json:"type"`
	TimeInForce   string      `json:"timeInForce"`
	Price         json.Number `json:"price"`
}

func startFake(t *testing.T, f *fakeMatcher) string {
	t.Helper()
	f.paths, f.tokens = map[string]int{}, map[string]int{}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL + "/prefix/"
}

func (f *fakeMatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	path := strings.TrimPrefix(r.URL.Path, "/prefix")
	f.paths[path]++
	f.tokens[r.Header.Get("Authorization")]++
	f.wanted = r.Header.Get("X-Min-Sequence")
	status, answer := f.answer(path, r.URL.Query().Get("depth"), body)
	if f.garbage != "" && status/100 == 2 {
		answer = f.garbage
	}
	w.WriteHeader(status)
	io.WriteString(w, answer)
}

func (f *fakeMatcher) answer(path, depth string, body []byte) (int, string) {
	switch {
	case f.broken != 0:
		return f.broken, `{"code":"BROKEN","detail":"as told"}`
	case f.busy > 0:
		f.busy--
		return 429, `{"code":"OVERLOADED"}`
	case f.unready > 0:
		f.unready--
		return 503, `{"code":"NOT_READY","sequenced":false}`
	case strings.HasPrefix(path, "/book/"):
		return 200, f.book(depth)
	case path == "/orders/batch":
		return f.batch(body)
	case path == "/prices":
		var requests []fakeRequest
		mustDecode(body, &requests)
		f.sequence++
		return 202, fmt.Sprintf(`{"accepted":%d,"sequence":%d}`, len(requests), f.sequence)
	}
	var request fakeRequest
	mustDecode(body, &request)
	switch {
	case path == "/orders":
		return f.create(&request)
	case path == "/trades":
		f.sequence++
		return 201, fmt.Sprintf(`{"tradeId":"trd-1","sequence":%d}`, f.sequence)
	}
	id, verb, _ := strings.Cut(strings.TrimPrefix(path, "/orders/"), "/")
	at := slices.IndexFunc(f.orders, func(o fakeOrder) bool { return o.id == id })
	if at < 0 {
		return 409, `{"code":"ORDER_TERMINAL"}`
	}
	f.sequence++
	o := &f.orders[at]
	switch verb {
	case "cancel":
		f.orders = slices.Delete(f.orders, at, at+1)
	case "replace":
		o.leaves -= o.total - request.Quantity
		o.total = request.Quantity
	}
	return 200, fmt.Sprintf(`{"orderId":%q,"status":"NEW","sequence":%d}`, id, f.sequence)
}

func mustDecode(body []byte, into any) {
	if len(body) == 0 {
		return
	}
	if err := json.Unmarshal(body, into); err != nil {
		panic(fmt.Sprintf("%s: %v", body, err))
	}
}

func (f *fakeMatcher) batch(body []byte) (int, string) {
	var requests []fakeRequest
	mustDecode(body, &requests)
	var answers []string
	for i := range requests {
		status, text := f.create(&requests[i])
		if status == 422 {
			text = strings.NewReplacer("422", `"REJECTED"`, `"reason"`, `"riskReason"`).Replace(text)
		}
		answers = append(answers, text)
	}
	return 201, "[" + strings.Join(answers[:len(answers)-f.shortBy], ",") + "]"
}

func (f *fakeMatcher) create(r *fakeRequest) (int, string) {
	f.sequence++
	f.issued++
	id := "ord-" + strconv.Itoa(f.issued)
	if reason := f.refuse[r.AccountID]; reason != "" {
		return 422, fmt.Sprintf(
			`{"status":422,"code":"RISK_REFUSED","orderId":%q,"reason":%q,"sequence":%d}`, id, reason,
			f.sequence)
	}
	px, _ := strictjson.ParseDecimal([]byte(r.LimitPrice))
	left := r.Quantity
	for left > 0 {
		at := -1
		for i, o := range f.orders {
			crosses := r.Type == "MARKET" || o.px == px || (r.Side == "Buy") == (o.px < px)
			nearer := at < 0 || o.px != f.orders[at].px && (r.Side == "Buy") == (o.px < f.orders[at].px)
			if o.side != r.Side && crosses && nearer {
				at = i
			}
		}
		if at < 0 {
			break
		}
		filled := min(left, f.orders[at].leaves)
		left -= filled
		if f.orders[at].leaves -= filled; f.orders[at].leaves == 0 {
			f.orders = slices.Delete(f.orders, at, at+1)
		}
	}
	if left > 0 && r.Type != "MARKET" && r.TimeInForce == "" {
		f.orders = append(f.orders, fakeOrder{id: id, side: r.Side, account: r.AccountID, px: px,
			total: r.Quantity, leaves: left})
	}
	return 201, fmt.Sprintf(`{"orderId":%q,"status":"NEW","sequence":%d}`, id, f.sequence)
}

func (f *fakeMatcher) book(depth string) string {
	levels, _ := strconv.Atoi(depth)
	sides := map[string]string{}
	for _, side := range []string{"Buy", "Sell"} {
		total := map[int64]int64{}
		for _, o := range f.orders {
			if o.side == side {
				total[o.px] += o.leaves
			}
		}
		var prices []int64
		for px := range total {
			prices = append(prices, px)
		}
		slices.Sort(prices)
		if side == "Buy" {
			slices.Reverse(prices)
			if f.hideBest && len(prices) > 0 {
				prices = prices[1:]
			}
		}
		var texts []string
		for _, px := range prices[:min(levels, len(prices))] {
			texts = append(texts, fmt.Sprintf(`{"price":%s,"quantity":%d,"orders":1}`,
				orderflow.AppendPrice(nil, px), total[px]))
		}
		sides[side] = "[" + strings.Join(texts, ",") + "]"
	}
	sequence := f.sequence
	if f.lag > 0 && sequence > 0 && f.wanted != strconv.FormatUint(uint64(sequence), 10) {
		f.lag--
		sequence--
		sides["Buy"] = "[]"
	}
	return fmt.Sprintf(`{"security":"X","sequence":%d,"bids":%s,"asks":%s}`, sequence, sides["Buy"],
		sides["Sell"])
}
