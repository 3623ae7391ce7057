package perf

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"posttrade/app/engine"
	"posttrade/app/latency"
	"posttrade/journal/quorum"
	"posttrade/matcher"
	"posttrade/matcher/flow"
)

// What the row asks for.
//
//   - clusterTime: agreement may cost as much again as deciding, journaling and showing.
//   - clusterPath: a member keeps the transparency log and the checkpoints of the past too, which
//     the engine alone has not; they follow the journal at a lower priority.
//   - clusterTrip: what this project adds to the library for one command may be three tenths.
//   - clusterRate: three members on one machine share its cores and its disk, so it is a rate of
//     that.
var (
	clusterTime = atMost("P12", 2, "processor time a command and member in batches of 64, "+
		"against the engine alone")
	clusterPath = atMost("P12", 2, "the same without the threads of a lower priority")
	clusterTrip = atMost("P12", 1.3,
		"one command at a time through three members, p50, against the library alone")
	clusterRate = atLeast("P12", 500e3,
		"orders/s through three members, the larger of batches of 64 and of 512")
)

// measureCluster is row P12: three members on one machine, beside three members of the bare
// consensus library over the same log store and network.
//
// The members are in this process, so the wire is loopback and the disk is one. The figures say
// what a command costs a member in processor time, how long one command takes when nothing else is
// under way, and what three members carry together. What a network between machines adds is in none
// of them, nor what three disks save. The death of a leader is row "failover", with processes of
// their own.
//
// It lies when the machine has fewer cores than members: threads of members wait for each other,
// which is in every latency here, and in those of the bare members too.
func measureCluster(r *Run) error {
	serial, perSecond, err := r.bareCluster()
	if err != nil {
		return err
	}
	r.figures("Cluster/op=library/entry=64x64B", metric{perSecond, "commands/s"})
	r.figures("Cluster/op=library/one at a time", metric{microseconds(serial.At(50)), "p50-us"},
		metric{microseconds(serial.At(99)), "p99-us"})
	alone, err := r.oneEngine()
	if err != nil {
		return err
	}
	e, err := r.openMembers(engineOptions{folder: "cluster", durability: "quorum",
		genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	return errors.Join(r.members(e, serial, alone), e.close())
}

// cpuPerCommand is processor time of this process a command, in microseconds.
type cpuPerCommand struct {
	all float64
	// path is the part of all that is not on threads of a lower priority.
	path float64
}

// metrics are both figures as those of a line.
func (c cpuPerCommand) metrics() []metric {
	return []metric{{c.all, "cpu-us/command"}, {c.path, "path-us/command"}}
}

// cpuOf runs f, which has n commands decided, and returns what a command took.
func cpuOf(n int, f func() error) (cpuPerCommand, error) {
	before, polite := processorTime(), ownPoliteCPU()
	err := f()
	all := processorTime() - before
	path := all - ownPoliteCPU().since(polite)
	return cpuPerCommand{microseconds(all) / float64(n), microseconds(path) / float64(n)}, err
}

// members measures and judges: commands one at a time, batches of two sizes, and a member that lost
// its disk. bare are the library's own single commands; alone is oneEngine's figure.
func (r *Run) members(m *members, bare *latency.Summary, alone cpuPerCommand) error {
	e := &m.fullEngine
	took, used, err := r.oneAtATime(e)
	if err != nil {
		return err
	}
	p50, barep50 := microseconds(took.At(50)), microseconds(bare.At(50))
	r.figures("Cluster/op=command/one at a time", metric{p50, "p50-us"},
		metric{microseconds(took.At(99)), "p99-us"}, metric{used.all, "cpu-us/command"})
	r.judge(clusterTrip, p50/barep50).beside("library %.4g us", barep50)
	small, used, err := r.batches(e, 64)
	if err != nil {
		return err
	}
	large, _, err := r.batches(e, 512)
	if err != nil {
		return err
	}
	n := float64(len(m.members))
	r.judge(clusterTime, used.all/n/alone.all).
		beside("%.3g us; engine alone %.3g us", used.all/n, alone.all)
	r.judge(clusterPath, used.path/n/alone.path).
		beside("%.3g us; engine alone %.3g us", used.path/n, alone.path)
	r.judge(clusterRate, max(small, large))
	rebuilt, err := m.rebuildOne()
	if err != nil {
		return err
	}
	r.figures("Cluster/op=empty member catches up", metric{float64(e.durable()), "commands"},
		metric{rebuilt.Seconds(), "s"},
		metric{float64(e.durable()) / rebuilt.Seconds(), "commands/s"})
	return nil
}

// batches keeps 64 tickets of a batch each in flight. It returns the commands per second, and the
// processor time per command.
//
// The processor time is that of the whole process: three members, and the load's own.
func (r *Run) batches(e *fullEngine, batch int) (perSecond float64, used cpuPerCommand, err error) {
	n := r.scale(4_000_000) / batch * batch
	begun := time.Now()
	used, err = cpuOf(n, func() error { return pump(e, uint64(batch), n, 64, batch) })
	if err != nil {
		return 0, used, err
	}
	perSecond = float64(n) / time.Since(begun).Seconds()
	r.figures(fmt.Sprintf("Cluster/op=command/batch=%d", batch),
		append([]metric{{perSecond, "commands/s"}}, used.metrics()...)...)
	return perSecond, used, nil
}

// oneEngine is the processor time that one engine without agreement takes for a command of the same
// flow, with journal and views. It runs before the members are there: their shadows follow the
// journals after the flow has ended, and would count as its own.
func (r *Run) oneEngine() (alone cpuPerCommand, err error) {
	e, err := r.open(engineOptions{folder: "one-engine", durability: "os",
		genesis: flowGenesis(1)})
	if err != nil {
		return alone, err
	}
	const batch = 64
	n := r.scale(2_000_000) / batch * batch
	alone, err = cpuOf(n, func() error { return pump(e, batch, n, 64, batch) })
	if err = errors.Join(err, e.close()); err != nil {
		return alone, err
	}
	r.figures("Cluster/op=one engine alone/batch=64", alone.metrics()...)
	return alone, nil
}

// oneAtATime submits each command after the answer to the one before. It returns the latency, and
// the processor time per command, which has idle spinning of the members in it.
func (r *Run) oneAtATime(e *fullEngine) (*latency.Summary, cpuPerCommand, error) {
	source := &flowSource{random: flow.NewRandom(9)}
	took, n := latency.NewRecorder(), r.scale(5_000)
	used, err := cpuOf(n, func() error {
		for range n {
			one, err := roundTrip(e, source)
			if err != nil {
				return err
			}
			took.Record(one)
		}
		return nil
	})
	return latency.Merge(took), used, err
}

// bareCluster measures the library: entries of one command, one after the other, and entries of 64
// commands with 64 entries in flight.
//
// An entry of one command has the bytes of a command and no more, an entry of 64 has 64 times as
// many; they are zeros, and the members apply them to nothing.
func (r *Run) bareCluster() (serial *latency.Summary, perSecond float64, err error) {
	// with the spare processors of three engines, as openMembers has them
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	engine.NewProcessors(3 * engine.SpareProcs).Raise()
	b, err := quorum.OpenBare(filepath.Join(r.o.Dir, "bare"))
	if err != nil {
		return nil, 0, err
	}
	defer b.Close()
	took := latency.NewRecorder()
	for range r.scale(5_000) {
		begun := time.Now()
		if err := b.Propose(make([]byte, matcher.CommandBytes))(); err != nil {
			return nil, 0, err
		}
		took.Record(time.Since(begun))
	}
	const entry, window = 64, 64
	entries := r.scale(4_000_000) / entry
	var flight []func() error
	begun := time.Now()
	for range entries {
		if len(flight) == window {
			if err := flight[0](); err != nil {
				return nil, 0, err
			}
			flight = append(flight[:0], flight[1:]...)
		}
		flight = append(flight, b.Propose(make([]byte, entry*matcher.CommandBytes)))
	}
	for _, wait := range flight {
		if err := wait(); err != nil {
			return nil, 0, err
		}
	}
	return latency.Merge(took), float64(entries*entry) / time.Since(begun).Seconds(), nil
}
