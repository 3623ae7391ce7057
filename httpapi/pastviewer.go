package httpapi

import (
	"context"
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"posttrade/journal/asof"
	"posttrade/matcher/admission"
	"posttrade/matcher/gate"
)

// PastViewer answers the endpoints below /as-of without a server: for programs that read a journal
// by themselves. One goroutine uses it.
//
// posttrade inspect uses it, so that it prints what the server answers.
type PastViewer struct{ m *OrderMatcher }

// NewPastViewer returns a viewer of a history.
//
// It loads the newest moment once, for the names of all securities. Errors: those of At, and of a
// history whose securities do not fit its own capacities. The caller closes the history after the
// last Show.
func NewPastViewer(ctx context.Context, h *asof.History) (*PastViewer, error) {
	moment, err := h.At(ctx, h.Head())
	if err != nil {
		return nil, err
	}
	defer moment.Release()
	room := moment.Views().Capacities()
	g := gate.New(room.Accounts, room.Securities)
	for _, s := range moment.Views().Securities() {
		err = errors.Join(err, g.Register(s.ID, s.Ticker))
	}
	return &PastViewer{NewOrderMatcher(Deps{AsOf: h, Decider: admission.Decider{Gate: g}})}, err
}

// Show is the body of GET /as-of/{inputSeq} and path, which may have a query, and its status.
//
// It checks no token: the caller reads the files themselves. A body with another status than 200 is
// a problem document.
func (p *PastViewer) Show(ctx context.Context, inputSeq uint64,
	path string) (status int, body []byte) {
	target := asOfPrefix + strconv.FormatUint(inputSeq, 10) + path
	request := &fasthttp.RequestCtx{}
	request.Request.SetRequestURI(target)
	x := &exchange{m: p.m, views: p.m.Views, serviceRequest: serviceRequest{ctx: request}}
	r, id, _, problem := x.enter("", routeOf)
	if problem.status == 0 {
		problem = x.showAt(ctx, inputSeq, r, id)
	}
	if problem.status != 0 {
		problem.write(request)
	}
	return request.Response.StatusCode(), request.Response.Body()
}
