package broker

import (
	"fmt"
	"net/url"
	"strings"
)

// parseURLs checks a list of servers. It returns the list in the form of nats.go, and the same list
// without credentials. The list itself is never part of an error.
//
// An error names the place in the list, from 1. A path, a query or a fragment is refused: it would
// have no effect.
func parseURLs(list string) (urls, places string, err error) {
	var all, shown []string
	for i, one := range strings.Split(list, ",") {
		one = strings.TrimSpace(one)
		u, err := url.Parse(one)
		if err != nil {
			// url.Parse repeats its input in its error, and with it a password.
			return "", "", fmt.Errorf("broker: open url=#%d: not a URL", i+1)
		}
		if u.Scheme != "nats" && u.Scheme != "tls" {
			return "", "", fmt.Errorf("broker: open url=#%d: scheme is neither nats nor tls", i+1)
		}
		if u.Hostname() == "" {
			return "", "", fmt.Errorf("broker: open url=#%d: no host", i+1)
		}
		if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
			return "", "", fmt.Errorf("broker: open url=#%d: more than scheme, user, host and port", i+1)
		}
		if u.Port() == "" {
			u.Host += ":4222"
		}
		all = append(all, u.Scheme+"://"+userinfo(u)+u.Host)
		shown = append(shown, u.Host)
	}
	return strings.Join(all, ","), strings.Join(shown, ","), nil
}

// userinfo is the part of a URL before the host, escaped as it must be there.
func userinfo(u *url.URL) string {
	if u.User == nil {
		return ""
	}
	return u.User.String() + "@"
}
