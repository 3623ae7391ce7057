package settings

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strconv"

	"posttrade/journal"
	"posttrade/journal/quorum"
)

// Clustered reports that this process is one of several members.
func (c *Config) Clustered() bool { return len(c.Members()) > 0 }

// Durability is what a 2xx promises.
func (c *Config) Durability() string {
	if c.Clustered() {
		return "quorum"
	}
	return c.String("journal.durability")
}

// ListenAddr is where a service listens. A member's order-matcher listens at the address in the
// list of members, unless its own setting names another.
func (c *Config) ListenAddr(service string) string {
	setting := service + ".listen"
	if c.Clustered() && service == "order-matcher" && c.Source(setting) == "default" {
		return c.Self().HTTP
	}
	return c.Addr(setting)
}

// JournalDurability is how this process writes its own journal. A member's journal is behind what a
// majority has on stable storage, and is restored from there.
func (c *Config) JournalDurability() string {
	if c.Clustered() {
		return journal.DurabilityOS
	}
	return c.String("journal.durability")
}

// The settings of a certificate and its key begin with one of these.
const (
	servicesTLS = "http.tls"
	adminTLS    = "admin.tls"
)

// TLS loads the certificate of the service listeners, or nil without one.
func (c *Config) TLS() (*tls.Config, error) { return c.listenerTLS(servicesTLS) }

// AdminTLS loads the certificate of the admin listener, or nil without one.
func (c *Config) AdminTLS() (*tls.Config, error) { return c.listenerTLS(adminTLS) }

func (c *Config) listenerTLS(of string) (*tls.Config, error) {
	if c.String(of+"-cert") == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.String(of+"-cert"), c.String(of+"-key"))
	if err != nil {
		return nil, fmt.Errorf("%s-cert: %w", of, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// InDataDir returns the path of a file in data.dir.
func (c *Config) InDataDir(name string) string {
	return filepath.Join(c.String("data.dir"), name)
}

// ExtractSink is the directory of the risk extracts.
func (c *Config) ExtractSink() string {
	if s := c.String("extract.sink"); s != "" {
		return s
	}
	return c.InDataDir("extracts")
}

// Self is this member's entry in the list of members.
func (c *Config) Self() quorum.Member {
	id := strconv.Itoa(c.Int("cluster.member-id"))
	for _, m := range c.Members() {
		if m.ID == id {
			return m
		}
	}
	return quorum.Member{} // checkCluster has made sure that the entry exists
}
