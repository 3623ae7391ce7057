package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"unicode"

	"github.com/valyala/fasthttp"

	"posttrade/matcher/gate"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// sourceDeps is what the account-service and the reference-data service both need. The constructors
// fill it.
type sourceDeps struct {
	verifier                    *gate.Verifier
	writeAuth, snapshotAuth     bool
	state                       func() string // nil: always ok
	applied, durable, projected func() uint64
	durability                  string
	cluster                     Cluster // nil: this is the only member
	maxInflight                 int
	log                         *slog.Logger

	document []byte // GET /openapi.json
	find     func(path []byte) (r route, id []byte)
	snapshot func(ctx context.Context) (control.Snapshot, error)
	// version is that of the last change; nil: not known, and answers carry none.
	version func(ctx context.Context) (uint64, error)
}

// source is a service of control records: a table that every caller may read and that an admin
// changes, with its control snapshot.
type source struct {
	service
	deps sourceDeps

	// making holds one value for each answer under way that shows a whole table. Memory has room for
	// only a few copies of a large table.
	making chan struct{}
	// versions are the looks of reads that wait for a version.
	versions *looks[versionAt]
}

// maxMaking is the number of answers that show a whole table and are made at one time.
const maxMaking = 4

// newSource builds the edge of a source. answer runs the endpoints that are specific to the source.
//
// Health and document do not go through versioned's waits. A handler makes a sourceRequest of its
// own and keeps nothing.
func newSource(name string, d sourceDeps,
	answer func(e *sourceRequest, r route, id []byte, method methods) problem) source {
	s := source{deps: d, making: make(chan struct{}, maxMaking),
		versions: new(looks[versionAt])}
	s.service = newService(name, serverConfig{
		route: targetRoute("", d.find), maxInflight: d.maxInflight, valid: validToken(d.verifier),
		durability: []byte(d.durability), log: d.log,
		handler: func(ctx *fasthttp.RequestCtx) {
			e := sourceRequest{serviceRequest: serviceRequest{ctx: ctx, verifier: d.verifier}}
			r, id, method, p := e.enter("", d.find)
			if p.status == 0 {
				p = e.versioned(&s, r, method, func() problem { return answer(&e, r, id, method) })
			}
			if p.status != 0 {
				p.write(ctx)
			}
			if e.known {
				ctx.Response.Header.Set(headerAsOfVersion, itoa(e.asOf))
			}
		},
	})
	return s
}

// The errors of a record whose JSON is well-formed. Their texts contain nothing of the input.
var (
	errName   = errors.New("not a name: 1 to 256 bytes, not blank, without control characters")
	errTicker = errors.New("not a ticker: 1 to 16 of A-Z 0-9 . -, and not dots alone")
)

// sourceRequest is one request to a source.
//
// One goroutine uses it.
type sourceRequest struct {
	serviceRequest
	asOf  uint64 // a version that the answer has in it, 0 before the first change
	known bool   // asOf was read
}

// writing checks the caller of a write, before the body is read.
//
// Where write-auth is off any caller may write: settings allow that on loopback alone.
func (e *sourceRequest) writing(s *source) problem {
	if s.deps.writeAuth {
		if p := e.admin(); p.status != 0 {
			return p
		}
	}
	return e.readBody()
}

// operator is by whose hand a record is changed: a flag that gets another value is an operator's
// act. Whether that needs a reason is decided where the flag's value is known: control.ErrReason.
// Where a write needs no token, a valid one still names the subject.
//
// The record of the act is written in the transaction of the change, and reaches the journal from
// there.
func (e *sourceRequest) operator() (*store.Act, problem) {
	if e.claims.Subject == "" {
		_ = e.authenticate() // an open endpoint: no token, no subject
	}
	n, p := e.byHand(false)
	return &store.Act{Subject: n.Subject, Address: n.Address, Reason: n.Reason}, p
}

// showWhole answers with a whole table. render reads the table and appends it.
//
// It waits for a place among maxMaking, within the time-out of the query: then 504.
func (e *sourceRequest) showWhole(s *source,
	render func(ctx context.Context, b []byte) ([]byte, error)) problem {
	if p := e.noParameters(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	b := e.begin()
	if err := s.whole(ctx, func() (err error) {
		b, err = render(ctx, b)
		return err
	}); err != nil {
		return s.failed(err)
	}
	return e.send(200, b)
}

// showList answers with the documents of all rows.
func showList[T any](e *sourceRequest, s *source, list func(context.Context) ([]T, error),
	document func([]byte, *T) []byte) problem {
	return e.showWhole(s, func(ctx context.Context, b []byte) ([]byte, error) {
		all, err := list(ctx)
		if err != nil {
			return nil, err
		}
		return append(appendEach(append(b, '['), all, document), ']'), nil
	})
}

// whole calls answer, which makes an answer that shows a whole table, when there is room for one
// more.
func (s *source) whole(ctx context.Context, answer func() error) error {
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
		return answer()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// showSnapshot is GET /account/control-snapshot and GET /stocks/control-snapshot.
//
// The snapshot is of one moment, and carries a checksum that a replica verifies.
func (e *sourceRequest) showSnapshot(s *source) problem {
	if s.deps.snapshotAuth {
		if p := e.admin(); p.status != 0 {
			return p
		}
	}
	return e.showWhole(s, func(ctx context.Context, b []byte) ([]byte, error) {
		snapshot, err := s.deps.snapshot(ctx)
		if err != nil {
			return nil, err
		}
		return snapshot.AppendJSON(b), nil
	})
}

// showSourceHealth is GET /health.
func (e *sourceRequest) showSourceHealth(s *source) problem {
	h := health{service: s.name, status: "ok", cluster: s.deps.cluster, durability: s.deps.durability,
		applied: s.deps.applied(), durable: s.deps.durable(), projected: s.deps.projected}
	if s.deps.state != nil {
		h.status = s.deps.state()
	}
	return e.send(200, h.append(e.begin()))
}

// problemFlagReason is the problem of a change that sets a flag and does not say why.
var problemFlagReason = badReason("the header X-Reason is required: why a flag gets another value")

// problemCapacity is the problem of a new record for which the engine has no room.
func problemCapacity(what string) problem {
	return problem{status: fasthttp.StatusConflict, code: CodeCapacity,
		detail: "the engine has no room for another " + what + ": nothing was written"}
}

// name reads a display or company name. It is kept as it was given, blanks around it too.
func (d *decoder) name(field string) string {
	d.field = field
	text := string(d.json.String())
	if d.json.Err() == nil && (strings.TrimSpace(text) == "" || len(text) > control.MaxName ||
		strings.ContainsFunc(text, unicode.IsControl)) {
		d.fail(errName)
	}
	return text
}
