package httpapi

import (
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"
)

// subjectKey is the user value of a request that is to be logged: the subject of its token, empty
// until the token has been verified.
//
// It is set only when requests are logged: its presence is what asks authenticate for the subject.
type subjectKey struct{}

// LogAccess logs every request from now on. Call it before Serve.
func (s *service) LogAccess(log *slog.Logger) {
	s.server.access = log.With("service", s.name)
}

// logAccess writes the line of one request. It names the endpoint by its pattern: an id, a query, a
// token and a body are never logged.
//
// The duration is from the request's arrival to its answer being rendered; of a stream, to its
// beginning. A method that is not one of the services' is "other".
func logAccess(log *slog.Logger, ctx *fasthttp.RequestCtx, r route, status int) {
	method := "other"
	if methodOf(ctx.Method()) != 0 {
		method = string(ctx.Method())
	}
	subject, _ := ctx.UserValue(subjectKey{}).(string)
	log.Info("request", "method", method, "route", patterns[r], "status", status,
		"duration", time.Since(ctx.Time()), "subject", subject)
}
