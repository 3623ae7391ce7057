package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"posttrade/app/settings"
	"posttrade/httpapi/client"
	"posttrade/matcher/gate"
	"posttrade/sidecars/feeds"
)

// consultTokenLife is how long the token of one request to a running server is valid.
const consultTokenLife = time.Minute

// consult makes a client of a service of the server that runs on data.dir. The address comes from
// ports.json, and the local secret makes the token.
func consult(c *settings.Config, service string, now time.Time) (*client.Client, error) {
	at, err := listenerOf(c, service)
	if err != nil {
		return nil, err
	}
	secret, err := c.JWTSecret()
	if err != nil {
		return nil, err
	}
	serverTLS, err := c.TLS()
	if err != nil {
		return nil, err
	}
	token := gate.Mint(secret, gate.Claims{Subject: "operator", Admin: true},
		c.String("auth.jwt.issuer"), consultTokenLife, now)
	return client.New(client.Config{Address: feeds.Reachable(at), TLS: serverTLS != nil,
		TLSConfig: feeds.Pinned(serverTLS), Token: token}), nil
}

// listenerOf is the address of a listener of the server that runs on data.dir.
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

const reconUsage = "recon status|breaks [flags]"

// runRecon is `posttrade recon`: it shows the reconciliation to an operator.
func runRecon(args []string, stdout, stderr io.Writer) int {
	var class string
	f := newFlags(reconUsage,
		"Asks the server that runs on data.dir how the projection compares with the journal.\n"+
			"  status   how far reconciliation has come and what it counts\n"+
			"  breaks   what is open, with the fields that differ; --class narrows it")
	f.StringVar(&class, "class", "",
		"only breaks of this `class`: MISSING_IN_PROJECTION, FIELD_MISMATCH or ORPHAN_IN_PROJECTION")
	c, err := f.read(args, 1, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	show := map[string]func(*client.Client, io.Writer) error{
		"status": showReconStatus,
		"breaks": func(s *client.Client, w io.Writer) error { return showBreaks(s, class, w) },
	}[strings.Join(f.rest, " ")]
	if show == nil {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", reconUsage))
	}
	server, err := consult(c, "trade-processor", time.Now())
	if err != nil {
		return settings.Exit(stderr, err)
	}
	defer server.Close()
	return settings.Exit(stderr, show(server, stdout))
}

func showReconStatus(server *client.Client, w io.Writer) error {
	s, err := server.ReconStatus()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "compared\t%d\n", s.Cursor)
	fmt.Fprintf(t, "matched\t%d\n", s.Matched)
	fmt.Fprintf(t, "missing in projection\t%d\n", s.MissingInProjection)
	fmt.Fprintf(t, "field mismatch\t%d\n", s.FieldMismatch)
	fmt.Fprintf(t, "orphans\t%d\n", s.Orphans)
	fmt.Fprintf(t, "lag\t%d\n", s.Lag)
	fmt.Fprintf(t, "last sweep\t%s\n", instant(s.LastSweepAt))
	fmt.Fprintf(t, "last orphan sweep\t%s\n", instant(s.LastOrphanSweepAt))
	return t.Flush()
}

// instant formats a time, or says that there is none.
func instant(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func showBreaks(server *client.Client, class string, w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\ttrade\tfields\tfirst seen\tlast seen")
	cursor := ""
	for {
		page, err := server.ReconBreaks(class, 1000, cursor)
		if err != nil {
			return err
		}
		for _, b := range page.Items {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", b.Class, b.TradeID, strings.Join(b.Fields, ","),
				instant(b.FirstSeenAt), instant(b.LastSeenAt))
		}
		if cursor = page.NextCursor; cursor == "" {
			return t.Flush()
		}
	}
}

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
	server, err := consult(c, "trade-processor", time.Now())
	if err != nil {
		return settings.Exit(stderr, err)
	}
	defer server.Close()
	return settings.Exit(stderr, showTCA(server, f.rest[0], stdout))
}

func showTCA(server *client.Client, trade string, w io.Writer) error {
	r, err := server.TCAReport(trade)
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
