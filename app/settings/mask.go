package settings

import (
	"net/url"
	"strings"
)

// masked stands for what must not be shown.
const masked = "xxxxx"

// maskedURLs masks the passwords and tokens of a URL, or of several with a comma between them.
func maskedURLs(text string) string {
	if !strings.Contains(text, ",") || strings.Count(text, "://") < 2 {
		return maskedURL(text) // one URL may name several hosts
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		if !strings.Contains(parts[i], "://") {
			parts[i] = masked // the comma was in a password
			continue
		}
		parts[i] = maskedURL(parts[i])
	}
	return strings.Join(parts, ",")
}

// maskedURL masks what is secret in one URL: the password, a user name without one at a broker,
// which is a token there, and query parameters such as password and sslpassword. One without
// secrets is returned as it is; one that cannot be read is masked as a whole.
func maskedURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return masked
	}
	found := false
	if u.User != nil {
		_, password := u.User.Password()
		switch {
		case password:
			u.User, found = url.UserPassword(u.User.Username(), masked), true
		case (u.Scheme == "nats" || u.Scheme == "tls") && u.User.Username() != "":
			u.User, found = url.User(masked), true
		}
	}
	query := strings.Split(u.RawQuery, "&")
	for i := range query {
		name, _, _ := strings.Cut(query[i], "=")
		if secretName(name) {
			query[i], found = name+"="+masked, true
		}
	}
	if !found {
		return text
	}
	u.RawQuery = strings.Join(query, "&")
	return u.String()
}

// secretName reports that a query parameter of that name, as it was sent, is a secret.
func secretName(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	name = strings.ToLower(name)
	for _, word := range []string{"password", "secret", "token"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
