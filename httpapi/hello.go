package httpapi

import (
	"net"

	"github.com/valyala/fasthttp"
)

// ServeHello answers every request on ln with the same few bytes: the floor that
// the order-matcher's requests are compared with.
func ServeHello(ln net.Listener) error {
	body := []byte(`{"hello":"world"}`)
	s := fasthttp.Server{
		NoDefaultServerHeader: true,
		Handler:               func(c *fasthttp.RequestCtx) { c.SetBody(body) },
	}
	return s.Serve(ln)
}
