package settings

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // settlement.timezone works on a machine without zone files

	"posttrade/journal/quorum"
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// errNotAllowed is the error of every parse function. set replaces it by a message with the kind's
// Allowed.
var errNotAllowed = errors.New("not allowed")

// parseOrigin reads the name of a log, as C2SP signed notes allow it.
//
// A blank or a plus sign would break the lines of signatures, where the name of a key stands. The
// bound of 200 bytes is this program's own.
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

// parseBool allows four spellings of each, in lower case only.
func parseBool(s string) (any, error) {
	switch s {
	case "true", "on", "yes", "1":
		return true, nil
	case "false", "off", "no", "0":
		return false, nil
	}
	return nil, errNotAllowed
}

// unixSocket reports that a URL names PostgreSQL's socket by its folder, as in
// postgres://user@/database?host=/var/run/postgresql.
func unixSocket(u *url.URL) bool {
	return strings.HasPrefix(u.Scheme, "postgres") && strings.HasPrefix(u.Query().Get("host"), "/")
}

// parseAddress wants a port in plain digits, so that one address has one text.
//
// The host may be empty, which listens on every interface. Port 0 lets the system choose a free
// port.
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
//
// They are names alone, without a scheme, a port, a path or a user.
func parseHostNames(s string) (any, error) {
	for name := range strings.SplitSeq(s, ",") {
		if s != "" && (name == "" || strings.ContainsAny(name, " /:\t@")) {
			return nil, errNotAllowed
		}
	}
	return s, nil
}

// parseCPU reads a core; none is -1.
//
// Whether the machine has that core is found out when the thread is pinned.
func parseCPU(s string) (any, error) {
	if s == "none" {
		return int64(-1), nil
	}
	return whole(0, 1023).parse(s)
}

// parsePathPrefix wants segments that mean the same in every client and proxy: none empty, no dots
// alone, nothing that is escaped.
//
// The prefix begins with a slash and does not end with one.
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
//
// The text has at most 6 decimals; a float could not hold every such amount.
func parseMoney(s string) (any, error) {
	micros, err := strictjson.ParseDecimal([]byte(s))
	if err != nil || micros <= 0 {
		return nil, errNotAllowed
	}
	return micros, nil
}

// ParseAccountIDs reads a list such as 1,2,22214 into a []uint32, nil for an empty text. Blanks
// around an id are allowed; 0 and an id that occurs twice are not. Commands use it for flags of
// their own.
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

// ParseTickers reads a list such as AAPL,MSFT into a []string, nil for an empty text. A ticker
// that occurs twice is refused.
func ParseTickers(s string) (any, error) {
	var list []string
	for _, field := range fields(s) {
		if !matcher.ValidTicker(field) || slices.Contains(list, field) {
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
//
// A name that is not in the zone files is refused. The binary has a copy of them for a machine
// without.
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

// parseMembers gives a []quorum.Member in the order of the ids, nil for an empty text: no cluster.
func parseMembers(s string) (any, error) {
	if s == "" {
		return []quorum.Member(nil), nil
	}
	return quorum.ParseMembers(s)
}
