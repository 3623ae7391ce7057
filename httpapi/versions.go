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
	if method == methodGet {
		if (r == routeAccountSnapshot || r == routeStockSnapshot) && s.deps.snapshotAuth {
			if p := e.admin(); p.status != 0 {
				return p
			}
		}
		if p := e.awaitVersion(s); p.status != 0 {
			return p
		}
		return run()
	}
	p := run()
	if status := e.ctx.Response.StatusCode(); p.status == 0 && status < 300 {
		v := s.lookAtVersion()
		e.asOf, e.known = v.at, v.err == nil // without it the write stands all the same
	}
	return p
}

// versionAt is the version of a source, or the error of reading it.
type versionAt struct {
	at  uint64
	err error
}

// lookAtVersion reads the source's version, with a time-out of its own.
func (s *source) lookAtVersion() versionAt {
	ctx, cancel := quick()
	defer cancel()
	at, err := s.deps.version(ctx)
	return versionAt{at, err}
}

// awaitVersion waits until the table has the version of X-Min-Version, also while the database
// cannot be read. A read that asks for none is left to the endpoint, which reports that.
//
// It waits for sequencePatience at most, and ends with the service. Each look is a query, which all
// reads that wait share. Errors: problemWaits, problemNotYet, problemStopping, and that of the
// database when it cannot be read until the end.
func (e *sourceRequest) awaitVersion(s *source) problem {
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
	v := s.lookAtVersion()
	if v.err != nil && wanted == 0 {
		return problem{}
	}
	if v.err != nil || v.at < wanted {
		if v, p = e.versionAfter(s, v, wanted); p.status != 0 {
			return p
		}
	}
	e.asOf, e.known = v.at, true
	return problem{}
}

// versionAfter waits, behind a look that saw v, for the version that is wanted.
func (e *sourceRequest) versionAfter(s *source, v versionAt, wanted uint64) (versionAt, problem) {
	end, p := s.waits.begin(e.identified())
	if p.status != 0 {
		return v, p
	}
	defer end()
	for late := time.Now().Add(sequencePatience); v.err != nil || v.at < wanted; {
		next, p := s.versions.next(&s.service, late, s.lookAtVersion)
		switch {
		case p.code == CodeNotYet && v.err != nil:
			return v, s.failed(v.err)
		case p.code == CodeNotYet:
			p.detail = "the version that was asked for is not here yet"
			return v, p
		case p.status != 0:
			return v, p
		}
		v = next
	}
	return v, problem{}
}
