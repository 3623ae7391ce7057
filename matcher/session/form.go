package session

import (
	"posttrade/blotter"
	"posttrade/matcher"
)

const postOnly = blotter.PostOnly

// wellFormed is the strict decoder's judgement of a record. It stands apart from the
// hot files because a refusal is worded there; one is rare, and costs its client.
func wellFormed(c *matcher.Command) bool { return c.Verify() == nil }
