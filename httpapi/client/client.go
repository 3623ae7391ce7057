package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Config is how a Client reaches a server.
//
// New copies what it needs: a later change of a Config changes no Client.
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
	// Token is the bearer token, or empty. A control character in it, such as the end of the line in a
	// file, is an error of every request, and nothing is sent.
	Token string

	Timeout  time.Duration // of one attempt; 0: 35 s, above the server's own
	MaxConns int           // 0: 512
	Retries  int           // further attempts of what is safe to repeat; 0: none
	// Pause waits before attempt n (from 1) of a repetition, or until ctx ends. nil waits 10 ms,
	// doubling, at most 1 s.
	Pause func(ctx context.Context, n int)
	Dial  func(ctx context.Context, address string) (net.Conn, error) // nil: TCP
}

// ParseURL returns the configuration for a service at http://host:port or https://host:port, with a
// path prefix or without.
//
// The rest of the Config is zero: the caller adds token, time-out and retries. A query, user
// information and another scheme are errors. The port is 80 or 443 when the address names none.
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
// After, AfterVersion, Confirmed and Because return a Client that shares the connections and sends
// more with its requests. Any number of goroutines may use a Client.
type Client struct {
	link *link
	ask  http.Header // of every read
	act  http.Header // of every other request
}

// link is what a Client shares with those made from it.
type link struct {
	// members are constant, and at least one: Config.Address, then the others.
	members []member
	// at is the index of the member in use, modulo their number. It only rises, by one for a member
	// that could not answer; any goroutine raises it, by compare-and-swap, so that several requests
	// that meet the same dead member skip no other.
	at atomic.Uint32
	// http carries requests with a bound of connections for each member; their answers are read whole,
	// and its compression is off.
	http *http.Transport
	// streams carries the answers that are read as they come, such as reports and feeds: a long one
	// must take no place from the requests.
	streams *http.Transport
	bearer  string
	timeout time.Duration
	retries int
	pause   func(ctx context.Context, n int)
}

// member is an address of the service, with a scheme and without a slash at the end.
type member string

// New returns a Client. It connects with the first request.
//
// It never fails: a wrong address shows as an error of the first request. The caller may Close the
// Client when it is done.
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
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	scheme := "http://"
	if cfg.TLS {
		scheme = "https://"
	}
	l := &link{timeout: cfg.Timeout, retries: cfg.Retries, pause: cfg.Pause,
		http: transport(cfg), streams: transport(cfg)}
	l.http.DisableCompression = true // answers are small
	l.http.MaxConnsPerHost, l.http.MaxIdleConnsPerHost = cfg.MaxConns, cfg.MaxConns
	for _, address := range append([]string{cfg.Address}, cfg.Others...) {
		l.members = append(l.members, member(scheme+address+cfg.Prefix))
	}
	if cfg.Token != "" {
		l.bearer = "Bearer " + cfg.Token
	}
	return &Client{link: l}
}

// transport returns connections to the members of cfg.
//
// An error of dialling is marked with errUnsent: by that mark a caller knows that no byte of a
// request went out.
func transport(cfg Config) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			conn, err := cfg.Dial(ctx, address)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errUnsent, err)
			}
			return conn, nil
		},
		TLSClientConfig: cfg.TLSConfig.Clone(),
		IdleConnTimeout: 30 * time.Second, // below the server's own
	}
}

// pause is the default of Config.Pause. Attempt 1 waits 10 ms, attempt 8 and later ones 1 s.
func pause(ctx context.Context, n int) {
	wait := time.NewTimer(min(10*time.Millisecond<<min(n-1, 7), time.Second))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// After returns a Client whose reads show the command of an input sequence and everything before
// it: the server waits for it, 2 s at most, then answers 503 NOT_YET. Every answer to a write has
// such a sequence.
//
// Beside it the Client's other settings stay: After(n).Confirmed() sends both headers.
func (c *Client) After(sequence uint64) *Client {
	return c.reading("X-Min-Sequence", strconv.FormatUint(sequence, 10))
}

// AfterVersion is After of the account-service and the reference-data service: version is the
// Version of an Account or a Stock that a write has returned.
func (c *Client) AfterVersion(version uint64) *Client {
	return c.reading("X-Min-Version", strconv.FormatUint(version, 10))
}

// Confirmed returns a Client whose reads come from a leader that a majority of the cluster has
// confirmed after the request came. They show every change that was acknowledged before.
//
// Without a cluster it changes nothing. The answer is a 503 NO_LEADER when no majority confirms.
func (c *Client) Confirmed() *Client { return c.reading("X-Consistency", "confirmed") }

// Because returns a Client whose writes give a reason, which goes on record with an operator's act.
// In production the server refuses an act without one. The reason is 1 to 500 characters without
// control characters: with one, the request is an error and is not sent. "" takes the reason away.
func (c *Client) Because(reason string) *Client {
	n := *c
	n.act = nil
	if reason != "" {
		n.act = http.Header{"X-Reason": {reason}}
	}
	return &n
}

// reading returns a Client that sends one more header with every read. The receiver stays as it is:
// other goroutines may be using it.
func (c *Client) reading(name, value string) *Client {
	ask := maps.Clone(c.ask)
	if ask == nil {
		ask = http.Header{}
	}
	ask.Set(name, value)
	return &Client{link: c.link, ask: ask, act: c.act}
}

// Close closes the idle connections, also of the Clients made from this one. Requests under way go
// on, and a later request connects again.
func (c *Client) Close() {
	c.link.http.CloseIdleConnections()
	c.link.streams.CloseIdleConnections()
}
