package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"posttrade/app/latency"
	"posttrade/app/stats"
)

// Named is the name of a code, and the code itself when it has none.
//
// A newer server may write a code that this program does not know.
func Named(names []string, code uint64) string {
	if code < uint64(len(names)) {
		return names[code]
	}
	return "state " + strconv.FormatUint(code, 10)
}

// short formats a duration with three significant digits; "-" when it is not known.
func short(d time.Duration) string {
	switch d {
	case stats.None:
		return "-"
	case stats.Unbounded:
		return "more than the last bucket"
	}
	return latency.Short(d)
}

// thousands formats a count with commas: 1,234,567.
func thousands(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// rateText is what a counter gains in a second: a whole number, or in tenths when it is small.
func (s *span) rateText(counter func(*stats.Image) uint64) string {
	v := s.rate(counter)
	if v >= 10 {
		return thousands(uint64(v + 0.5))
	}
	return decimal(v)
}

// decimal shows a rate: - for one that is not known, no fraction from a thousand on.
func decimal(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v >= 1000:
		return thousands(uint64(v + 0.5))
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// bytesText formats a size with a binary unit.
//
// v is in bytes, NaN when it is not known. Units are powers of 1024.
func bytesText(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB"}
	at := 0
	for ; v >= 1024 && at < len(units)-1; at++ {
		v /= 1024
	}
	return decimal(v) + " " + units[at]
}

// uptime formats a time since the start in its two largest units.
//
// Less than a minute is shown in seconds alone.
func uptime(nanos uint64) string {
	seconds := nanos / 1e9
	days, hours, minutes := seconds/86400, seconds/3600%24, seconds/60%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds%60)
	}
	return fmt.Sprintf("%ds", seconds)
}

// percentiles formats the median and the 99th percentile of what a distribution has gained.
func (s *span) percentiles(of func(*stats.Image) *stats.Distribution) string {
	return "p50 " + short(s.quantileOf(0.5, of)) + "  p99 " + short(s.quantileOf(0.99, of))
}
