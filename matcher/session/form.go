package session

import "posttrade/matcher"

// wellFormed is the strict decoder's judgement of a record. It is outside the hot files because the
// decoder formats the text of a refusal. A refusal is rare, and only its client pays for it.
func wellFormed(c *matcher.Command) bool { return c.Verify() == nil }
