package httpapi

import (
	"context"
	"time"
)

// The headers by which a client of a source reads what it has written.
const (
	// headerMinVersion is the version that a read must have in it; headerAsOfVersion a version that an
	// answer has in it. Each source counts its own changes.
	headerMinVersion  = "X-Min-Version"
	headerAsOfVersion = "X-As-Of-Version"
)

// versionOf is the version of a source that tells it, else nil. Without it answers carry no
// version, and X-Min-Version is not looked at.
func versionOf(source any) func(ctx context.Context) (uint64, error) {
	if s, ok := source.(interface {
		Version(ctx context.Context) (uint64, error)
	}); ok {
		return s.Version
	}
	return nil
}

// versioned runs an endpoint of a source's table. A read waits first for the version that it is
// asked for, and has in it what there was before it; a write has the version after it.
//
// A read is marked with the version that was there before it: the table may be newer, never older.
// Health and document are of no version.
func (e *sourceRequest) versioned(s *source, r route, method methods, run func() problem) problem {
	if r == routeHealth || r == routeOpenAPI || s.deps.version == nil {
		return run()
	}
	ctx, cancel := quick()
	defer cancel()
	if method == methodGet {
		if (r == routeAccountSnapshot || r == routeStockSnapshot) && s.deps.snapshotAuth {
			if p := e.admin(); p.status != 0 {
				return p
			}
		}
		if p := e.awaitVersion(ctx, s); p.status != 0 {
			return p
		}
		return run()
	}
	p := run()
	if status := e.ctx.Response.StatusCode(); p.status == 0 && status < 300 {
		at, err := s.deps.version(ctx)
		e.asOf, e.known = at, err == nil // without it the write stands all the same
	}
	return p
}

// awaitVersion waits until the table has the version of X-Min-Version, also while the database
// cannot be read. A read that asks for none is left to the endpoint, which reports that.
//
// It polls every rowsLook for at most sequencePatience, and ends with the service; each look is a
// query.
func (e *sourceRequest) awaitVersion(ctx context.Context, s *source) problem {
	wanted := uint64(0)
	value, p := onlyHeader(e.ctx, headerMinVersion)
	if p.status != 0 {
		return p
	}
	if value != nil {
		var ok bool
		if wanted, ok = number(value, 0, 1<<63-1); !ok {
			return badHeader(headerMinVersion, "it is not a version")
		}
	}
	for late := time.Now().Add(sequencePatience); ; {
		at, err := s.deps.version(ctx)
		switch {
		case err == nil && at >= wanted:
			e.asOf, e.known = at, true
			return problem{}
		case err != nil && wanted == 0:
			return problem{}
		}
		switch p := s.lookAgain(late); {
		case p.code == CodeNotYet && err != nil:
			return s.failed(err)
		case p.code == CodeNotYet:
			p.detail = "the version that was asked for is not here yet"
			return p
		case p.status != 0:
			return p
		}
	}
}
