package installation

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/journal/evidence"
	"posttrade/matcher"
	"posttrade/ring/disk"
	"posttrade/ring/metric"
)

// evidenceLog is the transparency log of the installation's journal.
//
// A nil evidenceLog is one that is off; its methods do nothing then.
type evidenceLog struct {
	// What readers of the log ask: heads, tiles and proofs.
	source *evidence.Service
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// evidenceFolder is where the log of an installation lies.
//
// The folder is also a neighbour of the journal: see evidenceNeighbour.
const evidenceFolder = "evidence"

// EvidenceDir is the folder of the transparency log.
func EvidenceDir(c *settings.Config) string { return c.InDataDir(evidenceFolder) }

// EvidenceOptions are the log's options as the settings have them.
//
// Commands that read the log of a stopped server use the same options, so both find the same files
// and the same name.
func EvidenceOptions(c *settings.Config, g *matcher.Genesis) evidence.Options {
	return evidence.Options{
		Dir: EvidenceDir(c), KeyFile: c.String("evidence.key"), Origin: c.String("evidence.origin"),
		Interval: c.Duration("evidence.interval"), Engine: engine.RebuildFrom(g).Engine,
	}
}

// openEvidence opens the log and begins to keep it; nil when it is off.
//
// The log follows the journal on a goroutine of its own, and no order waits for it. A failure is
// an alarm in the log of the process. On a member only the leader signs.
//
// Errors: those of the witnesses' settings, and what evidence.Open refuses. They refuse the start.
func openEvidence(c *settings.Config, in *Installation, log *slog.Logger) (*evidenceLog, error) {
	if c.Duration("evidence.interval") == 0 {
		return nil, nil
	}
	o := EvidenceOptions(c, in.Core.Genesis)
	o.Alarm = func(err error) {
		log.Error("evidence alarm", "alarm", "the transparency log is not kept", "because", err)
	}
	o.Warn = func(err error) {
		log.Warn("published heads of the transparency log are lost", "because", err)
	}
	if err := withWitnesses(c, &o); err != nil {
		return nil, err
	}
	if in.Member != nil {
		o.Leads = in.Member.Node.Leads
	}
	l, err := evidence.Open(in.Core.Journal, o)
	if err != nil {
		return nil, err
	}
	source, err := l.Service(in.past.History)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &evidenceLog{source: source, stop: cancel}
	e.ended.Go(func() {
		if err := l.Run(ctx); err != nil {
			log.Error("the transparency log has ended", "error", err)
		}
	})
	return e, nil
}

// compareEvery is the time between two comparisons of the members' trees.
//
// A shorter evidence.interval shortens it.
const compareEvery = 2 * time.Second

// compareMembers compares this member's tree with the others' until the member stops. A member that
// differs from a majority answers nothing any more and does not lead: its requests go to the
// leader.
//
// The members agree on the commands, so trees that differ show a fault of disk, memory or program
// on one of them. It is called when the listeners are open, because the others ask this member
// over HTTP. It does nothing when the log is off.
func (in *Installation) compareMembers(c *settings.Config, log *slog.Logger) error {
	e := in.evidence
	if e == nil {
		return nil
	}
	dialTLS, err := in.listeners.dialTLS()
	if err != nil {
		return err
	}
	scheme := "http://"
	if dialTLS != nil {
		scheme = "https://"
	}
	p := &evidence.Peers{Log: e.source.Log,
		Client: &http.Client{Transport: &http.Transport{TLSClientConfig: dialTLS}},
		Odd:    func(err error) { in.standAside(err, log) }}
	for _, m := range c.Members() {
		if m != c.Self() {
			p.Others = append(p.Others, evidence.Peer{Name: m.ID,
				URL: scheme + m.HTTP + relayPrefix(c, "order-matcher")})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { p.Run(ctx, min(compareEvery, c.Duration("evidence.interval"))) })
	in.Member.stops = append(in.Member.stops, func() { cancel(); ended.Wait() })
	return nil
}

// standAside takes a member that differs from a majority out of service: its requests go to the
// leader, and its shared-memory sessions and its readers of the feed end. It must not lead: its
// disk would be every other member's. So it hands the leadership on, as often as it is given it.
//
// because is what the comparison found. The member stays out of service until the process is
// started again. Called at each comparison, it logs the reason once.
func (in *Installation) standAside(because error, log *slog.Logger) {
	if in.Member.odd.CompareAndSwap(false, true) {
		log.Error("this member has another history than the others and answers nothing any more",
			"because", because)
		in.Core.Held.Store(&because)
		in.Member.relays["order-matcher"].Swap(nil)
		if in.Core.Session != nil {
			in.Core.Session.StandAside()
		}
		in.closeFeed()
	}
	if !in.Member.Node.Leads() {
		return
	}
	log.Warn("this member has another history than the others: the leadership goes to another member")
	if err := in.Member.Node.HandOver(); err != nil {
		log.Error("the leadership could not be handed over, it is tried again", "because", err)
	}
}

// withWitnesses reads the witnesses that the settings name.
//
// Both errors are usage errors: more cosignatures than witnesses would never publish a head.
func withWitnesses(c *settings.Config, o *evidence.Options) (err error) {
	o.Quorum = c.Int("evidence.witness-quorum")
	if name := c.String("evidence.witnesses"); name != "" {
		if o.Witnesses, err = evidence.ReadWitnesses(name); err != nil {
			return settings.Usagef("evidence.witnesses: %v", err)
		}
	}
	if n := len(o.Witnesses); o.Quorum > n {
		return settings.Usagef("evidence.witness-quorum: %d, evidence.witnesses names %d", o.Quorum, n)
	}
	return nil
}

// end signs what is left and stops the log. The journal must still be open.
//
// The engine's End closes the journal, so it comes after this.
func (e *evidenceLog) end() {
	if e != nil {
		e.stop()
		e.ended.Wait()
	}
}

// parts is the log on /readyz. Orders do not wait for it, so it does not decide readiness.
//
// The first problem of these is shown: signing has stopped for good, another member has another
// tree, or the last attempt failed and is repeated.
func (e *evidenceLog) parts() []httpapi.Part {
	if e == nil {
		return nil
	}
	p := httpapi.Part{Name: "evidence", Ready: true, Beside: true}
	switch s := e.source.State(); {
	case s.Err != nil:
		p.Ready, p.Detail = false, "nothing is signed any more: "+s.Err.Error()
	case len(s.Differs) > 0:
		p.Ready, p.Detail = false, "another tree than "+strings.Join(s.Differs, ", ")
	case s.Failed != nil:
		p.Ready, p.Detail = false, "tried again: "+s.Failed.Error()
	default:
		p.Detail = fmt.Sprintf("signed up to sequence %d, %d leaves", s.Signed, s.Size)
	}
	return []httpapi.Part{p}
}

// metrics states how far the log has come, if there is one.
func (e *evidenceLog) metrics(emit metric.Emit) {
	if e != nil {
		e.source.Collect(emit)
	}
}

// evidenceNeighbour is the newest head that the transparency log has signed: a journal that ends
// before it has been cut.
//
// Giving the log up keeps it under another name, so that its signed heads can still be compared
// with the ones that others have seen.
func evidenceNeighbour(c *settings.Config) neighbour {
	file := filepath.Join(EvidenceDir(c), "checkpoints")
	return neighbour{name: "evidence file " + file, look: func(context.Context) (coverage, error) {
		at, err := evidence.Newest(EvidenceDir(c))
		// Another setting of the name is no other history: the log says so itself.
		other := func(h *engine.History) bool {
			return c.String("evidence.origin") == "" && at.Origin != evidence.Origin("", h.Genesis)
		}
		return coverage{inputSeq: at.Head, foreign: func(h *engine.History) bool {
			return other(h) && evidence.OfGenesis(at.Origin)
		}, of: func(h *engine.History) (bool, error) { return !other(h), nil }}, err
	}, keeps: func() error {
		// The same key must not sign two histories: a new log has a new key. One that lies in the
		// folder goes with it.
		key := c.String("evidence.key")
		if key == "" {
			return nil
		}
		signed, err := evidence.SignedNewest(EvidenceDir(c), key)
		if err == nil && signed {
			err = fmt.Errorf("file=%s: %w: it has signed the history that would be given up; "+
				"name another key file first", key, evidence.ErrKey)
		}
		if err != nil {
			return fmt.Errorf("evidence.key: %w", err)
		}
		return nil
	}, accept: func(context.Context, *engine.History) (string, error) {
		to, err := disk.MoveAside(EvidenceDir(c), EvidenceDir(c)+".given-up-")
		return "moved to " + to + "; a new log begins, with a new key", err
	}}
}
