package installation

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/matcher/gate"
	"posttrade/sidecars/riskextract"
)

// openMember opens the services of a member: the order-matcher, which forwards writes to the
// leader, and relays for the services that only the leader runs, which send requests there. Then
// the engine is attached to the consensus.
//
// Attach is last: from then on agreed commands flow into the engine, and by then every reader of
// the events, the markers and the figures is there. The listeners are open before, and answer that
// no leader is known. After an error Stop ends what has begun.
func (in *Installation) openMember(c *settings.Config, log *slog.Logger) error {
	verifier, err := in.newVerifier(c)
	if err != nil {
		return err
	}
	if c.Bool("sidecars.enabled") { // with them comes the trade-processor, at a takeover
		if err := in.readMaster(c, log); err != nil {
			return err
		}
	}
	orders := newOrderMatcher(c, in, verifier, log)
	if err := in.openRelays(c, log); err != nil {
		return err
	}
	in.Member.relays["order-matcher"].Swap(orders)
	in.healing = startHealing(c, in, log)
	in.leaveWhenFull(log)
	m := in.memberMetrics(orders)
	m.More = together(m.More, in.listeners.bodies.Metrics, in.evidence.metrics)
	registry := httpapi.NewRegistry(m, log)
	if err := openAdmin(c, in, verifier, registry, log); err != nil {
		return err
	}
	if err := openConsole(c, in.listeners, verifier, registry, log); err != nil {
		return err
	}
	in.watching = startWatching(c, statsSourcesOf(in, m), log)
	in.watchNumbers(log)
	extracts := &memberExtracts{c: c, in: in, log: log}
	extracts.follow()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l := leading{c: c, in: in, verifier: verifier, registry: registry, extracts: extracts, log: log}
		in.Member.roles.follow(ctx, l.begin, l.end, log)
	}()
	in.Member.stops = append(in.Member.stops, func() { cancel(); <-ended; extracts.stop() })
	if err := in.compareMembers(c, log); err != nil {
		return err
	}
	host := engine.ClusterHost{Engine: in.Core}
	host.Markers.Begin(host.Head())
	return in.Member.Node.Attach(host, in.Core.Proposals)
}

// leading is the part that runs on the leader only.
//
// Its methods run on the goroutine of roles.follow, one after the other.
type leading struct {
	c        *settings.Config
	in       *Installation
	verifier *gate.Verifier
	registry *httpapi.Registry
	extracts *memberExtracts
	log      *slog.Logger
	services map[string]leaderService // behind the relays, by name
}

// leaderService is a service behind a relay that can be told to end.
type leaderService interface {
	httpapi.RelayedService
	Shutdown(context.Context) error
}

// begin opens the sidecars and puts their services behind the relays.
//
// An error leaves nothing behind: the caller calls begin again after leadRetry, while the member
// still leads. The sidecars open before a relay lets requests through to them. Capacities are
// raised here, because only the leader's settings count.
func (l *leading) begin() (err error) {
	if err := l.in.raise(context.Background(), l.c, l.log); err != nil {
		// It is no reason not to lead: the member goes on with the room that there is.
		l.log.Error("the capacities stay as they are", "error", err)
	}
	l.extracts.lead()
	if !l.c.Bool("sidecars.enabled") {
		return nil
	}
	defer func() {
		if err != nil {
			l.extracts.follow()
		}
	}()
	d, err := openDownstream(l.c, l.in.Core, l.in.history, riskextract.RoleLeader, l.log)
	if err != nil {
		return err
	}
	processor := newTradeProcessor(l.c, l.in, d, l.verifier, l.registry, l.log)
	l.in.Beside.Store(d)
	accounts, securities := newSources(l.c, l.in, d, l.verifier, l.log)
	l.services = map[string]leaderService{"account-service": accounts, "reference-data": securities,
		"trade-processor": processor}
	for name, service := range l.services {
		l.in.Member.relays[name].Swap(service)
	}
	d.follow(l.c, l.in)
	return nil
}

// leaveTimeout is how long requests may take that began while this member led.
//
// Requests that take longer find their database closed.
const leaveTimeout = 5 * time.Second

// end takes the services away, and closes the sidecars when no request uses them any more. The gate
// admits nothing until the sources have been followed again.
//
// The relays send new requests to the next leader as soon as the services are away. Replicas and
// loops end with the sidecars; the gate may not go on with what they last said. What the guard of
// the history holds ends with it; a member that stands aside goes on admitting nothing.
func (l *leading) end() {
	defer l.extracts.follow()
	d := l.in.Beside.Swap(nil)
	if d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	l.leave(ctx)
	if err := d.stop(); err != nil {
		l.log.Warn("what ran on the leader did not end well", "error", err)
	}
	l.in.Core.Unready()
	d.guard.release()
}

// leave takes the services away and ends their requests that go through the whole history. It waits
// for their other requests until ctx ends.
//
// All services leave at once, so the time is that of the slowest one and at most that of ctx.
func (l *leading) leave(ctx context.Context) {
	var leaving sync.WaitGroup
	for name, service := range l.services {
		ended := l.in.Member.relays[name].Swap(nil)
		leaving.Go(func() {
			err := service.Shutdown(ctx)
			select {
			case <-ended:
			case <-ctx.Done():
				select {
				case <-ended: // both channels were ready
				default:
					err = errors.Join(err, ctx.Err())
				}
			}
			if err != nil {
				l.log.Warn("a service still has requests that began while this member led", "service", name,
					"error", err)
			}
		})
	}
	leaving.Wait()
	l.services = nil
}
