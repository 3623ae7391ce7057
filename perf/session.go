package perf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"posttrade/perf/load"
)

// What the row asks for.
//
//   - sessionTrip: microseconds with the strategy that a server has by default. Both processes may
//     sleep between orders, and must not be slow to wake.
//   - sessionSpinning: microseconds when no thread ever gives its core away, so only with a core
//     for each.
//   - sessionRate: commands a second with the quota in flight.
var (
	sessionTrip     = atMost("P7", 3, "round trip over shared memory, adaptive, mode os, p50 us")
	sessionSpinning = atMost("P7", 1, "round trip over shared memory, spinning, mode os, p50 us").
			unless("a core for each spinning thread is needed")
	sessionRate = atLeast("P7", 1e6, "commands/s over shared memory in a window, mode os")
)

// sessionWindow is the number of orders in flight when a session is saturated: the default of
// session.quota. With more, the server would leave the rest in the ring.
const sessionWindow = 1024

// coresToSpin is the number of cores at which every thread of a round trip has one: client, poller,
// matcher, recorder, committer.
const coresToSpin = 5

// measureSession is row P7: orders of another process through shared memory. The server is a
// process of its own, this process is the client, and no sidecar runs beside it.
//
// Round trips are of a single caller that sends the next order after the answer, which is the best
// case of a client with nothing else to do: it is no latency at a rate (that is the curve's).
// Windows are throughput. Modes other than os with adaptive threads are shown and not judged, but
// for spinning ones. The figures lie when client and server share a core with other work: each hop
// then waits for a core.
func measureSession(r *Run) error {
	for _, at := range []struct{ durability, idle string }{{"os", "adaptive"}, {"os", "yield"},
		{"os", "spin"}, {"fsync", "adaptive"}} {
		if err := r.sessionRow(at.durability, at.idle); err != nil {
			return fmt.Errorf("durability=%s idle=%s: %w", at.durability, at.idle, err)
		}
	}
	return nil
}

// sessionRow measures one server: round trips behind a warm-up of a tenth, then a window. With
// spinning threads and too few cores it measures a thousand trips, to show what happens then, and
// judges nothing. Trips with fsync are a tenth, because each waits for a sync.
func (r *Run) sessionRow(durability, idle string) error {
	spins := idle == "spin"
	crowded := spins && runtime.NumCPU() < coresToSpin
	clock := load.NewBusyClock()
	return r.withSession(durability, idle, clock, func(s *sessionClient, _ *child) error {
		trips := 50_000
		switch {
		case crowded:
			trips = 1_000
		case durability == "fsync":
			trips = 5_000
		}
		if _, err := s.roundTrips(r.scale(trips / 10)); err != nil { // warm-up
			return err
		}
		took, err := s.roundTrips(r.scale(trips))
		if err != nil {
			return err
		}
		name := "Session/durability=" + durability + "/idle=" + idle
		r.figures(name+"/op=round trip", distribution(took)...)
		p50 := microseconds(took.At(50))
		switch {
		case durability != "os":
		case crowded:
			r.note(fmt.Sprintf("P7 spinning needs a core for each of %d threads; %d are there: no verdict",
				coresToSpin, runtime.NumCPU()))
		case spins:
			r.judge(sessionSpinning, p50).
				beside("line there and back %.4g us", r.env.LineRoundTripNs/1e3)
		case idle == "adaptive":
			r.judge(sessionTrip, p50).
				beside("line there and back %.4g us", r.env.LineRoundTripNs/1e3)
		}
		if crowded {
			return nil
		}
		rate, err := s.window(r.scale(1_000_000), sessionWindow)
		if err != nil {
			return err
		}
		r.figures(fmt.Sprintf("%s/op=window of %d", name, sessionWindow), metric{rate, "commands/s"})
		if durability == "os" && idle == "adaptive" {
			r.judge(sessionRate, rate)
		}
		return nil
	})
}

// curveSession is the latency against the rate of one session, of one goroutine that sends and
// polls.
func (r *Run) curveSession(durability string) error {
	clock := load.NewBusyClock()
	return r.withSession(durability, "adaptive", clock, func(s *sessionClient, server *child) error {
		return r.curve(curve{row: "P7", name: "session/durability=" + durability, target: s, clock: clock,
			window: sessionWindow, commits: server.commits})
	})
}

// withSession starts a server and opens a session with it, and ends both when use has returned.
// idle is how the threads of the server wait, and how the client does in round trips.
func (r *Run) withSession(durability, idle string, clock load.Clock,
	use func(*sessionClient, *child) error) (err error) {
	dir, err := os.MkdirTemp("", "pt") // because the path of a socket must be short
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	r.servers++
	flags := append([]string{"--journal.durability=" + durability, "--ring.idle=" + idle,
		"--session.socket=" + socket,
		"--sidecars.enabled=false"}, wideFlags...)
	server, err := r.startServer(fmt.Sprintf("session-%d", r.servers), flags...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	s, err := dialSession(socket, idle, clock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return use(s, server)
}
