package settings

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // settlement.timezone works on a machine without zone files

	"posttrade/journal/quorum"
	"posttrade/matcher/strictjson"
	"posttrade/sidecars/control"
)

// kind says how the text of a setting is read and which texts it allows.
type kind struct {
	Allowed string // in words, for help and messages
	parse   func(string) (any, error)
	Boolean bool
	secret  bool
	url     bool
}

// The kinds without bounds. Each parses to the type that its accessor returns.
var (
	text       = kind{Allowed: "text", parse: parseText}
	boolean    = kind{Allowed: "true or false", parse: parseBool, Boolean: true}
	address    = kind{Allowed: "host:port", parse: parseAddress}
	listener   = kind{Allowed: "host:port or empty", parse: parseOptionalAddress}
	hostNames  = kind{Allowed: "empty or host names, comma separated", parse: parseHostNames}
	cpu        = kind{Allowed: "none or 0..1023", parse: parseCPU}
	pathPrefix = kind{Allowed: "empty or /segment...", parse: parsePathPrefix}
	logOrigin  = kind{Allowed: "empty, or 1 to 200 printable characters without blank and plus",
		parse: parseOrigin}
	money = kind{Allowed: fmt.Sprintf("above 0 to %d, at most 6 decimals", int64(maxCurrency)),
		parse: parseMoney}
	AccountIDs = kind{Allowed: "account ids 1..4294967295, comma separated", parse: ParseAccountIDs}
	tickers    = kind{Allowed: "tickers, comma separated", parse: ParseTickers}
	zone       = kind{Allowed: "a time zone such as America/New_York", parse: parseZone}
	memberID   = kind{Allowed: "empty or 1..255", parse: parseMemberID}
	members    = kind{Allowed: "empty or id=host:raftport@host:httpport,...", parse: parseMembers}
)

var errNotAllowed = errors.New("not allowed")

// parseOrigin reads the name of a log, as C2SP signed notes allow it.
func parseOrigin(s string) (any, error) {
	for _, ch := range s {
		if ch <= ' ' || ch > '~' || ch == '+' {
			return nil, errNotAllowed
		}
	}
	if len(s) > 200 {
		return nil, errNotAllowed
	}
	return s, nil
}

// parseText refuses what would begin another line in a log or end a C string.
func parseText(s string) (any, error) {
	if strings.ContainsAny(s, "\x00\n\r") {
		return nil, errNotAllowed
	}
	return s, nil
}

// required is a kind that does not allow an empty text.
func required(k kind) kind {
	inner := k.parse
	k.Allowed = "non-empty " + k.Allowed
	k.parse = func(s string) (any, error) {
		if s == "" {
			return nil, errNotAllowed
		}
		return inner(s)
	}
	return k
}

func parseBool(s string) (any, error) {
	switch s {
	case "true", "on", "yes", "1":
		return true, nil
	case "false", "off", "no", "0":
		return false, nil
	}
	return nil, errNotAllowed
}

func oneOf(words ...string) kind {
	return kind{Allowed: strings.Join(words, ", "), parse: func(s string) (any, error) {
		if !slices.Contains(words, s) {
			return nil, errNotAllowed
		}
		return s, nil
	}}
}

// whole is a whole number within inclusive bounds.
func whole(lo, hi int64) kind {
	allowed := fmt.Sprintf("%d..%d", lo, hi)
	if hi == math.MaxInt64 {
		allowed = fmt.Sprintf("%d or more", lo)
	}
	return kind{Allowed: allowed, parse: func(s string) (any, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < lo || n > hi {
			return nil, errNotAllowed
		}
		return n, nil
	}}
}

func powerOfTwo(lo, hi int64) kind {
	k := whole(lo, hi)
	inner := k.parse
	k.Allowed = "a power of two " + k.Allowed
	k.parse = func(s string) (any, error) {
		v, err := inner(s)
		if err == nil && bits.OnesCount64(uint64(v.(int64))) != 1 {
			return nil, errNotAllowed
		}
		return v, err
	}
	return k
}

// duration is a Go duration such as 50ms or 1m30s, within inclusive bounds.
func duration(lo, hi time.Duration) kind {
	return kind{Allowed: fmt.Sprintf("%s..%s", lo, hi), parse: func(s string) (any, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < lo || d > hi {
			return nil, errNotAllowed
		}
		return d, nil
	}}
}

// byteUnits are the suffixes of a size, longest first so that "B" is tried last.
var byteUnits = []struct {
	suffix string
	shift  uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"B", 0}, {"", 0}}

// bytesOf is a size such as 4096, 64KiB or 256MiB, within inclusive bounds.
func bytesOf(lo, hi int64) kind {
	return kind{Allowed: fmt.Sprintf("%d..%d bytes, such as 256MiB", lo, hi),
		parse: func(s string) (any, error) {
			for _, u := range byteUnits {
				digits, ok := strings.CutSuffix(s, u.suffix)
				if !ok {
					continue
				}
				n, err := strconv.ParseInt(digits, 10, 64)
				if err != nil || n < 0 || n > math.MaxInt64>>u.shift {
					return nil, errNotAllowed
				}
				if n <<= u.shift; n < lo || n > hi {
					return nil, errNotAllowed
				}
				return n, nil
			}
			return nil, errNotAllowed
		}}
}

// secret is a text of at least minBytes that is never shown.
func secret(minBytes int) kind {
	return kind{Allowed: fmt.Sprintf("at least %d bytes", minBytes), secret: true,
		parse: func(s string) (any, error) {
			if s != "" && len(s) < minBytes {
				return nil, errNotAllowed
			}
			return parseText(s)
		}}
}

// secretPair is one secret, or two behind a comma.
func secretPair(minBytes int) kind {
	k := secret(minBytes)
	one := k.parse
	k.Allowed += ", or two of them behind a comma"
	k.parse = func(s string) (any, error) {
		parts := strings.Split(s, ",")
		for _, part := range parts {
			if _, err := one(part); err != nil || len(parts) > 2 || len(parts) == 2 && part == "" {
				return nil, errNotAllowed
			}
		}
		return s, nil
	}
	return k
}

// urlOf is empty or a URL of one of the schemes; its password is never shown.
func urlOf(schemes ...string) kind {
	return kind{Allowed: "empty or " + strings.Join(schemes, "://... or ") + "://...", url: true,
		parse: func(s string) (any, error) {
			if s == "" {
				return s, nil
			}
			u, err := url.Parse(s)
			if err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" && !unixSocket(u) {
				return nil, errNotAllowed
			}
			return s, nil
		}}
}

// unixSocket reports that a URL names PostgreSQL's socket by its folder, as in
// postgres://user@/database?host=/var/run/postgresql.
func unixSocket(u *url.URL) bool {
	return strings.HasPrefix(u.Scheme, "postgres") && strings.HasPrefix(u.Query().Get("host"), "/")
}

// parseAddress wants a port in plain digits, so that one address has one text.
func parseAddress(s string) (any, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(host, " /\t") {
		return nil, errNotAllowed
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return nil, errNotAllowed
	}
	return s, nil
}

// parseOptionalAddress also takes an empty text: no listener.
func parseOptionalAddress(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	return parseAddress(s)
}

// parseHostNames reads names such as console.example,desk.example.
func parseHostNames(s string) (any, error) {
	for name := range strings.SplitSeq(s, ",") {
		if s != "" && (name == "" || strings.ContainsAny(name, " /:\t@")) {
			return nil, errNotAllowed
		}
	}
	return s, nil
}

// parseCPU reads a core; none is -1.
func parseCPU(s string) (any, error) {
	if s == "none" {
		return int64(-1), nil
	}
	return whole(0, 1023).parse(s)
}

// parsePathPrefix wants segments that mean the same in every client and proxy: none empty, no dots
// alone, nothing that is escaped.
func parsePathPrefix(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	for _, segment := range strings.Split(s[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return nil, errNotAllowed
		}
		for _, b := range []byte(segment) {
			if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '.' ||
				b == '_' || b == '-') {
				return nil, errNotAllowed
			}
		}
	}
	if s[0] != '/' {
		return nil, errNotAllowed
	}
	return s, nil
}

// parseMoney reads currency units into millionths, exactly.
func parseMoney(s string) (any, error) {
	micros, err := strictjson.ParseDecimal([]byte(s))
	if err != nil || micros <= 0 {
		return nil, errNotAllowed
	}
	return micros, nil
}

func ParseAccountIDs(s string) (any, error) {
	var ids []uint32
	for _, field := range fields(s) {
		n, err := strconv.ParseUint(field, 10, 32)
		if err != nil || n == 0 || slices.Contains(ids, uint32(n)) {
			return nil, errNotAllowed
		}
		ids = append(ids, uint32(n))
	}
	return ids, nil
}

func ParseTickers(s string) (any, error) {
	var list []string
	for _, field := range fields(s) {
		if !control.ValidTicker(field) || slices.Contains(list, field) {
			return nil, errNotAllowed
		}
		list = append(list, field)
	}
	return list, nil
}

// fields splits a comma separated list and trims each part; an empty text has none.
func fields(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// parseZone refuses the machine's own zone: dates must not depend on where the process runs.
func parseZone(s string) (any, error) {
	if s == "" || s == "Local" {
		return nil, errNotAllowed
	}
	if _, err := time.LoadLocation(s); err != nil {
		return nil, errNotAllowed
	}
	return s, nil
}

// parseMemberID reads 1 to 255; empty, 0, is no cluster.
func parseMemberID(s string) (any, error) {
	if s == "" {
		return int64(0), nil
	}
	return whole(1, 255).parse(s)
}

func parseMembers(s string) (any, error) {
	if s == "" {
		return []quorum.Member(nil), nil
	}
	return quorum.ParseMembers(s)
}
