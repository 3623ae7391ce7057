package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// errUnsendable marks a request that no connection can carry, so that no byte of it was sent.
// Another attempt, or another member, would change nothing.
var errUnsendable = errors.New("nothing was sent")

// given names the headers whose values the caller chooses.
var given = map[string]string{
	"Authorization":        "the token",
	"X-Reason":             "the reason",
	"X-Auth-Master-Secret": "the master secret",
	"Last-Event-ID":        "the ID of the event",
}

// sendable returns an error that names the value which HTTP cannot carry: one with a control
// character other than a tab. The transport refuses it too, but with an error that looks like one
// of a broken connection. The value itself may be a secret, so the error does not have it.
func sendable(header http.Header) error {
	for name, what := range given {
		for _, value := range header[http.CanonicalHeaderKey(name)] {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return fmt.Errorf("%w: %s has a control character, such as the end of a line",
					errUnsendable, what)
			}
		}
	}
	return nil
}
