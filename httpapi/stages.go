package httpapi

import (
	"context"
	"runtime/pprof"
)

// stages are the profile labels of the edge: they say where a CPU sample was taken. The threads of
// the matcher and the recorder have labels of their own.
//
// A label costs a store of one pointer, and allocates nothing.
type stages struct{ http, gate context.Context }

func newStages() stages {
	label := func(stage string) context.Context {
		return pprof.WithLabels(context.Background(), pprof.Labels("stage", stage))
	}
	return stages{http: label("http"), gate: label("gate")}
}

// atGate and atEdge label the samples that follow.
func (x *exchange) atGate() { pprof.SetGoroutineLabels(x.m.stages.gate) }
func (x *exchange) atEdge() { pprof.SetGoroutineLabels(x.m.stages.http) }
