package settings

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"posttrade/journal/quorum"
)

// serviceListeners are the settings that name a port of orders or trades.
//
// In production a public one of them needs TLS or a proxy that ends TLS. The admin listener and
// the console have rules of their own.
var serviceListeners = []string{
	"order-matcher.listen", "trade-processor.listen", "account-service.listen",
	"reference-data.listen",
}

// check refuses what no setting can detect alone: combinations, and what the profile forbids. Every
// message names a setting.
//
// The order matters for the message alone: the first rule that is broken is reported. Rules that
// hold in every profile come before those of production.
func (c *Config) check() error {
	for _, of := range []string{servicesTLS, adminTLS} {
		if (c.String(of+"-cert") == "") != (c.String(of+"-key") == "") {
			return Usagef("%s-cert and %s-key: set both or none", of, of)
		}
	}
	if c.String("auth.jwt.secret") != "" && c.String("auth.jwt.secret-file") != "" {
		return Usagef("auth.jwt.secret-file: auth.jwt.secret is set too: set one of them")
	}
	if err := c.checkAdmin(); err != nil {
		return err
	}
	if err := c.checkConsole(); err != nil {
		return err
	}
	if err := c.checkCluster(); err != nil {
		return err
	}
	if c.String("profile") != "production" {
		return nil
	}
	return c.checkProduction()
}

// holdsSecret reports a setting whose value must not be seen: a secret, or a URL that holds one.
//
// It decides which settings production refuses on the command line.
func (c *Config) holdsSecret(s *Setting) bool {
	if !s.Kind.url && !s.Kind.secret {
		return false
	}
	value := c.String(s.Name)
	return s.Masked(value) != value
}

// checkAdmin refuses an admin listener that other machines reach without a token, and in production
// one whose tokens and profiles would go over the network in the clear.
func (c *Config) checkAdmin() error {
	at := c.Addr("admin.listen")
	switch {
	case loopback(at):
		return nil
	case c.String("profile") == "production" && c.String("admin.tls-cert") == "":
		return Usagef("admin.tls-cert: profile=production needs it for admin.listen=%s, which is not "+
			"a loopback address", at)
	case !c.Bool("admin.token-guard"):
		return Usagef(
			"admin.listen: %s is not a loopback address; set admin.token-guard=true to allow it", at)
	}
	return nil
}

// checkConsole refuses a console on which any machine could sign in, or whose tokens would go
// over the network in the clear.
//
// In profile dev the console offers a sign-in by one click, so it stays on a loopback address.
func (c *Config) checkConsole() error {
	at := c.String("console.listen")
	switch {
	case at == "" || loopback(at):
		return nil
	case c.String("profile") != "production":
		return Usagef("console.listen: %s is not a loopback address; profile=dev keeps the console there",
			at)
	case c.String("http.tls-cert") == "" && !c.Bool("http.behind-proxy"):
		return Usagef("console.listen: profile=production needs http.tls-cert or http.behind-proxy on "+
			"the public address %s", at)
	}
	return nil
}

// checkProduction refuses what is convenient on a desk and dangerous on a server.
//
//   - A flag must not hold a secret.
//   - Entitlement and the guard of the sources' writes must be on.
//   - A public listener needs TLS, here or in front.
//   - Members need certificates, on loopback too: every user of the machine reaches it.
//   - The master secret, if set, must be long: it lets its holder mint tokens.
func (c *Config) checkProduction() error {
	for i := range List { // every process of the machine can read a command line
		name := List[i].Name
		if c.Source(name) == "flag" && c.holdsSecret(&List[i]) {
			return Usagef("%s: profile=production needs it in a file or the environment, not in a flag",
				name)
		}
	}
	for _, name := range []string{"risk.entitlement.enforced", "reference.write-auth.enforced"} {
		if !c.Bool(name) {
			return Usagef("%s: profile=production needs true", name)
		}
	}
	for _, name := range serviceListeners {
		if !loopback(c.Addr(name)) && c.String("http.tls-cert") == "" && !c.Bool("http.behind-proxy") {
			return Usagef(
				"%s: profile=production needs http.tls-cert or http.behind-proxy on the public address %s",
				name, c.Addr(name))
		}
	}
	if len(c.Members()) > 0 && c.String("cluster.tls-cert") == "" {
		return Usagef("cluster.tls-cert: profile=production needs it: without certificates every user " +
			"of this machine can change the members and be sent the journal")
	}
	if m := c.String("auth.dev-token.master-secret"); m != "" && len(m) < 32 {
		return Usagef("auth.dev-token.master-secret: profile=production needs at least 32 bytes")
	}
	return nil
}

// checkCluster wants a member to know itself and, with sidecars, what all members share: the
// database and the broker.
//
// Durability and membership go together: a member always promises "quorum", and a single node
// cannot. The default fsync is not refused in a cluster; Durability says "quorum" there.
func (c *Config) checkCluster() error {
	list, id := c.Members(), c.Int("cluster.member-id")
	switch durability := c.String("journal.durability"); {
	case len(list) == 0 && durability == "quorum":
		return Usagef("journal.durability: quorum needs cluster.members")
	case len(list) > 0 && durability == "os":
		return Usagef("journal.durability: in a cluster it is quorum: on stable storage of a majority")
	case len(list) == 0 && id == 0:
		return nil
	case len(list) == 0:
		return Usagef("cluster.member-id: needs cluster.members")
	case id == 0:
		return Usagef("cluster.members: needs cluster.member-id")
	}
	self := strconv.Itoa(id)
	if !slices.ContainsFunc(list, func(m quorum.Member) bool { return m.ID == self }) {
		return Usagef("cluster.member-id: %d is not in cluster.members", id)
	}
	for _, name := range []string{"database.url", "nats.url"} {
		if c.Bool("sidecars.enabled") && c.String(name) == "" {
			return Usagef("%s: a cluster with sidecars.enabled=true needs it", name)
		}
	}
	return c.checkMemberTLS(list)
}

// Exposed are the listeners that other machines can reach, as name=address.
//
// A start in profile dev warns of them. The console is not listed: checkConsole keeps it on
// loopback in that profile.
func (c *Config) Exposed() (list []string) {
	for _, service := range []string{"order-matcher", "trade-processor", "account-service",
		"reference-data", "admin"} {
		if at := c.ListenAddr(service); !loopback(at) {
			list = append(list, service+".listen="+at)
		}
	}
	return list
}

// WritesNeedAdmin reports that changes of accounts and stocks need an admin token, and why. On
// loopback they need one when the setting says so. When other machines can reach the services, the
// setting cannot switch this off: each record would take room in the engine for good. The services
// of a member can be reached through every other member, and a proxy's callers come from anywhere.
//
// why is the setting that decides, as name=value, for the log.
func (c *Config) WritesNeedAdmin() (needs bool, why string) {
	switch {
	case c.Bool("reference.write-auth.enforced"):
		return true, "reference.write-auth.enforced=true"
	case c.Bool("http.behind-proxy"):
		return true, "http.behind-proxy=true"
	}
	for _, name := range []string{"account-service.listen", "reference-data.listen"} {
		if !loopback(c.Addr(name)) {
			return true, name + "=" + c.Addr(name)
		}
	}
	for _, m := range c.Members() {
		if !loopback(m.HTTP) {
			return true, "cluster.members: member " + m.ID + " is at " + m.HTTP
		}
	}
	return false, ""
}

// checkMemberTLS refuses members that would connect to each other without TLS.
//
// Members exchange every command and whole journals over that port, and trust what they receive.
func (c *Config) checkMemberTLS(list []quorum.Member) error {
	set := 0
	for _, name := range memberTLS {
		if c.String(name) != "" {
			set++
		}
	}
	if set != 0 && set != len(memberTLS) {
		return Usagef("%s: set all three or none", strings.Join(memberTLS, ", "))
	}
	for _, m := range list {
		if set == 0 && !quorum.IsLoopback(m.Raft) {
			return Usagef(
				"cluster.members: member %s at %s needs cluster.tls-cert: only loopback addresses may do "+
					"without",
				m.ID, m.Raft)
		}
	}
	return nil
}

// memberTLS are the settings of the port on which members connect to each other.
//
// All three are set or none: a member shows its certificate and checks that of the other.
var memberTLS = []string{"cluster.tls-cert", "cluster.tls-key", "cluster.tls-ca"}

// loopback reports whether only this machine can reach addr. A host name other than localhost
// counts as public, because it may resolve to any address.
//
// An address without a port is public, too.
func loopback(addr string) bool {
	_, _, err := net.SplitHostPort(addr)
	return err == nil && quorum.IsLoopback(addr)
}
