package installation

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"posttrade/matcher"
)

// TestOperatorIsToldBeforeOrderNumbersEnd: each share gives one line in the log, and /readyz shows
// it.
func TestOperatorIsToldBeforeOrderNumbersEnd(t *testing.T) {
	var lines bytes.Buffer
	next := uint64(1)
	w := &numberWatch{next: func() uint64 { return next },
		log: slog.New(slog.NewTextHandler(&lines, nil))}
	for _, tt := range []struct {
		next  uint64
		lines int
		shown string
		ready bool
	}{
		{1, 0, "", true},
		{1 << 33, 0, "", true},
		{matcher.MaxOrderNumber/4*3 + 9, 1, "75.00 %", true},
		{matcher.MaxOrderNumber/4*3 + 99, 1, "75.00 %", true},
		{matcher.MaxOrderNumber/10*9 + 99, 2, "90.00 %", true},
		{matcher.MaxOrderNumber + 1, 3, "100.00 %", false},
	} {
		next = tt.next
		w.look()
		w.look()
		if got := strings.Count(lines.String(), "order numbers are being used up"); got != tt.lines {
			t.Errorf("at %d: %d lines, want %d", next, got, tt.lines)
		}
		part := numbersPart(next)
		if (tt.shown == "") != (len(part) == 0) {
			t.Errorf("at %d: %+v", next, part)
		} else if tt.shown != "" && (!strings.Contains(part[0].Detail, tt.shown) ||
			part[0].Ready != tt.ready) {
			t.Errorf("at %d: %+v, want %s", next, part, tt.shown)
		}
	}
}

// TestMetricsShowTheLastOrderNumber reads it from the admin listener.
func TestMetricsShowTheLastOrderNumber(t *testing.T) {
	in := install(t, t.TempDir(), "sidecars.enabled", "false")
	if status, body := requested(in, "", "POST", "order-matcher", "/orders",
		sellOrder); status != 201 && status != 422 {
		t.Fatalf("%d %s", status, body)
	}
	in.awaitMetrics("svc_order_last_number 1")
	if _, text := in.get("admin", "/metrics"); !strings.Contains(string(text),
		"\nsvc_order_numbers_used_ratio ") {
		t.Error("there is no share of the numbers that are used")
	}
	if _, body := in.get("admin", "/readyz"); strings.Contains(string(body), "order numbers") {
		t.Errorf("/readyz speaks of plenty: %s", body)
	}
}
