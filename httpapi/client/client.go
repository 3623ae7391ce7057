package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Config is how a Client reaches a server.
type Config struct {
	Address string // host:port
	// Others are the addresses of the same service at the other members of a cluster. A request that
	// one member cannot answer goes to the next; see Client.
	Others []string
	Prefix string // routing path prefix, such as /om, or empty
	TLS    bool
	// TLSConfig sets the authorities that the client trusts and the certificate that it presents. nil:
	// the system's authorities, with the host name of the address. New copies it.
	TLSConfig *tls.Config
	Token     string // bearer token, or empty

	Timeout  time.Duration // of one attempt; 0: 35 s, above the server's own
	MaxConns int           // 0: 512
	Retries  int           // further attempts of what is safe to repeat; 0: none
	// Pause is called before attempt n (from 1) of a repetition. nil sleeps 10 ms, doubling, at most 1
	// s.
	Pause func(n int)
	Dial  func(address string) (net.Conn, error) // nil: TCP
}

// ParseURL returns the configuration for a service at http://host:port or https://host:port, with a
// path prefix or without.
func ParseURL(base string) (cfg Config, err error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.RawQuery != "" || u.User != nil {
		return cfg, fmt.Errorf("client: %q is not http://host:port", base)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return Config{Address: net.JoinHostPort(u.Hostname(), port), TLS: u.Scheme == "https",
		Prefix: strings.TrimRight(u.EscapedPath(), "/")}, nil
}

// Client calls one service, at one member at a time: the one that answered last. It goes on to the
// next member when that one refuses the connection, breaks it, or says that it knows no leader, if
// the request may be sent again. A round through all members is one attempt.
//
// Any number of goroutines may use it.
type Client struct {
	members []*member
	at      atomic.Uint32 // index of the member in use, modulo their number
	dial    func(address string) (net.Conn, error)
	trust   *tls.Config // a copy of Config.TLSConfig
	bearer  string
	timeout time.Duration
	retries int
	pause   func(n int)
	buffers sync.Pool // of *[]byte: request bodies
}

// member is one address of the service.
type member struct {
	http fasthttp.HostClient
	host string // with a scheme, no slash at the end
}

// New returns a Client. It connects with the first request.
func New(cfg Config) *Client {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 35 * time.Second
	}
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = 512
	}
	if cfg.Pause == nil {
		cfg.Pause = pause
	}
	scheme := "http://"
	if cfg.TLS {
		scheme = "https://"
	}
	if cfg.Dial == nil {
		cfg.Dial = fasthttp.Dial
	}
	cfg.TLSConfig = cfg.TLSConfig.Clone()
	c := &Client{timeout: cfg.Timeout, retries: cfg.Retries, pause: cfg.Pause, dial: cfg.Dial,
		trust: cfg.TLSConfig}
	for _, address := range append([]string{cfg.Address}, cfg.Others...) {
		c.members = append(c.members, &member{host: scheme + address + cfg.Prefix,
			http: hostClient(cfg, address)})
	}
	if cfg.Token != "" {
		c.bearer = "Bearer " + cfg.Token
	}
	c.buffers.New = func() any { b := make([]byte, 0, 512); return &b }
	return c
}

// hostClient returns the connections to one address.
func hostClient(cfg Config, address string) fasthttp.HostClient {
	return fasthttp.HostClient{
		Addr: address, IsTLS: cfg.TLS, TLSConfig: cfg.TLSConfig, MaxConns: cfg.MaxConns,
		Dial:                          noting(cfg.Dial),
		MaxIdemponentCallAttempts:     1, // the Client repeats requests, not the library
		MaxConnWaitTimeout:            cfg.Timeout,
		NoDefaultUserAgentHeader:      true,
		DisablePathNormalizing:        true,
		DisableHeaderNamesNormalizing: false,
		ReadBufferSize:                8 << 10,
		MaxIdleConnDuration:           30 * time.Second, // below the server's idle time-out
	}
}

// pause is the default of Config.Pause.
func pause(n int) { time.Sleep(min(10*time.Millisecond<<min(n-1, 7), time.Second)) }

// Close closes the idle connections.
func (c *Client) Close() {
	for _, m := range c.members {
		m.http.CloseIdleConnections()
	}
}

// call is one request on its way.
type call struct {
	method string
	path   string // with its query
	body   []byte
	want   int  // the status code of success
	also   int  // a second status code of success; 0: none
	repeat bool // safe to send again although the outcome is unknown

	timeout time.Duration // overrides the client's; 0: the client's
	secret  string        // master secret, or empty
	reason  string        // why an operator acts, or empty

	status int // of the answer, once it is there
}

// do sends a request, repeats it where that is safe, and passes the body of a success to read.
func (c *Client) do(r *call, read func(body []byte) error) error {
	for attempt := 1; ; attempt++ {
		err := c.round(r, read)
		if err == nil || attempt > c.retries || !safe(r, err) {
			return err
		}
		c.pause(attempt)
	}
}

// round sends a request to one member after the other, from the one in use, until one of them
// answers it.
func (c *Client) round(r *call, read func(body []byte) error) (err error) {
	for range c.members {
		at := c.at.Load()
		if err = c.once(c.member(at), r, read); err == nil || !elsewhere(err) {
			return err
		}
		c.at.CompareAndSwap(at, at+1) // fails when another goroutine has moved on already
		if !safe(r, err) {
			return err
		}
	}
	return err
}

func (c *Client) member(at uint32) *member { return c.members[int(at)%len(c.members)] }

// safe reports that the request may be sent again after err.
func safe(r *call, err error) bool {
	var p *Problem
	if errors.As(err, &p) {
		return p.NotSequenced() || r.repeat && p.Status >= 500
	}
	return errors.Is(err, errUnsent) || r.repeat && !errors.Is(err, ErrAnswer)
}

func (c *Client) once(m *member, r *call, read func(body []byte) error) error {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(r.method)
	req.SetRequestURI(m.host + r.path)
	if c.bearer != "" {
		req.Header.Set("Authorization", c.bearer)
	}
	if r.body != nil {
		req.Header.SetContentType("application/json")
		req.SetBodyRaw(r.body)
	}
	if r.secret != "" {
		req.Header.Set("X-Auth-Master-Secret", r.secret)
	}
	if r.reason != "" {
		req.Header.Set("X-Reason", r.reason)
	}
	timeout := c.timeout
	if r.timeout > 0 {
		timeout = r.timeout
	}
	if err := m.http.DoTimeout(req, resp, timeout); err != nil {
		return fmt.Errorf("client: %s %s: %w", r.method, r.path, err)
	}
	if r.status = resp.StatusCode(); r.status != r.want && r.status != r.also {
		return readProblem(r.status, resp.Body())
	}
	if err := read(resp.Body()); err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrAnswer, r.method, r.path, err)
	}
	return nil
}

// buffer returns a request buffer; give it back with put.
func (c *Client) buffer() *[]byte {
	b := c.buffers.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

func (c *Client) put(b *[]byte) { c.buffers.Put(b) }

func appendUint(b []byte, n uint64) []byte { return strconv.AppendUint(b, n, 10) }
