package installation

import (
	"log/slog"
	"net"

	"posttrade/app/settings"
	"posttrade/httpapi"
)

// leaderServices run on the leader only: they write outside of the process.
//
// On the other members a relay with the same name sends the requests on.
var leaderServices = []string{"account-service", "reference-data", "trade-processor"}

// openRelays listens for every service.
//
// The order-matcher has a relay on every member; the others only with sidecars. A relay's listener
// stays open when the member's role changes. Its Swap says what stands behind it.
func (in *Installation) openRelays(c *settings.Config, log *slog.Logger) error {
	k := in.Core
	dialTLS, err := in.listeners.dialTLS()
	if err != nil {
		return err
	}
	in.Member.relays = map[string]*httpapi.Relay{}
	services := []string{"order-matcher"}
	if c.Bool("sidecars.enabled") {
		services = append(services, leaderServices...)
	}
	hosts := newMemberHosts(c.Members())
	for _, name := range services {
		relay, err := httpapi.NewRelay(name, httpapi.RelayOptions{
			Cluster: in.Member.Node, PathPrefix: relayPrefix(c, name), Durability: c.Durability(),
			Applied: k.Views.Applied, Durable: k.Watermark.Durable, Projected: in.projected,
			TLS: dialTLS, MaxInflight: c.Int("http.max-inflight"), Logger: log,
			MemberHost: hosts.has,
		})
		if err != nil {
			return err
		}
		in.Member.relays[name] = relay
		if err := in.listeners.start(name, relay); err != nil {
			return err
		}
	}
	return nil
}

// relayPrefix is the routing prefix of a service.
//
// Relays of other members add it when they send a request to this service.
func relayPrefix(c *settings.Config, service string) string {
	if service == "order-matcher" {
		return c.String("order-matcher.path-prefix")
	}
	return ""
}

// services are the addresses at which the other members reach this one: the host of its HTTP
// address, and for the order-matcher that address itself.
//
// The node calls it when this member begins to lead, and gives the result to the others. The hosts
// are replaced because a listener may be bound to an address that other machines do not have, such
// as 0.0.0.0; the ports are the real ones.
func (in *Installation) services() map[string]string {
	at := in.listeners.addresses()
	self := in.listeners.c.Self()
	host, _, _ := net.SplitHostPort(self.HTTP)
	for name, address := range at {
		if _, port, err := net.SplitHostPort(address); err == nil {
			at[name] = net.JoinHostPort(host, port)
		}
	}
	return at
}
