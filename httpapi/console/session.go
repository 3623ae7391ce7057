package console

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"posttrade/matcher/gate"
)

// MintedLife is how long a session by one click lasts.
const MintedLife = 12 * time.Hour

// maxCookieToken is the longest token that a browser keeps in a cookie of 4096 bytes.
//
// A token of gate.MaxTokenBytes has no room there beside the cookie's name and attributes.
const maxCookieToken = 4000

// session is what a page learns of the session it is in.
//
// It never holds the token: no script may see it. Subject and what follows are empty without a
// session.
type session struct {
	SignedIn  bool     `json:"signedIn"`
	OneClick  bool     `json:"oneClick"` // signing in needs no token
	Subject   string   `json:"subject,omitempty"`
	Admin     bool     `json:"admin"`
	Accounts  []uint32 `json:"accounts,omitempty"`
	ExpiresAt string   `json:"expiresAt,omitempty"`
	// CSRF is what the page sends in headerCSRF with every request that writes.
	CSRF   string            `json:"csrf,omitempty"`
	Prover bool              `json:"prover"` // the page Evidence has its verifier
	About  map[string]string `json:"about,omitempty"`
}

// serveSession is /api/session: GET shows it, POST signs in, DELETE signs out.
//
// Nothing is kept here: signing out removes the cookie, and the token stays valid until it ends or
// is revoked. No cache keeps an answer.
func (c *Console) serveSession(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodPost:
		c.signIn(w, r)
	case http.MethodDelete:
		if token, _, ok := c.sessionOf(r); ok && !knowsCSRF(r, token) {
			refuseCSRF(w)
			return
		}
		http.SetCookie(w, c.cookie(r, "", -1))
		c.showSession(w, r, "", gate.Claims{})
	default:
		if allow(w, r, http.MethodGet, http.MethodPost, http.MethodDelete) {
			token, claims, _ := c.sessionOf(r)
			c.showSession(w, r, token, claims)
		}
	}
}

// signIn makes a session of the token in the body. A body without one is the one-click sign-in.
//
// The token is verified before the cookie is set; the cookie lives as long as the token. Errors:
// 415, 413, 400 for a body or a token that cannot be used, 403 where a token is needed, 401 for one
// that is not valid. The one click is logged, with the address.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE",
			"the body must be application/json")
		return
	}
	var body struct {
		Token string `json:"token"`
	}
	text, err := readBody(w, r, 2*gate.MaxTokenBytes)
	if err != nil {
		refuseBody(w, err)
		return
	}
	if err := json.Unmarshal(text, &body); err != nil {
		refuse(w, http.StatusBadRequest, "MALFORMED_BODY", "token: cannot be read")
		return
	}
	token := strings.TrimSpace(body.Token)
	if token == "" {
		if !c.oneClick(r) {
			refuse(w, http.StatusForbidden, "TOKEN_NEEDED", "token: must be pasted here")
			return
		}
		token = c.Mint(time.Now())
		c.Logger.Info("console: signed in by one click", "peer", r.RemoteAddr)
	}
	if len(token) > maxCookieToken {
		refuse(w, http.StatusBadRequest, "MALFORMED_BODY",
			"token: longer than a browser keeps; use one with fewer accounts")
		return
	}
	claims, err := c.Verifier.Verify([]byte(token))
	if err != nil {
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "token: not valid here: "+err.Error())
		return
	}
	life := time.Until(expiry(token))
	http.SetCookie(w, c.cookie(r, token, max(1, int(life/time.Second))))
	c.showSession(w, r, token, claims)
}

// showSession answers with the session of a verified token; "" is none.
func (c *Console) showSession(w http.ResponseWriter, r *http.Request, token string,
	claims gate.Claims) {
	s := session{SignedIn: token != "", OneClick: c.oneClick(r)}
	if s.SignedIn {
		s.Subject, s.Admin, s.Accounts = claims.Subject, claims.Admin, claims.Accounts
		s.ExpiresAt = expiry(token).UTC().Format(time.RFC3339)
		s.CSRF, s.About, s.Prover = csrfOf(token), c.About, c.Prover != nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s) // the peer may be gone
}

// oneClick reports that a request may sign in without a token: a browser on this machine, in dev,
// with no proxy in between and under a name of loopback.
//
// A proxy makes every browser look like loopback, so its headers close the way.
func (c *Console) oneClick(r *http.Request) bool {
	if c.Mint == nil || !loopbackHost(r.RemoteAddr) || !loopbackHost(r.Host) {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip",
		"Via"} {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	return true
}

// loopbackHost reports that host, with or without a port, is a name or an address of loopback.
func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// sessionOf returns the token of a request's session, if it is valid.
//
// It verifies the token of every request, so a session ends when its token expires or is revoked.
func (c *Console) sessionOf(r *http.Request) (token string, claims gate.Claims, ok bool) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil || cookie.Value == "" {
		return "", gate.Claims{}, false
	}
	claims, err = c.Verifier.Verify([]byte(cookie.Value))
	if err != nil {
		return "", gate.Claims{}, false
	}
	return cookie.Value, claims, true
}

// cookieName tells consoles on several ports of one machine apart: cookies do not.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "posttrade-" + port
	}
	return "posttrade"
}

// cookie is the session's cookie. It goes to /api alone, to no script, and with no request that
// another site has caused. maxAge is in seconds; below 0 removes it.
func (c *Console) cookie(r *http.Request, token string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: cookieName(r), Value: token, Path: "/api", MaxAge: maxAge,
		HttpOnly: true, Secure: c.Secure, SameSite: http.SameSiteStrictMode}
}

// expiry is the time in the claim exp of a token that the verifier has accepted.
//
// The signature was checked before: this reads one claim that the verifier does not return.
func expiry(token string) time.Time {
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if parts := strings.Split(token, "."); len(parts) == 3 {
		if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = json.Unmarshal(text, &claims) // the zero time: the session is shown as ended
		}
	}
	return time.Unix(claims.Expires, 0)
}
