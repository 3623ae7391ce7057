package installation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/ring/must"
)

// gauge is the value of a metric, whose labels have these values.
func gauge(t *testing.T, samples []string, name string, labels ...string) float64 {
	t.Helper()
	for _, s := range samples {
		at := strings.LastIndexByte(s, ' ')
		full := s[:at]
		if full != name && !strings.HasPrefix(full, name+"{") ||
			slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(full, l) }) {
			continue
		}
		return must.Get(strconv.ParseFloat(s[at+1:], 64))(t)
	}
	t.Fatalf("%s%v is not among %d samples", name, labels, len(samples))
	return 0
}

// TestMetricsOfTheProcess: build, disk, snapshot, certificate, and the same classic buckets in
// every histogram.
func TestMetricsOfTheProcess(t *testing.T) {
	const days = 36 * time.Hour
	certificate, key := selfSigned(t)
	data := t.TempDir()
	in := install(t, data, "http.tls-cert", certificate, "http.tls-key", key)
	read := func() []string {
		_, text := in.get("admin", "/metrics")
		samples, _ := scrape(string(text))
		return samples
	}
	samples := read()
	b := settings.ReadBuild()
	if v := gauge(t, samples, "svc_build_info", `version="`+settings.Release+`"`,
		`commit="`+b.Commit+`"`, `goversion="`+b.Go+`"`); v != 1 {
		t.Errorf("svc_build_info %v", v)
	}
	if v := gauge(t, samples, "svc_disk_free_bytes"); v < 1<<20 {
		t.Errorf("%v bytes are free", v)
	}
	if v := gauge(t, samples, "svc_disk_reserve_bytes"); v != 0 { // as anyPorts sets it
		t.Errorf("%v bytes are kept free", v)
	}
	left := gauge(t, samples, "svc_certificate_expiry_seconds", `certificate="http.tls-cert"`)
	until := time.Until(expiryOf("", in.listeners.renewed.current.Load()).expires)
	if d := until.Seconds() - left; left <= 0 || d > 0 || d < -days.Seconds() {
		t.Errorf("the certificate ends in %v s, want a little over %v", left, until)
	}
	wantClassicBuckets(t, samples)

	// Without a snapshot the age begins with the process; a snapshot of long ago says so.
	if v := gauge(t, samples, "svc_snapshot_sequence"); v != 0 {
		t.Errorf("a snapshot at %v", v)
	}
	snap := must.Get(in.Core.Shadow.Take(t.Context()))(t)
	if v := gauge(t, read(), "svc_snapshot_sequence"); v != float64(snap.InputSeq) {
		t.Errorf("a snapshot at %v, want %d", v, snap.InputSeq)
	}
	ago := time.Now().Add(-time.Hour)
	must.OK(t, os.Chtimes(filepath.Join(in.Core.Journal.Dir(), snap.State.Path), ago, ago))
	s := must.Get(journal.NewSnapshotter(in.Core.Journal, journal.Rebuild{}, 0))(t)
	in.Core.Shadow = s // what a start would find
	if v := gauge(t, read(), "svc_snapshot_age_seconds"); v < 3600 || v > 3600+days.Seconds() {
		t.Errorf("the snapshot is %v s old, want an hour", v)
	}
}

// wantClassicBuckets checks that every svc_ histogram has the eleven bounds and +Inf, and no other.
func wantClassicBuckets(t *testing.T, samples []string) {
	t.Helper()
	want := []string{"1e-06", "5e-06", "2e-05", "0.0001", "0.0005", "0.002", "0.01", "0.05", "0.2",
		"1", "10", "+Inf"}
	found := map[string][]string{}
	for _, s := range samples {
		name, rest, ok := strings.Cut(s, "_bucket{")
		if !ok || !strings.HasPrefix(name, "svc_") {
			continue
		}
		labels, _, _ := strings.Cut(rest, "le=\"")
		bound, _, _ := strings.Cut(rest[len(labels)+len("le=\""):], "\"")
		found[name+labels] = append(found[name+labels], bound)
	}
	if len(found) < 4 { // two stages, the journal, the cluster
		t.Errorf("only %d histograms: %v", len(found), found)
	}
	for name, bounds := range found {
		if !slices.Equal(bounds, want) {
			t.Errorf("%s has the buckets %v, want %v", name, bounds, want)
		}
	}
}

// TestReleaseIsThatOfTheChangelog: the release that this source becomes is above the newest one
// that has been.
func TestReleaseIsThatOfTheChangelog(t *testing.T) {
	text := must.Get(os.ReadFile("../../CHANGELOG.md"))(t)
	_, rest, _ := strings.Cut(string(text), "\n## [Unreleased]")
	_, rest, _ = strings.Cut(rest, "\n## [")
	newest, _, _ := strings.Cut(rest, "]")
	var major, minor, patch int
	if _, err := fmt.Sscanf(newest, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatalf("%q: %v", newest, err)
	}
	if want := fmt.Sprintf("%d.%d.0-dev", major, minor+1); settings.Release != want &&
		settings.Release != newest {
		t.Errorf("release %s, want %s or %s", settings.Release, want, newest)
	}
}
