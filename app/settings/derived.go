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
//
// An empty list of members is a single node.
func (c *Config) Clustered() bool { return len(c.Members()) > 0 }

// Durability is what a 2xx promises.
//
// It is "fsync", "os" or "quorum". JournalDurability is another question: how this process writes
// its own journal.
func (c *Config) Durability() string {
	if c.Clustered() {
		return "quorum"
	}
	return c.String("journal.durability")
}

// ListenAddr is where a service listens. A member's order-matcher listens at the address in the
// list of members, unless its own setting names another.
//
// service is what stands before .listen in the name of a setting; another text is a bug and
// panics. The port may be 0; the listener then knows the real one.
func (c *Config) ListenAddr(service string) string {
	setting := service + ".listen"
	if c.Clustered() && service == "order-matcher" && c.Source(setting) == "default" {
		return c.Self().HTTP
	}
	return c.Addr(setting)
}

// JournalDurability is how this process writes its own journal. A member's journal is behind what a
// majority has on stable storage, and is restored from there.
//
// It is a mode of package journal.
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
//
// A later call reads the files again: a renewed certificate takes effect without a restart. The
// error names the setting.
func (c *Config) TLS() (*tls.Config, error) { return c.listenerTLS(servicesTLS) }

// AdminTLS loads the certificate of the admin listener, or nil without one.
func (c *Config) AdminTLS() (*tls.Config, error) { return c.listenerTLS(adminTLS) }

// listenerTLS loads the certificate and key of the settings that begin with of. TLS 1.2 is the
// oldest version that is spoken.
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
//
// The name may have slashes. The folder may not exist yet.
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
//
// Without a cluster it is the zero Member.
func (c *Config) Self() quorum.Member {
	id := strconv.Itoa(c.Int("cluster.member-id"))
	for _, m := range c.Members() {
		if m.ID == id {
			return m
		}
	}
	return quorum.Member{} // checkCluster has made sure that the entry exists
}
