package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/httpapi/client"
	"posttrade/matcher/gate"
	"posttrade/sidecars/feeds"
)

// ownServerPatience bounds the question of ownServer, which needs no work of the server.
const ownServerPatience = 5 * time.Second

// localTokenLife is how long the token of one request to a running server is valid.
const localTokenLife = time.Minute

// localClient makes a client of a service of the server that runs on data.dir. The address comes
// from ports.json, and the local secret makes the token.
//
// The caller closes the client. Errors: no server has run on data.dir, or it has no such service; a
// secret or certificate that cannot be read; another server that has the port. That the server runs
// is not known before the first request.
func localClient(c *settings.Config, service string, now time.Time) (*client.Client, error) {
	o, err := localClientConfig(c, service, localTokenLife, now)
	if err != nil {
		return nil, err
	}
	if err := ownServer(c); err != nil {
		return nil, err
	}
	return client.New(o), nil
}

// ownServer reports an error when another process than the server on data.dir answers at the admin
// address of ports.json: the other addresses are not the server's then, either.
//
// An admin listener that does not answer, or is not in the file, is no error: the request that
// follows says what is the matter.
func ownServer(c *settings.Config) error {
	at, err := listenerOf(c, "admin")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), ownServerPatience)
	defer cancel()
	_, process, _, err := askAdmin(ctx, feeds.Reachable(at), "/healthz")
	if err != nil {
		return nil
	}
	return installation.SameProcess(c, at, process)
}

// localClientConfig is the configuration of such a client, with a token of a life. The token is an
// admin's, in the name of the operating system's user: the act of a command is on record under that
// name.
func localClientConfig(c *settings.Config, service string, life time.Duration,
	now time.Time) (o client.Config, err error) {
	at, err := listenerOf(c, service)
	if err != nil {
		return o, err
	}
	secret, err := c.JWTSecret()
	if err != nil {
		return o, err
	}
	serverTLS, err := c.TLS()
	if err != nil {
		return o, err
	}
	token := gate.Mint(secret, gate.Claims{Subject: installation.OSUser(), Admin: true},
		c.String("auth.jwt.issuer"), life, now)
	return client.Config{Address: feeds.Reachable(at), TLS: serverTLS != nil,
		TLSConfig: feeds.Pinned("http.tls-cert", serverTLS), Token: token}, nil
}

// listenerOf is the address of a listener of the server that runs on data.dir: host:port, as the
// server has written it into ports.json. The file stays when the server ends.
//
// ports.json is one object, from the name of a service to an address. With sidecars.enabled=false
// the post-trade services are not there.
func listenerOf(c *settings.Config, service string) (string, error) {
	path := c.InDataDir("ports.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("no server has run here: read %s: %w", path, settings.Cause(err))
	}
	var ports map[string]string
	if err := json.Unmarshal(text, &ports); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	at, ok := ports[service]
	if !ok {
		return "", fmt.Errorf("%s: the server has no %s: sidecars.enabled is false", path, service)
	}
	return at, nil
}

// tcaUsage is the form of the command
const tcaUsage = "tca TRADE [flags]"

// runTCA is `posttrade tca TRADE`.
func runTCA(args []string, stdout, stderr io.Writer) int {
	f := newFlags(tcaUsage,
		"Asks the server that runs on data.dir what a trade cost against its arrival price and\n"+
			"the time-weighted average of the window before it. Positive slippage is worse.")
	c, err := f.read(args, 1, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if len(f.rest) == 0 {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", tcaUsage))
	}
	server, err := localClient(c, "trade-processor", time.Now())
	if err != nil {
		return settings.Exit(stderr, err)
	}
	defer server.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return settings.Exit(stderr, showTCA(ctx, server, f.rest[0], stdout))
}

// showTCA prints one report, for people. The arrival is the command that accepted the order; the
// TWAP is the average of the window before the execution, weighted by time, and its samples are the
// prices that had weight. Slippage is in basis points, and positive is a cost, for a sale too.
func showTCA(ctx context.Context, server *client.Client, trade string, w io.Writer) error {
	r, err := server.TCAReport(ctx, trade)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "trade\t%s\n", r.TradeID)
	fmt.Fprintf(t, "account\t%d\n", r.AccountID)
	fmt.Fprintf(t, "executed\t%s %d %s at %s\n", r.Side, r.Quantity, r.Security, r.ExecutionPrice)
	fmt.Fprintf(t, "arrival price\t%s\t%s\n", price(r.ArrivalPrice), slippage(r.ArrivalSlippageBps))
	fmt.Fprintf(t, "twap\t%s\t%s\n", price(r.Twap), slippage(r.SlippageBps))
	fmt.Fprintf(t, "window\t%s to %s, %d samples\n", instant(r.TwapWindowStart),
		instant(r.TwapWindowEnd), r.TwapSampleCount)
	return t.Flush()
}

// price formats a benchmark price, or says that there is none.
func price(p client.Price) string {
	if p == 0 {
		return "none"
	}
	return p.String()
}

// slippage formats basis points; empty when there is no benchmark.
func slippage(bps *client.Price) string {
	if bps == nil {
		return ""
	}
	return bps.String() + " bps"
}
