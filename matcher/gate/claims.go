package gate

import (
	"slices"

	"posttrade/matcher/strictjson"
)

// Claims identify a verified caller. Callers may share them: never write to Accounts. The zero
// value is a caller that is entitled to nothing.
type Claims struct {
	// As the token names it, not empty. Revocations and operators' notes name the caller by it.
	Subject  string
	Admin    bool
	Accounts []uint32 // ascending, each once
	Metrics  bool     // the token reads metrics and does nothing else
}

// Entitled reports whether the caller may act for an account: an admin for any account, every other
// caller for those in the token.
func (c *Claims) Entitled(account uint32) bool {
	if c.Admin {
		return true
	}
	_, found := slices.BinarySearch(c.Accounts, account)
	return found
}

// payload is the content of the second part of a token. The byte slices point into the text of the
// token and are valid during one verification. Where an absent member differs from an empty one, a
// flag says that it was there.
type payload struct {
	claims   Claims
	expires  int64 // seconds since the epoch
	starts   int64 // of nbf, or earliest
	issued   int64 // of iat, or earliest
	issuer   []byte
	hasIss   bool
	subject  []byte
	hasExp   bool
	otherSub []byte // "subject", another name for "sub"
	hasSub   bool
	hasOther bool
}

// earliest is the starts of a token without nbf, and the issued of one without iat.
const earliest = -1 << 63

// readHeader checks a token's header: {"alg":"HS256"}, no critical extensions. Any other algorithm
// is refused, "none" too: the header does not choose how the token is judged.
func readHeader(r *strictjson.Reader, b []byte) error {
	alg := false
	r.Reset(b)
	for key := range r.Members {
		switch string(key) {
		case "alg":
			alg = string(r.String()) == "HS256"
		case "typ":
			r.String()
		case "crit":
			return ErrTokenHeader
		default:
			r.Skip()
		}
	}
	if r.End() != nil || !alg {
		return ErrTokenHeader
	}
	return nil
}

// readPayload reads the claims, each of its exact type, and copies the parts that outlive b. exp
// and a subject are required; sub and subject, when both are there, must agree. A token for metrics
// has no other right. An unknown claim is skipped, whatever it holds.
func readPayload(r *strictjson.Reader, b []byte) (payload, error) {
	p := payload{starts: earliest, issued: earliest}
	r.Reset(b)
	for key := range r.Members {
		switch string(key) {
		case "sub":
			p.subject, p.hasSub = r.String(), true
		case "subject":
			p.otherSub, p.hasOther = r.String(), true
		case "accounts":
			p.claims.Accounts = readAccounts(r)
		case "admin":
			p.claims.Admin = r.Bool()
		case "metrics":
			p.claims.Metrics = r.Bool()
		case "exp":
			p.expires, p.hasExp = r.Int(), true
		case "nbf":
			p.starts = r.Int()
		case "iat":
			p.issued = r.Int()
		case "iss":
			p.issuer, p.hasIss = r.String(), true
		default:
			r.Skip()
		}
	}
	if !p.hasSub {
		p.subject = p.otherSub
	}
	switch {
	case r.End() != nil, !p.hasExp, len(p.subject) == 0:
		return payload{}, ErrTokenClaims
	case p.hasSub && p.hasOther && string(p.subject) != string(p.otherSub):
		return payload{}, ErrTokenClaims
	case p.claims.Metrics && (p.claims.Admin || len(p.claims.Accounts) > 0):
		return payload{}, ErrTokenClaims
	}
	p.claims.Subject = string(p.subject)
	return p, nil
}

// readAccounts reads an array of account ids, in any order, also repeated. An id that is no uint32
// makes the reader fail, so the token is refused as a whole.
func readAccounts(r *strictjson.Reader) []uint32 {
	accounts := []uint32{}
	for r.BeginArray(); r.NextItem(); {
		id := r.Int()
		if id < 0 || id > 1<<32-1 {
			r.Fail(ErrTokenClaims)
		}
		accounts = append(accounts, uint32(id))
	}
	slices.Sort(accounts)
	return slices.Compact(accounts)
}
