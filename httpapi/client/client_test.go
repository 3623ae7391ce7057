package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/matcher"
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

func (s *script) handle(ctx *fasthttp.RequestCtx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := fmt.Sprintf("%s %s %s %s", ctx.Method(), ctx.RequestURI(),
		ctx.Request.Header.Peek("Authorization"), ctx.Request.Body())
	if secret := ctx.Request.Header.Peek("X-Auth-Master-Secret"); len(secret) > 0 {
		asked += " " + string(secret)
	}
	s.asked = append(s.asked, asked)
	if len(s.answers) == 0 {
		ctx.Error("no more answers", 599)
		return
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	if next.status == 0 {
		if err := ctx.Conn().Close(); err != nil {
			ctx.Error(err.Error(), 598)
		}
		return
	}
	ctx.SetStatusCode(next.status)
	ctx.SetBodyString(next.body)
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
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := fasthttp.Server{Handler: s.handle, Logger: quiet{}}
	done, waiting := make(chan error, 1), make(chan struct{})
	go func() { done <- server.Serve(&announced{Listener: ln, accepts: waiting}) }()
	cfg.Address = ln.Addr().String()
	c := New(cfg)
	t.Cleanup(func() {
		c.Close()
		<-waiting // a server that is shut down before it serves stays shut down
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c, s
}

// announced closes accepts when its server first waits for a connection.
type announced struct {
	net.Listener
	accepts chan struct{}
	once    sync.Once
}

func (a *announced) Accept() (net.Conn, error) {
	a.once.Do(func() { close(a.accepts) })
	return a.Listener.Accept()
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

const orderJSON = `{"orderId":"ord-7","clientOrderId":"a\"b","accountId":1,"security":"AAA",` +
	`"side":"Buy","type":"LIMIT",` +
	`"timeInForce":"IOC","quantity":10,"remainingQuantity":6,"limitPrice":100.5,"status":"CANCELED",` +
	`"riskReason":null,` +
	`"lastExecutionPrice":100.25,"lastFillQuantity":4,"createdAt":"2026-03-02T10:00:00.001Z",` +
	`"updatedAt":"2026-03-02T10:00:00.001Z",` +
	`"sequence":2,"later":[1,{}],"fills":[{"tradeId":"trd-1","price":100.25,"quantity":4,"later":1}]}`

func TestRequestsAreWhatTheInterfaceSays(t *testing.T) {
	account := uint32(1)
	order := OrderRequest{ClientOrderID: `a"b`, AccountID: 1, Security: "AAA", Side: matcher.Sell,
		Quantity:   10,
		LimitPrice: Units(100) + 500_000, Type: Limit, TimeInForce: IOC}
	tests := []struct {
		name   string
		call   func(c *Client) error
		status int
		answer string
		want   string
	}{
		{"create", func(c *Client) error { _, err := c.CreateOrder(&order); return err }, 201, orderJSON,
			`POST /om/orders Bearer tok {"accountId":1,"security":"AAA","side":"Sell","quantity":10,` +
				`"clientOrderId":"a\"b","limitPrice":100.5,"type":"LIMIT","timeInForce":"IOC"}`},
		{"batch", func(c *Client) error {
			_, err := c.CreateOrderBatch([]OrderRequest{{Security: "A", Quantity: 1, Type: Market}, {}})
			return err
		}, 201, "[" + orderJSON + "]",
			`POST /om/orders/batch Bearer tok [{"accountId":0,"security":"A","side":"Buy","quantity":1,` +
				`"type":"MARKET"},{"accountId":0,"security":"","side":"Buy","quantity":0}]`},
		{"trade", func(c *Client) error {
			_, err := c.BookMarketTrade(&TradeRequest{AccountID: 1, Security: "A", Quantity: 2})
			return err
		}, 201, `{}`,
			`POST /om/trades Bearer tok {"accountId":1,"security":"A","side":"Buy","quantity":2}`},
		{"cancel", func(c *Client) error { _, err := c.Cancel("ord-1"); return err }, 200, orderJSON,
			`POST /om/orders/ord-1/cancel Bearer tok `},
		{"replace", func(c *Client) error {
			_, err := c.Replace("ord-1", &ReplaceRequest{"é", 5, Units(7)})
			return err
		}, 200, orderJSON,
			`POST /om/orders/ord-1/replace Bearer tok {"quantity":5,"limitPrice":7,"clientOrderId":"é"}`},
		{"prices", func(c *Client) error {
			_, err := c.Prices([]PriceRequest{{"A", 1}, {"B", Units(2)}})
			return err
		}, 202, `{}`,
			`POST /om/prices Bearer tok [{"security":"A","price":0.000001},{"security":"B","price":2}]`},
		{"order", func(c *Client) error { _, err := c.Order("ord/1"); return err }, 200, orderJSON,
			`GET /om/orders/ord%2F1 Bearer tok `},
		{"orders", func(c *Client) error {
			_, err := c.Orders(OrdersQuery{"open", &account, "A&B", 5, "xyz"})
			return err
		}, 200, `{}`,
			`GET /om/orders?accountId=1&cursor=xyz&limit=5&security=A%26B&status=open Bearer tok `},
		{"positions", func(c *Client) error { _, err := c.Positions(PositionsQuery{}); return err }, 200,
			`{}`, `GET /om/positions Bearer tok `},
		{"book", func(c *Client) error { _, err := c.Book("BRK.B", 3); return err }, 200, `{}`,
			`GET /om/book/BRK.B?depth=3 Bearer tok `},
		{"blotter", func(c *Client) error { _, err := c.Blotter(9, 10); return err }, 200, `{}`,
			`GET /om/recon/trades/blotter?limit=10&sinceSeq=9 Bearer tok `},
		{"account", func(c *Client) error {
			_, err := c.RiskControlAccount(1, true)
			return err
		}, 200, `{}`,
			`POST /om/risk/control/account Bearer tok {"accountId":1,"enabled":true}`},
		{"security", func(c *Client) error {
			_, err := c.RiskControlSecurity("A", true, false)
			return err
		}, 200, `{}`,
			`POST /om/risk/control/security Bearer tok {"enabled":true,"halted":false,"security":"A"}`},
		{"restriction", func(c *Client) error {
			_, err := c.RiskControlRestriction("A", true)
			return err
		}, 200, `{}`,
			`POST /om/risk/control/restriction Bearer tok {"restricted":true,"security":"A"}`},
		{"policy", func(c *Client) error {
			_, err := c.RiskControlPolicy(Policy{1, true, 5, Units(1)})
			return err
		}, 200, `{}`,
			`POST /om/risk/control/policy Bearer tok {"policyVersion":1,"killSwitch":true,` +
				`"maxPositionQuantity":5,"maxConcentrationNotional":1}`},
		{"controls", func(c *Client) error { _, err := c.RiskControls(); return err }, 200, `{}`,
			`GET /om/risk/control/snapshot Bearer tok `},
		{"health", func(c *Client) error { _, err := c.Health(); return err }, 200, `{}`,
			`GET /om/health Bearer tok `},
		{"reindex", func(c *Client) error { _, err := c.Reindex(); return err }, 200, `{}`,
			`POST /om/recon/full-history/reindex Bearer tok `},
		{"history", func(c *Client) error { _, err := c.FullHistory(9, 10); return err }, 200, `{}`,
			`GET /om/recon/full-history/trades?limit=10&sinceSeq=9 Bearer tok `},
		{"dev token", func(c *Client) error {
			_, err := c.DevToken("master", TokenRequest{Subject: "a", TTLSeconds: 5})
			return err
		}, 200, `{}`,
			`POST /om/auth/dev-token Bearer tok {"subject":"a","accounts":[],"admin":false,` +
				`"ttlSeconds":5} master`},
		{"trades", func(c *Client) error {
			_, err := c.Trades(TradesQuery{&account, "A", "Settled", "2026-03-02", 5, "x"})
			return err
		}, 200, `{}`,
			`GET /om/trades?accountId=1&cursor=x&limit=5&security=A&settlementDate=2026-03-02&` +
				`status=Settled Bearer tok `},
		{"trade row", func(c *Client) error { _, err := c.TradeRow("trd-1"); return err }, 200, `{}`,
			`GET /om/trades/trd-1 Bearer tok `},
		{"force", func(c *Client) error { _, err := c.ForceSettlement("trd-1"); return err }, 200, `{}`,
			`POST /om/trades/trd-1/settlement/force Bearer tok `},
		{"recon", func(c *Client) error { _, err := c.ReconStatus(); return err }, 200,
			`{"lastSweepAt":null}`, `GET /om/recon/status Bearer tok `},
		{"breaks", func(c *Client) error {
			_, err := c.ReconBreaks("FIELD_MISMATCH", 3, "y")
			return err
		}, 200, `{}`,
			`GET /om/recon/breaks?class=FIELD_MISMATCH&cursor=y&limit=3 Bearer tok `},
		{"sweep", func(c *Client) error { _, err := c.OrphanSweep(); return err }, 200, `{}`,
			`POST /om/recon/orphan-sweep Bearer tok `},
		{"last sweep", func(c *Client) error { _, err := c.LastOrphanSweep(); return err }, 200, `{}`,
			`GET /om/recon/orphan-sweep/last Bearer tok `},
		{"tca", func(c *Client) error { _, err := c.TCAReport("trd-1"); return err }, 200,
			`{"twap":null,"slippageBps":null}`,
			`GET /om/tca/report/trd-1 Bearer tok `},
		{"summary", func(c *Client) error {
			_, err := c.TCASummary(TCAQuery{AccountID: &account, From: time.UnixMilli(1772445600001)})
			return err
		}, 200, `{}`, `GET /om/tca/summary?accountId=1&from=2026-03-02T10%3A00%3A00.001Z Bearer tok `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, s := scripted(t, Config{Prefix: "/om", Token: "tok"}, reply{tt.status, tt.answer},
				reply{500, "{}"}, reply{tt.status, "["})
			if err := tt.call(c); err != nil {
				t.Fatal(err)
			}
			if s.requests()[0] != tt.want {
				t.Errorf("asked %s\nwant  %s", s.requests()[0], tt.want)
			}
			var p *Problem
			if err := tt.call(c); !errors.As(err, &p) || p.Status != 500 || !Unknown(err) {
				t.Errorf("500: %v", err)
			}
			if err := tt.call(c); !errors.Is(err, ErrAnswer) {
				t.Errorf("an unreadable answer: %v", err)
			}
		})
	}
}

func TestOrderIsReadWhole(t *testing.T) {
	var o, standard Order
	if err := readOrder([]byte(orderJSON), &o); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(orderJSON), &standard); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", standard); got != want {
		t.Errorf("read %s\nencoding/json reads %s", got, want)
	}
	if err := readOrder([]byte(`{"createdAt":"yesterday"}`), &o); err == nil {
		t.Error("a time that is none passes")
	}
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
	done := reply{201, orderJSON}
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
			c, s := scripted(t, Config{Retries: 2, Pause: func(n int) { pauses += n }}, tt.answers...)
			_, err := c.CreateOrder(tt.order)
			if (err == nil) != tt.ok || len(s.requests()) != tt.asked {
				t.Errorf("asked %d times, want %d: %v", len(s.requests()), tt.asked, err)
			}
			if want := (tt.asked - 1) * tt.asked / 2; pauses != want {
				t.Errorf("paused %d, want %d", pauses, want)
			}
		})
	}
	t.Run("a batch needs a key in every order", func(t *testing.T) {
		c, s := scripted(t, Config{Retries: 2, Pause: func(int) {}}, unknown, reply{201, "[]"})
		if _, err := c.CreateOrderBatch([]OrderRequest{keyed, bare}); err == nil ||
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
	_, err := c.CreateOrder(&OrderRequest{})
	var p *Problem
	if !errors.As(err, &p) || p.Status != 422 || p.Reason != "INVALID" || p.Sequence != 5 ||
		p.OrderID != "ord-5" || Unknown(err) {
		t.Errorf("%#v", err)
	}
	if !strings.Contains(err.Error(), "422 RISK_REFUSED reason=INVALID") {
		t.Errorf("%v", err)
	}
	if _, err = c.CreateOrder(&OrderRequest{}); Unknown(err) ||
		err.Error() != "client: 503 OVERLOADED: full" {
		t.Errorf("%v", err)
	}
	if _, err = c.CreateOrder(&OrderRequest{}); !Unknown(err) {
		t.Errorf("%v", err)
	}
	if Unknown(nil) {
		t.Error("no error is unknown")
	}
}

func TestTimeoutIsUnknown(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := New(Config{Address: ln.Addr().String(), Timeout: 20 * time.Millisecond})
	defer c.Close()
	if _, err := c.CreateOrder(&OrderRequest{}); !Unknown(err) ||
		!errors.Is(err, fasthttp.ErrTimeout) {
		t.Errorf("%v", err)
	}
}
