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
//
// A kind is a value without state; functions such as whole and required make variants of it.
type kind struct {
	// What is allowed, in words, for help and messages: "invalid setting ...: want <Allowed>".
	Allowed string
	// Turns a text into the type of the accessor. Its error says nothing: set writes the message from
	// Allowed, because the text may be a secret.
	parse func(string) (any, error)
	// On the command line the flag may stand without a value.
	Boolean bool
	// The value is never shown, not even in an error.
	secret bool
	// The value is a URL, which may contain a password. It is shown with the password masked, and in
	// an error not at all.
	url bool
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
//
// It is for texts that name a place: an empty path would mean the working directory.
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

// oneOf allows exactly the words, in their case. It parses to a string.
func oneOf(words ...string) kind {
	return kind{Allowed: strings.Join(words, ", "), parse: func(s string) (any, error) {
		if !slices.Contains(words, s) {
			return nil, errNotAllowed
		}
		return s, nil
	}}
}

// whole is a whole number within inclusive bounds.
//
// It parses to an int64, in decimal digits with an optional sign.
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

// powerOfTwo is a whole number that is a power of two within the bounds: a ring finds a slot by a
// mask.
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
//
// A number without a unit is refused, except 0.
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
//
// Each shift is the unit as a power of two: KiB is 2^10 bytes. Units in powers of ten are not
// known.
var byteUnits = []struct {
	suffix string
	shift  uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"B", 0}, {"", 0}}

// bytesOf is a size such as 4096, 64KiB or 256MiB, within inclusive bounds.
//
// It parses to an int64 of bytes. Fractions are refused.
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
//
// An empty text is allowed and means that none is set.
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
//
// The second one is the former secret, which still verifies tokens while new ones are signed with
// the first. So a secret can be exchanged without a moment in which good tokens are refused.
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
//
// It does not connect and resolves no name: a server that cannot be reached is no reason to refuse
// a start.
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
