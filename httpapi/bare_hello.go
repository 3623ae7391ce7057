package httpapi

import (
	"net"

	"github.com/valyala/fasthttp"
)

// ServeHello answers every request on ln with the same few bytes. It is the lower bound that
// benchmarks compare the order-matcher's requests with.
func ServeHello(ln net.Listener) error {
	body := []byte(`{"hello":"world"}`)
	s := fasthttp.Server{
		NoDefaultServerHeader: true,
		Handler:               func(c *fasthttp.RequestCtx) { c.SetBody(body) },
	}
	return s.Serve(ln)
}
