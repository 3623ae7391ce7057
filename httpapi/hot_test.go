package httpapi

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"posttrade/httpapi/client"
	"posttrade/ring/must"
)

// bench is a handler in front of a desk that decides at once: the engine runs on the goroutine that
// the handler waits for. So a benchmark measures this package and the desk only.
type bench struct {
	rig *rig
	ctx fasthttp.RequestCtx
}

func newBench(t testing.TB, path, body string, options ...option) *bench {
	r := newRig(t, options...)
	b := &bench{rig: r}
	var req fasthttp.Request
	req.Header.SetMethod("POST")
	req.SetRequestURI(path)
	req.Header.SetHost("x")
	req.Header.SetContentType(contentJSON)
	if r.deps.Enforced {
		req.Header.Set("Authorization", "Bearer "+r.token("", 1))
	}
	req.SetBodyString(body)
	b.ctx.Init(&req, &net.TCPAddr{}, nil)
	return b
}

// run handles the request once.
func (b *bench) run() {
	b.ctx.Response.Reset()
	b.rig.m.server.serve(&b.ctx)
}

// TestOrderPathDoesNotAllocate counts what one order costs between the decoded
// HTTP request and the rendered answer, real gate, desk, engine, views included.
func TestOrderPathDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates; the answers are still checked")
	}
	for _, tt := range []struct {
		name, path, body string
		options          []option
		status           int
	}{
		{"accepted", "/orders", goodOrder, nil, 201},
		{"accepted with a token", "/orders", goodOrder, []option{enforced}, 201},
		{"fill or kill", "/orders", orderBody("1", "Buy", "1", "100", `,"timeInForce":"FOK"`), nil, 201},
		{"repeated key", "/orders", orderBody("1", "Buy", "1", "100", `,"clientOrderId":"k"`), nil, 201},
		{"refused", "/orders", orderBody("9", "Buy", "1", "100", ""), nil, 422},
		{"batch", "/orders/batch", "[" + goodOrder + "," + goodOrder + "," + goodOrder + "]", nil, 201},
		{"swap", "/swaps", goodSwap, nil, 200},
		{"swaption with a token", "/swaptions", goodSwaption, []option{enforced}, 200},
		{"repeated booking", "/swaptions", keyed(goodSwaption, "k"), nil, 200},
		{"refused booking", "/swaps", strings.Replace(goodSwap, ":1,", ":9,", 1), nil, 422},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.path, tt.body, tt.options...)
			for range 200 { // pools and buffers grow to their size
				b.run()
			}
			if status := b.ctx.Response.StatusCode(); status != tt.status {
				t.Fatalf("status %d: %s", status, b.ctx.Response.Body())
			}
			n := testing.AllocsPerRun(500, b.run)
			if n >= 1 && !raceEnabled {
				t.Errorf("%v allocations an order, want 0", n)
			}
		})
	}
}

// BenchmarkHandler is one order through handler, gate, desk, rings, engine and views, without a
// socket: the edge's cost is in op=decode, op=render and op=screen; the rest is the hand-over to
// other threads and back.
func BenchmarkHandler(b *testing.B) {
	b.Run("op=decode", func(b *testing.B) {
		var d decoder
		var o orderRequest
		body := []byte(goodOrder)
		b.ReportAllocs()
		for b.Loop() {
			d.reset(body)
			d.order(&o)
			if d.end() != nil {
				b.Fatal(d.end())
			}
		}
	})
	b.Run("op=decode-swaption", func(b *testing.B) {
		var d decoder
		var c contractRequest
		body := []byte(goodSwaption)
		b.ReportAllocs()
		for b.Loop() {
			d.reset(body)
			d.contract(&c, true)
			if d.end() != nil {
				b.Fatal(d.end())
			}
		}
	})
	b.Run("op=follow", func(b *testing.B) {
		c := newFramedConn(nil)
		raw := []byte(postOrder("User-Agent: bench\r\nContent-Type: application/json\r\nContent-Length: "+
			itoa(uint64(len(goodOrder)))+"\r\n", goodOrder))
		b.ReportAllocs()
		for b.Loop() {
			if _, why := c.follow(raw); why != faultNone {
				b.Fatal(why)
			}
		}
	})
	b.Run("op=refuse", func(b *testing.B) { // all of the edge, none of the engine
		h := newBench(b, "/orders", orderBody("9", "Buy", "1", "100", ""), unsequenced)
		b.ReportAllocs()
		for b.Loop() {
			h.run()
		}
	})
	b.Run("op=order/producers=1", func(b *testing.B) {
		h := newBench(b, "/orders", orderBody("1", "Buy", "1", "100", `,"timeInForce":"IOC"`))
		b.ReportAllocs()
		for b.Loop() {
			h.run()
		}
	})
}

// BenchmarkHTTP is orders over 64 keep-alive connections on the loopback,
// against a server that answers a constant: the same client, the same machine.
func BenchmarkHTTP(b *testing.B) {
	load := func(b *testing.B, address string) {
		c := client.New(client.Config{Address: address, MaxConns: 64})
		defer c.Close()
		var next atomic.Int64
		var group sync.WaitGroup
		b.ReportAllocs()
		b.ResetTimer()
		for range 64 {
			group.Go(func() {
				order := client.OrderRequest{AccountID: 1, Security: "AAA", Side: client.Buy, Quantity: 1,
					LimitPrice: client.Units(100), TimeInForce: client.IOC}
				for next.Add(1) <= int64(b.N) {
					if _, err := c.CreateOrder(b.Context(), &order); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
	}
	b.Run("op=order/connections=64", func(b *testing.B) { load(b, newRig(b).address) })
	b.Run("op=hello/connections=64", func(b *testing.B) {
		ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
		hello := fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetStatusCode(201)
			ctx.SetBodyString(`{"orderId":"ord-1","status":"NEW"}`)
		}}
		var group sync.WaitGroup
		group.Go(func() {
			if err := hello.Serve(ln); err != nil {
				b.Error(err)
			}
		})
		load(b, ln.Addr().String())
		if err := hello.Shutdown(); err != nil {
			b.Error(err)
		}
		group.Wait()
	})
}
