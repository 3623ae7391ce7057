package perf

import (
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/flow"
	"posttrade/matcher/gate"
	"posttrade/matcher/strictjson"
)

// measureGate measures the memory that the edge needs before an order is handed in: the gate's
// screening of orders that pass, in nanoseconds an order, on one core. It has no target; the cost
// of a refusal and that of a change of the universe beside it are not measured.
func measureGate(r *Run) error {
	g := gate.New(4096, 4096)
	if err := g.Load(flowGenesis(32)); err != nil {
		return err
	}
	g.SetReady()
	commands := drawnCommands(1, 1<<12)
	n := r.scale(20_000_000)
	refused := 0
	start := time.Now()
	for i := range n {
		if g.Screen(&commands[i&(len(commands)-1)]) != matcher.Accepted {
			refused++
		}
	}
	elapsed := time.Since(start)
	if refused > 0 {
		return fmt.Errorf("the gate refused %d good orders", refused)
	}
	r.bench("Gate/op=screen", n, elapsed)
	return nil
}

// measureCodec measures the reading of an order from JSON, and of a record from the wire, in
// nanoseconds each, on one core. One body is read again and again, so it is that of the caches. It
// has no target.
func measureCodec(r *Run) error {
	n := r.scale(5_000_000)
	body := appendOrder(nil, 1, 1, 1)
	reader := strictjson.NewReader(body)
	start := time.Now()
	if err := readBodies(reader, body, n); err != nil {
		return err
	}
	r.bench("Codec/op=read-order-json", n, time.Since(start), metric{float64(len(body)), "bytes"})

	record := drawnCommands(1, 1)[0].Bytes()[:]
	start = time.Now()
	for range n {
		if _, err := matcher.Decode(record); err != nil {
			return err
		}
	}
	r.bench("Codec/op=decode-record", n, time.Since(start))
	return nil
}

// readBodies reads a body n times, key by key, and skips every value. A body that is not strict
// JSON is an error, found at its end.
func readBodies(reader *strictjson.Reader, body []byte, n int) error {
	for range n {
		reader.Reset(body)
		reader.BeginObject()
		for {
			if _, more := reader.NextKey(); !more {
				break
			}
			reader.Skip()
		}
		if err := reader.End(); err != nil {
			return err
		}
	}
	return nil
}

// drawnCommands are the first n orders of the flow of a seed. They name accounts and the security
// of flowGenesis, so a gate or an engine with that universe admits them.
func drawnCommands(seed uint64, n int) []matcher.Command {
	source := &flowSource{random: flow.NewRandom(seed)}
	commands := make([]matcher.Command, n)
	for i := range commands {
		source.next(&commands[i])
	}
	return commands
}
