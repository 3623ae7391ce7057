package gate

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// The reasons for which a token is refused. They carry nothing of the token; the caller gets 401
// for all.
var (
	ErrTokenLength    = errors.New("token too long")
	ErrTokenFormat    = errors.New("not a compact JWT")
	ErrTokenHeader    = errors.New("token header is not HS256")
	ErrTokenSignature = errors.New("token signature does not match")
	ErrTokenClaims    = errors.New("token claims are malformed or incomplete")
	ErrTokenIssuer    = errors.New("token of another issuer")
	ErrTokenExpired   = errors.New("token has expired")
	ErrTokenEarly     = errors.New("token is not valid yet")
	ErrTokenRevoked   = errors.New("token is revoked")
	ErrTokenMetrics   = errors.New("token is for metrics alone")
)

// Errors of NewVerifier.
var (
	ErrSecret = errors.New("secret is shorter than 32 bytes")
	ErrLeeway = errors.New("leeway is not 0 to 30 s")
)

// Limits of tokens. A secret has at least the length of the hash; the leeway bounds how far the
// clocks of issuer and verifier may differ.
const (
	MaxTokenBytes  = 4096
	MinSecretBytes = 32
	MaxLeeway      = 30 * time.Second

	// MaxTokenLife is the longest life of a token that is minted for a caller: it ends earlier only
	// when its subject is revoked or the secret changes.
	MaxTokenLife = 24 * time.Hour

	// How many verified tokens are remembered, a power of two. Two tokens that share a place replace
	// each other, which costs a verification and nothing else.
	rememberedTokens = 1024
	signatureChars   = 43 // 32 bytes in base64url
)

// Verifier checks tokens. Any number of goroutines may use one.
//
// It remembers the tokens that it has verified, so that a returning caller costs a look-up; it
// judges their times again on each call. It finds a remembered token by a seeded 64-bit hash of the
// whole token and then compares the whole token.
type Verifier struct {
	issuer string
	leeway time.Duration
	now    func() time.Time
	seed   maphash.Seed
	gate   *Gate                // knows which tokens are revoked; nil: none is
	keys   atomic.Pointer[keys] // never changed but for what they remember, only replaced
}

// keys are the secrets, and the tokens that they have signed. Renew replaces all of it at once, so
// a token of a secret that is gone is forgotten with the secret.
type keys struct {
	first     []byte    // signs
	all       [][]byte  // first, then the former ones
	scratches sync.Pool // of *verifyScratch
	known     [rememberedTokens]atomic.Pointer[verified]
}

// verified is a token with a valid signature, form and issuer. It never changes.
type verified struct {
	hash            uint64
	token           []byte
	claims          Claims
	subject         matcher.SubjectHash
	starts, expires int64
	issued          int64 // seconds since the epoch, earliest without iat
}

// verifyScratch is the memory that one verification works with, from a pool of its keys: one
// goroutine at a time has it. The size of text bounds the parts that can be decoded.
type verifyScratch struct {
	macs   []hash.Hash // one a secret
	reader strictjson.Reader
	text   [MaxTokenBytes]byte
	sum    [sha256.Size]byte
	given  [sha256.Size]byte
}

// NewVerifier returns a Verifier of tokens signed with secret, or with a former one. With an issuer
// other than "" tokens must name it. now is the clock, nil for the system's.
//
// Errors: ErrSecret, ErrLeeway; the Verifier is then not usable. The secrets are copied.
func NewVerifier(secret []byte, issuer string, leeway time.Duration,

	now func() time.Time, former ...[]byte) (*Verifier, error) {
	if leeway < 0 || leeway > MaxLeeway {
		return nil, fmt.Errorf("gate: new verifier leeway=%s: %w", leeway, ErrLeeway)
	}
	if now == nil {
		now = time.Now
	}
	v := &Verifier{issuer: issuer, leeway: leeway, now: now, seed: maphash.MakeSeed()}
	return v, v.Renew(secret, former...)
}

// Renew replaces the secrets. A token that none of them has signed is refused from now on, also one
// that was remembered. ErrSecret when one is too short; the secrets before then stay. Any
// goroutine, while others verify: a verification that has begun ends with the secrets that it began
// with.
func (v *Verifier) Renew(secret []byte, former ...[]byte) error {
	secrets := append([][]byte{secret}, former...)
	for i, s := range secrets {
		if len(s) < MinSecretBytes {
			return fmt.Errorf("gate: new verifier bytes=%d: %w", len(s), ErrSecret)
		}
		secrets[i] = bytes.Clone(s)
	}
	k := &keys{first: secrets[0], all: secrets}
	k.scratches.New = func() any {
		b := new(verifyScratch)
		for _, s := range secrets {
			b.macs = append(b.macs, hmac.New(sha256.New, s))
		}
		return b
	}
	v.keys.Store(k)
	return nil
}

// Has reports whether these are the secrets in force, in this order.
func (v *Verifier) Has(secrets [][]byte) bool {
	return slices.EqualFunc(v.keys.Load().all, secrets, bytes.Equal)
}

// Verify returns the claims of a token in compact form that is signed with
// HS256, complete and valid now. The signature is judged before any claim is read. A token for
// metrics is refused with ErrTokenMetrics: only VerifyMetrics takes it.
//
// The errors are the ErrToken sentinels, unwrapped. It does not allocate for a token that was
// verified before, or that is refused before its claims are read.
func (v *Verifier) Verify(token []byte) (Claims, error) {
	claims, err := v.VerifyMetrics(token)
	if err == nil && claims.Metrics {
		return Claims{}, ErrTokenMetrics
	}
	return claims, err
}

// VerifyMetrics is Verify for what a token for metrics opens too. It judges the cheap and stable
// things once for each token, the times and a revocation at every call.
func (v *Verifier) VerifyMetrics(token []byte) (Claims, error) {
	if len(token) > MaxTokenBytes {
		return Claims{}, ErrTokenLength
	}
	hash := maphash.Bytes(v.seed, token)
	k := v.keys.Load()
	slot := &k.known[hash%rememberedTokens]
	t := slot.Load()
	if t == nil || t.hash != hash || !bytes.Equal(t.token, token) {
		var err error
		if t, err = v.verify(k, token); err != nil {
			return Claims{}, err
		}
		t.hash = hash
		slot.Store(t)
	}
	if v.gate != nil { // before the times: Holds goes by it
		if millis, found := v.gate.Revoked(t.subject); found && t.issued <= millis/1000 {
			return Claims{}, ErrTokenRevoked
		}
	}
	now := v.now()
	if now.Add(-v.leeway).Unix() >= t.expires {
		return Claims{}, ErrTokenExpired
	}
	if now.Add(v.leeway).Unix() < t.starts {
		return Claims{}, ErrTokenEarly
	}
	return t.claims, nil
}

// Holds reports that a file whose sending began with this token, which was valid then, may go on.
// It may outlast the token, but not its revocation, nor the secret that has signed it.
func (v *Verifier) Holds(token []byte) bool {
	_, err := v.Verify(token)
	return err == nil || errors.Is(err, ErrTokenExpired)
}

// Obey makes the verifier refuse the tokens that are revoked at a gate. It comes before the first
// use of the verifier.
func (v *Verifier) Obey(g *Gate) { v.gate = g }

// verify judges everything but the times and a revocation. It copies the token, which belongs to
// the caller. The checks come in the order of the trust that they need: form, header, signature,
// and only then the claims.
func (v *Verifier) verify(k *keys, token []byte) (*verified, error) {
	first := bytes.IndexByte(token, '.')
	last := bytes.LastIndexByte(token, '.')
	if first <= 0 || last <= first+1 || last == len(token)-1 ||
		bytes.IndexByte(token[first+1:last], '.') >= 0 {
		return nil, ErrTokenFormat
	}
	b := k.scratches.Get().(*verifyScratch)
	defer k.scratches.Put(b)

	header, ok := decode(b.text[:], token[:first])
	if !ok {
		return nil, ErrTokenFormat
	}
	if err := readHeader(&b.reader, header); err != nil {
		return nil, err
	}
	if signature := token[last+1:]; len(signature) != signatureChars {
		return nil, ErrTokenSignature
	} else if _, ok := decode(b.given[:], signature); !ok {
		return nil, ErrTokenFormat
	}
	if !b.signed(token[:last]) {
		return nil, ErrTokenSignature
	}
	body, ok := decode(b.text[:], token[first+1:last])
	if !ok {
		return nil, ErrTokenFormat
	}
	p, err := readPayload(&b.reader, body)
	if err != nil {
		return nil, err
	}
	if v.issuer != "" && (!p.hasIss || string(p.issuer) != v.issuer) {
		return nil, ErrTokenIssuer
	}
	return &verified{
		token: bytes.Clone(token), claims: p.claims, starts: p.starts, expires: p.expires,
		issued: p.issued, subject: matcher.HashSubject(p.claims.Subject),
	}, nil
}

// signed reports whether one of the secrets has made the given signature of text. The comparison
// takes the same time wherever two signatures differ.
func (b *verifyScratch) signed(text []byte) bool {
	for _, mac := range b.macs {
		mac.Reset()
		mac.Write(text)
		if hmac.Equal(mac.Sum(b.sum[:0]), b.given[:]) {
			return true
		}
	}
	return false
}

// encoding refuses padding and trailing bits that are not zero.
var encoding = base64.RawURLEncoding.Strict()

// decode reads one part of a token into dst. The standard decoder skips line
// breaks, which a token must not hold.
func decode(dst, part []byte) ([]byte, bool) {
	if bytes.IndexByte(part, '\n') >= 0 || bytes.IndexByte(part, '\r') >= 0 {
		return nil, false
	}
	n, err := encoding.Decode(dst, part)
	return dst[:n], err == nil
}
