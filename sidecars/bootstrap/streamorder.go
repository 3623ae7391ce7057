package bootstrap

import (
	"bytes"
	"fmt"

	"posttrade/sidecars/control"
)

// streamOrder judges the deltas of a stream one by one.
//
// It belongs to the reader.
type streamOrder struct {
	source  control.Source
	last    uint64 // version of the predecessor, 0 for none
	payload []byte // of the predecessor
}

// judge reads a payload. fresh is false for a copy of the predecessor.
//
// When there was no message before the subscription, the first one may have any version: take
// compares it with the snapshot.
func (o *streamOrder) judge(payload []byte) (d control.Delta, fresh bool, f *fault) {
	d, err := control.ParseDelta(o.source, payload)
	switch {
	case err != nil:
		return d, false, &fault{reason: Malformed, detail: err.Error()}
	case o.last == 0 || d.Version == o.last+1:
	case d.Version == o.last && bytes.Equal(payload, o.payload):
		return d, false, nil
	case d.Version <= o.last:
		return d, false, &fault{reason: VersionRegression,
			detail: fmt.Sprintf("version %d after %d", d.Version, o.last)}
	default:
		return d, false, &fault{reason: Gap,
			detail: fmt.Sprintf("version %d after %d", d.Version, o.last)}
	}
	o.last, o.payload = d.Version, append(o.payload[:0], payload...)
	return d, true, nil
}
