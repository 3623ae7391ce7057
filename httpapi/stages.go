package httpapi

import (
	"context"
	"runtime/pprof"

	"posttrade/matcher"
)

// stages are the profile labels of the edge: where a CPU sample was taken. The
// matcher's and the recorder's threads carry their own.
type stages struct{ http, gate context.Context }

func newStages() stages {
	label := func(stage string) context.Context {
		return pprof.WithLabels(context.Background(), pprof.Labels("stage", stage))
	}
	return stages{http: label("http"), gate: label("gate")}
}

// screen asks the gate, and says so in profiles. Setting a label stores one
// pointer: about 10 ns, no allocation.
func (x *exchange) screen(c *matcher.Command) matcher.RiskReason {
	x.atGate()
	reason := x.m.Gate.Screen(c)
	x.atEdge()
	return reason
}

// atGate and atEdge label what follows.
func (x *exchange) atGate() { pprof.SetGoroutineLabels(x.m.stages.gate) }
func (x *exchange) atEdge() { pprof.SetGoroutineLabels(x.m.stages.http) }
