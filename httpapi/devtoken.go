package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"strings"
	"time"

	"posttrade/matcher/gate"
	"posttrade/matcher/strictjson"
)

// TokenMint says how the trade-processor mints tokens for local development.
//
// The endpoint is for development: with the secret any caller can make a token for any account.
type TokenMint struct {
	// MasterSecret is the secret that a caller must present, as it is now. When it is empty, or there
	// is no such function, nothing is minted and the endpoint does not exist.
	MasterSecret func() []byte
	Now          func() time.Time // nil: time.Now
}

// headerMasterSecret carries the master secret.
const headerMasterSecret = "X-Auth-Master-Secret"

// The errors of a dev-token body whose JSON is well-formed.
var (
	errBlank    = errors.New("must not be blank")
	errTooLarge = errors.New("the token would be longer than 4096 bytes")
)

// tokenRequest is the body of POST /auth/dev-token.
type tokenRequest struct {
	claims gate.Claims
	life   time.Duration
}

// tokenRequest reads the body. subject and ttlSeconds are required; accounts and admin are none and
// false when they are absent.
func (d *decoder) tokenRequest() (q tokenRequest) {
	var subject, life bool
	for key := range d.members {
		switch string(key) {
		case "subject":
			d.field = "subject"
			q.claims.Subject, subject = string(d.json.String()), true
			if strings.TrimSpace(q.claims.Subject) == "" {
				d.fail(errBlank)
			}
		case "accounts":
			q.claims.Accounts = d.accounts()
		case "admin":
			q.claims.Admin = d.flag("admin")
		case "ttlSeconds":
			d.field = "ttlSeconds"
			n := d.json.Int()
			if d.json.Err() == nil && (n < 1 || n > int64(gate.MaxTokenLife/time.Second)) {
				d.fail(strictjson.ErrRange)
			}
			q.life, life = time.Duration(n)*time.Second, true
		default:
			d.unknown(key)
		}
	}
	d.require("subject", subject)
	d.require("ttlSeconds", life)
	return q
}

// accounts reads an array of account ids. Their number is bounded by the length of the token that
// they give.
func (d *decoder) accounts() (ids []uint32) {
	d.field = "accounts"
	for d.json.BeginArray(); d.json.NextItem(); {
		n := d.json.Int()
		if d.json.Err() == nil && (n < 1 || n > 1<<32-1) {
			d.fail(strictjson.ErrRange)
		}
		ids = append(ids, uint32(n))
	}
	return ids
}

// mintToken is POST /auth/dev-token.
//
// The secret is checked before the body is read. Minting is logged without the token, and changes
// nothing: a token is not kept. A client that prefers text gets the bare token.
func (q *inquiry) mintToken() problem {
	mint := &q.p.Mint
	if mint.MasterSecret == nil {
		return problemRoute
	}
	master := mint.MasterSecret()
	if len(master) == 0 {
		return problemRoute
	}
	if p, knows := q.provesSecret(master); !knows {
		return p
	}
	if p := q.readJSON(); p.status != 0 {
		return p
	}
	ask := q.body.tokenRequest()
	if p := q.bodyRead(); p.status != 0 {
		return p
	}
	now := mint.Now()
	token := q.p.Verifier.Mint(ask.claims, ask.life, now)
	if len(token) > gate.MaxTokenBytes {
		q.body.field = ""
		return q.body.bodyProblem(errTooLarge, -1)
	}
	q.p.log.Info("httpapi: development token minted", "subject", ask.claims.Subject,
		"accounts", len(ask.claims.Accounts), "admin", ask.claims.Admin, slog.Duration("ttl", ask.life))
	q.ctx.Response.Header.Set("Cache-Control", "no-store")
	if prefer(&q.ctx.Request.Header, "Accept", contentJSON, contentText) == 1 {
		q.send(200, append(q.begin(), token...))
		q.ctx.Response.Header.SetContentType(contentTextUTF8)
		return problem{}
	}
	b := append(q.begin(), `{"token":"`...)
	b = append(b, token...)
	b = append(b, `","tokenType":"Bearer","expiresAt":`...)
	expires := now.Add(ask.life).Unix() // whole seconds, as in the claim exp
	return q.send(200, append(appendTime(b, expires*1000), '}'))
}

// provesSecret checks the master secret. An address that sends wrong ones has to wait, and learns
// nothing meanwhile.
//
// p is the answer when knows is false; it may be written already, and is then empty. An address
// that knows the secret has its mistakes forgotten.
func (q *inquiry) provesSecret(master []byte) (p problem, knows bool) {
	from, now := q.origin(), q.p.Mint.Now()
	if wait := q.p.guesses.wait(from, now); wait > 0 {
		return q.throttled(wait), false
	}
	if q.knowsSecret(master) {
		q.p.guesses.right(from)
		return problem{}, true
	}
	if q.p.guesses.note(from, now) {
		q.p.log.Warn("httpapi: wrong master secrets for development tokens: the address has to wait",
			"address", from, "wrong", throttleAfter, slog.Duration("wait", throttleFor))
	}
	return problemMaster, false
}

// knowsSecret reports that the request carries the master secret, exactly once. The time of the
// comparison does not depend on where a wrong secret differs, nor on the length of the master
// secret.
//
// Both are hashed first: the hashes have one length.
func (q *inquiry) knowsSecret(secret []byte) bool {
	given := q.ctx.Request.Header.PeekAll(headerMasterSecret)
	if len(given) != 1 {
		return false
	}
	got, want := sha256.Sum256(given[0]), sha256.Sum256(secret)
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
