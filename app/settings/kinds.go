package settings

import (
	"fmt"
	"math"
	"math/bits"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // settlement.timezone works on a machine without zone files
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
