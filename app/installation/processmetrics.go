package installation

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"posttrade/app/settings"
	"posttrade/ring/metric"
)

// processMetrics are what monitoring asks of the process itself: its build, its disk, how much a
// start would have to replay, and how long its certificates hold.
//
// Free space that the system does not tell is left out, instead of a zero that would raise an
// alert.
func (in *Installation) processMetrics(emit metric.Emit) {
	b := settings.ReadBuild()
	emit.Gauge("svc_build_info", "1, with the release, commit and Go version of the build.", 1,
		"version", settings.Release, "commit", b.Commit, "goversion", b.Go)
	if free, known := in.Core.Journal.FreeBytes(); known {
		emit.Gauge("svc_disk_free_bytes", "Free bytes of the file system of the journal.",
			float64(free))
	}
	emit.Gauge("svc_disk_reserve_bytes",
		"Free bytes below which orders are refused: journal.reserve-bytes.",
		float64(in.Core.Journal.ReserveBytes()))
	in.Core.Shadow.Collect(emit)
	for _, c := range in.listeners.certificates() {
		emit.Gauge("svc_certificate_expiry_seconds",
			"Time until a certificate in use expires, below 0 when it has, by its setting.",
			time.Until(c.expires).Seconds(), "certificate", c.setting)
	}
}

// certificate is one that a listener of this process shows.
//
// setting is the name of the setting with its file, expires the end of its validity.
type certificate struct {
	setting string
	expires time.Time
}

// certificates are those in use: a renewed file counts once it has been read.
//
// They are read at each look, so a renewal shows at the next one.
func (l *listeners) certificates() (list []certificate) {
	if l.renewed != nil {
		list = append(list, expiryOf("http.tls-cert", l.renewed.current.Load()))
	}
	if l.adminRenewed != nil {
		list = append(list, expiryOf("admin.tls-cert", l.adminRenewed.current.Load()))
	}
	if l.members != nil {
		list = append(list, expiryOf("cluster.tls-cert", l.members))
	}
	return list
}

// expiryOf is the certificate of a configuration. One that cannot be read again has expired.
//
// Its time is the zero time then, which lies in the past.
func expiryOf(setting string, c *tls.Config) certificate {
	leaf := leafOf(c)
	if leaf == nil {
		return certificate{setting: setting}
	}
	return certificate{setting, leaf.NotAfter}
}

// leafOf is the certificate that a configuration shows, without those that sign it; nil when it
// cannot be parsed.
func leafOf(c *tls.Config) *x509.Certificate {
	if leaf := c.Certificates[0].Leaf; leaf != nil {
		return leaf
	}
	leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err != nil {
		return nil
	}
	return leaf
}

// membersTLS reads the certificate that this member shows to others, nil without one.
//
// The node reads the same files for itself; this copy is only for the expiry.
func membersTLS(c *settings.Config) (*tls.Config, error) {
	if !c.Clustered() {
		return nil, nil
	}
	found, err := MemberTLS(c)
	if err != nil {
		return nil, fmt.Errorf("cluster.tls-cert: %w", err)
	}
	return found, nil
}
