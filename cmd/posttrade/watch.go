package main

import (
	"context"
	"io"
	"math"
	"net"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"posttrade/app/settings"
	"posttrade/app/watch"
	"posttrade/httpapi/client"
	"posttrade/sidecars/feeds"
)

// watchTokenLife is how long the token of one connection to the feed is valid. The watch makes
// another one when it has expired.
const watchTokenLife = time.Hour

// runWatch is `posttrade watch`.
//
// The feed comes from the server; reconnecting, and leaving out what was printed already, is
// app/watch. Notices about the connection go to stderr, so that stdout has events only.
func runWatch(args []string, stdout, stderr io.Writer) int {
	f := newFlags("watch [topics] [flags]",
		"Prints the live feed of the server that runs on data.dir, or of the order-matcher at --url:\n"+
			"a line an event. Topics, with commas: book:TICKER, bbo:TICKER (* for every one), trades,\n"+
			"orders, prices, controls, contracts. Without topics: everything but the depth of the books.\n"+
			"A connection that breaks is made again, and nothing is missing or printed twice.\n"+
			"Ctrl-C ends.")
	url := f.String("url", "",
		"the order-matcher's `address`, http://host:port; of several members, with commas "+
			"(default: from data.dir)")
	token := f.String("token", "", "access token (`jwt`) to send with --url")
	from := f.String("from", "",
		"go on behind the event with this `id`, or begin behind a sequence (default: at the head)")
	account := f.String("account", "", "only orders, own fills and contracts of this `account`")
	count := f.Uint64("count", 0, "end after so many `events` (default: do not end)")
	asJSON := f.Bool("json", !terminal(stdout),
		"print an event as a line of JSON, marks too (default: unless stdout is a terminal)")
	c, err := f.read(args, 1, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	q := client.FeedQuery{Topics: watch.Everything, From: *from}
	if len(f.rest) == 1 {
		q.Topics = strings.Split(f.rest[0], ",")
	}
	if f.given("account") {
		if q.AccountID, err = accountFlag(*account); err != nil {
			return settings.Exit(stderr, err)
		}
	}
	o, err := watched(c, *url, *token)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return settings.Exit(stderr, watch.Run(ctx, stdout, watch.Options{Query: q, JSON: *asJSON,
		Count: *count, Notices: stderr, Connect: o}))
}

// accountFlag reads the number of an account. 0 is a number, so the caller asks whether the flag is
// given.
func accountFlag(text string) (*uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil, settings.Usagef("flag --account: %s is not within 0..%d", settings.Printable(text),
			uint32(math.MaxUint32))
	}
	id := uint32(n)
	return &id, nil
}

// watched makes the clients of the feed, one a call: of the order-matcher at url, or of the server
// on data.dir, which may have another address after a restart. So ports.json is read at each dial,
// and each client has a new token.
//
// Several addresses in url are the members of one cluster: they share scheme and prefix.
func watched(c *settings.Config, url, token string) (func() (*client.Client, error), error) {
	if url == "" {
		if token != "" {
			return nil, settings.Usagef("--token goes with --url")
		}
		return func() (*client.Client, error) {
			o, err := localClientConfig(c, "order-matcher", watchTokenLife, time.Now())
			if err == nil {
				err = ownServer(c)
			}
			if err != nil {
				return nil, err
			}
			o.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
				at, err := listenerOf(c, "order-matcher")
				if err != nil {
					return nil, err
				}
				return new(net.Dialer).DialContext(ctx, "tcp", feeds.Reachable(at))
			}
			return client.New(o), nil
		}, nil
	}
	var o client.Config
	for n, base := range strings.Split(url, ",") {
		member, err := client.ParseURL(base)
		if err != nil || n > 0 && (member.TLS != o.TLS || member.Prefix != o.Prefix) {
			return nil, settings.Usagef("--url: %s is not http://host:port, like the others",
				settings.Printable(base))
		}
		if n == 0 {
			o = member
		} else {
			o.Others = append(o.Others, member.Address)
		}
	}
	o.Token = token
	return func() (*client.Client, error) { return client.New(o), nil }, nil
}
