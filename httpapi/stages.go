package httpapi

import (
	"context"
	"runtime/pprof"

	"posttrade/matcher"
)

// stages are the profile labels of the edge: they say where a CPU sample was taken. The threads of
// the matcher and the recorder have labels of their own.
type stages struct{ http, gate context.Context }

func newStages() stages {
	label := func(stage string) context.Context {
		return pprof.WithLabels(context.Background(), pprof.Labels("stage", stage))
	}
	return stages{http: label("http"), gate: label("gate")}
}

// screen asks the gate, and labels that time in profiles. Setting a label stores one pointer: about
// 10 ns, no allocation.
func (x *exchange) screen(c *matcher.Command) matcher.RiskReason {
	x.atGate()
	reason := x.m.Gate.Screen(c)
	x.atEdge()
	return reason
}

// atGate and atEdge label the samples that follow.
func (x *exchange) atGate() { pprof.SetGoroutineLabels(x.m.stages.gate) }
func (x *exchange) atEdge() { pprof.SetGoroutineLabels(x.m.stages.http) }
