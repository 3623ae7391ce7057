package httpapi

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"posttrade/httpapi/urlpath"
	"posttrade/matcher/gate"
)

// serviceRequest is one request to any service: the request, the caller, and the means to answer.
// The requests of the services embed it. One goroutine uses it.
type serviceRequest struct {
	ctx      *fasthttp.RequestCtx
	verifier *gate.Verifier // constant; the rest is of this request
	// query is the raw query, still with percent-encoding; nil for none. It points into the request.
	query []byte
	// claims are the caller's once authenticate has returned no problem; until then they are empty,
	// and cover no account.
	claims gate.Claims
	// body reads the request's body between readBody and bodyRead. What it returns points into the
	// request.
	body decoder
}

// clear removes the state of the request.
func (v *serviceRequest) clear() {
	v.ctx, v.query, v.claims = nil, nil, gate.Claims{}
	v.body.reset(nil)
}

// enter checks a request's path and method and finds its endpoint among those of a service. method
// is the endpoint's method that the request uses.
//
// It comes first in every handler: until it has run, query is nil.
func (v *serviceRequest) enter(prefix string, find func(path []byte) (r route, id []byte)) (
	r route, id []byte, method methods, p problem,
) {
	_, v.query = splitTarget(v.ctx.Request.Header.RequestURI())
	return enter(v.ctx, prefix, find)
}

// enter is serviceRequest.enter for a caller without a serviceRequest.
//
// The order is path, endpoint, length of the id, method. For a 405 it returns the endpoint beside
// the problem.
func enter(ctx *fasthttp.RequestCtx, prefix string, find func(path []byte) (r route, id []byte)) (
	r route, id []byte, method methods, p problem,
) {
	path, _ := splitTarget(ctx.Request.Header.RequestURI())
	if !urlpath.Plain(path) {
		return 0, nil, 0, problemPath
	}
	if r, id = find(stripPrefix(path, prefix)); r == routeNone {
		return 0, nil, 0, problemRoute
	}
	if len(id) > maxID {
		return 0, nil, 0, problemPath
	}
	if method = methodOf(ctx.Method()); allowed[r]&method == 0 {
		p = problemMethod
		p.allow = allowed[r]
	}
	return r, id, method, p
}

// begin takes the response's buffer, for appending an answer; send gives it back.
//
// The buffer comes from the HTTP library's pool, which keeps those of up to keptBody bytes. A
// handler that returns a problem after begin loses it: write makes another one.
func (v *serviceRequest) begin() []byte { return v.ctx.Response.SwapBody(nil)[:0] }

// send makes b the body of a JSON answer.
//
// It returns no problem, so that a handler ends with it. The response keeps b: the caller must not
// use it afterwards.
func (v *serviceRequest) send(status int, b []byte) problem {
	v.ctx.Response.SwapBody(b)
	v.ctx.Response.SetStatusCode(status)
	v.ctx.Response.Header.SetContentType(contentJSON)
	return problem{}
}

// sendProblem makes b the answer; problem.append has rendered it, and it is closed.
//
// It is for documents with further members; a plain problem is returned instead.
func (v *serviceRequest) sendProblem(status int, b []byte) problem {
	v.ctx.Response.SwapBody(b)
	v.ctx.Response.SetStatusCode(status)
	v.ctx.Response.Header.SetContentType(contentProblem)
	return problem{}
}

// authenticate verifies the caller's token.
//
// Afterwards claims are the caller's. No token and a bad one are both 401; a token for metrics is
// 403, because it is good elsewhere. A token that was verified before costs a look-up and no
// allocation. The subject goes to the access log, when requests are logged.
func (v *serviceRequest) authenticate() problem {
	token := bearer(v.ctx.Request.Header.Peek("Authorization"))
	if token == nil {
		return problemToken
	}
	claims, err := v.verifier.Verify(token)
	switch {
	case errors.Is(err, gate.ErrTokenMetrics):
		return problemMetricsToken
	case err != nil:
		return problemToken
	}
	v.claims = claims
	if v.ctx.UserValue(subjectKey{}) != nil {
		v.ctx.SetUserValue(subjectKey{}, claims.Subject)
	}
	return problem{}
}

// identified reports that the caller has shown a valid token.
func (v *serviceRequest) identified() bool { return v.claims.Subject != "" }

// bearer returns the token of an Authorization header, nil if there is none.
//
// The scheme is compared without regard to case (RFC 9110 section 11.1). A token that is too long
// to be verified counts as none. The result points into the
// header.
func bearer(header []byte) []byte {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !equalFold(header[:len(scheme)], scheme) {
		return nil
	}
	token := trimSpace(header[len(scheme):])
	if len(token) == 0 || len(token) > gate.MaxTokenBytes {
		return nil
	}
	return token
}

// admin verifies a token and its admin claim, in every configuration.
//
// Claims without the admin claim are 403 ADMIN_REQUIRED, whatever accounts they have.
func (v *serviceRequest) admin() problem {
	if p := v.authenticate(); p.status != 0 {
		return p
	}
	if !v.claims.Admin {
		return problemAdmin
	}
	return problem{}
}

// readBody prepares the body of a write for the decoder. A write that has passed without a token is
// refused where a browser says that a page of another origin sends it: any page may have a browser
// send a request to its own machine, but without a token in it.
//
// It comes behind the check of the token.
func (v *serviceRequest) readBody() problem {
	if v.claims.Subject == "" && v.fromBrowser() && foreignPage(&v.ctx.Request.Header) {
		return problemOrigin
	}
	return v.readJSON()
}

// fromBrowser reports a connection on which foreignPage is worth its time.
func (v *serviceRequest) fromBrowser() bool {
	c, framed := v.ctx.Conn().(*framedConn)
	return !framed || c.browser
}

// foreignPage reports that a browser sends a request for a page of another origin. Other clients
// send none of the headers.
//
// Sec-Fetch-Site wins, which no page can set: behind a proxy Host may be another one than the
// page's. It says same-site of another port too. A page of another origin cannot add Authorization:
// its browser would ask first, and no service lets it.
func foreignPage(h *fasthttp.RequestHeader) bool {
	if len(h.Peek(fasthttp.HeaderAuthorization)) > 0 {
		return false
	}
	switch string(h.Peek("Sec-Fetch-Site")) {
	case "cross-site":
		return true
	case "same-origin", "none":
		return false
	}
	origin := h.Peek(fasthttp.HeaderOrigin)
	if len(origin) == 0 {
		return false
	}
	_, host, _ := bytes.Cut(origin, []byte("://"))
	return !bytes.EqualFold(host, h.Host())
}

// readJSON is readBody for a caller that has proved itself otherwise: the body's type is JSON or
// absent. No endpoint with a body has parameters.
//
// Content-Encoding is refused whatever it says: a small body must not become a large one in memory.
func (v *serviceRequest) readJSON() problem {
	if p := v.noParameters(); p.status != 0 {
		return p
	}
	if !jsonType(v.ctx.Request.Header.ContentType()) ||
		len(v.ctx.Request.Header.ContentEncoding()) > 0 {
		return problemMedia
	}
	v.body.reset(v.ctx.Request.Body())
	return problem{}
}

// jsonType reports that a Content-Type is absent or JSON, in UTF-8 if it names a charset.
//
// A missing type is accepted, for clients that send none; every other type is 415.
func jsonType(value []byte) bool {
	if len(value) == 0 {
		return true
	}
	kind, rest := value, []byte(nil)
	for i, ch := range value {
		if ch == ';' {
			kind, rest = value[:i], trimSpace(value[i+1:])
			break
		}
	}
	return equalFold(trimSpace(kind), contentJSON) &&
		(len(rest) == 0 || equalFold(rest, "charset=utf-8") || equalFold(rest, `charset="utf-8"`))
}

// emptyBody refuses a body where none is expected; {} counts as none.
func (v *serviceRequest) emptyBody() problem {
	if p := v.readBody(); p.status != 0 {
		return p
	}
	if len(v.ctx.Request.Body()) == 0 {
		return problem{}
	}
	v.body.json.BeginObject()
	if key, more := v.body.json.NextKey(); more {
		v.body.unknown(key)
	}
	return v.bodyRead()
}

// bodyRead is the problem of the decoded body, if there is one.
//
// What the decoder returned may be used only after bodyRead has returned no problem: after an error
// its values are zero or partial.
func (v *serviceRequest) bodyRead() problem {
	if err := v.body.end(); err != nil {
		return v.body.bodyProblem(err, -1)
	}
	return problem{}
}
