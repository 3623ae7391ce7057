package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/matcher"
)

// members is three members in this process; its engine is the leader's. They talk over loopback
// sockets as processes do, but share one heap, one collector and one scheduler, and their disk.
type members struct {
	fullEngine
	// configs and options are each member's, for a member that is opened again.
	configs []*settings.Config
	options []engine.Options
	// members has nil for a member that could not be opened, and for all after stopAll.
	members []*installation.Installation
	// leader is the index of the member that led when findLeader looked.
	leader int
	// procs is the number of the scheduler's processors before; stopAll sets it again.
	procs int
}

// openMembers opens three members with the engine and no sidecars, and returns when one of them
// leads. Their folders are 1, 2 and 3 in that of the engine. The heartbeat is a second, which bears
// with members that wait for a core.
func (r *Run) openMembers(o engineOptions) (*members, error) {
	c, _, dir := r.wiring(o)
	fatal := installation.NewFatalStderr(r.o.Stderr).Failed
	p := &members{members: make([]*installation.Installation, 3), procs: runtime.GOMAXPROCS(0)}
	p.dir, p.end, p.leave = dir, p.stopAll, r.leave
	list, err := loopbackMembers(3)
	if err != nil {
		return nil, err
	}
	for i := range 3 {
		own := c.With(map[string]string{
			"data.dir": filepath.Join(dir, strconv.Itoa(i+1)), "cluster.member-id": strconv.Itoa(i + 1),
			"cluster.members":  list,
			"sidecars.enabled": "false", "journal.durability": "quorum",
			"admin.listen": "127.0.0.1:0", "console.listen": "", "cluster.heartbeat-ms": "1000",
		})
		options := installation.EngineOptions(own)
		options.Fatal = fatal
		options.Genesis = func() (*matcher.Genesis, error) { return o.genesis, nil }
		p.configs, p.options = append(p.configs, own), append(p.options, options)
	}
	if err := p.openAll(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, p.findLeader()
}

// openAll opens all members at once, waits for all, and joins their errors.
func (p *members) openAll() error {
	ends := make(chan error, len(p.members))
	for i := range p.members {
		go func() { ends <- p.open(i) }()
	}
	var err error
	for range p.members {
		err = errors.Join(err, <-ends)
	}
	p.share()
	return err
}

// share sets the scheduler's processors to the number that all members would have in processes of
// their own. Each member has set the number as if it were alone, and its hot threads hold some
// processors also while they sleep.
func (p *members) share() {
	engine.NewProcessors(len(p.members) * engine.SpareProcs).Raise()
}

// open opens member i, or opens it again after it was stopped.
func (p *members) open(i int) error {
	in, err := installation.Open(context.Background(), p.configs[i], p.options[i],
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	p.members[i] = in
	return err
}

// findLeader waits until a member leads, and makes its engine the one that the row uses.
func (p *members) findLeader() error {
	for begun := time.Now(); time.Since(begun) < readyTimeout; time.Sleep(time.Millisecond) {
		for i, in := range p.members {
			if in.Member.Node.Leads() {
				p.leader, p.Engine = i, in.Core
				return nil
			}
		}
	}
	return fmt.Errorf("no member leads after %v", readyTimeout)
}

// rebuildOne destroys the disk of a follower and returns how long it took until the follower had
// everything again, from the start of its process. It compacts the leader's log first, so that the
// follower must get the journal itself. The time has the opening of the member in it.
func (p *members) rebuildOne() (time.Duration, error) {
	lost := (p.leader + 1) % len(p.members)
	if err := p.members[lost].Stop(); err != nil {
		return 0, err
	}
	if err := os.RemoveAll(p.configs[lost].String("data.dir")); err != nil {
		return 0, err
	}
	// without a compaction the log alone would do
	if err := p.members[p.leader].Member.Node.Compact(0); err != nil {
		return 0, err
	}
	want := p.durable()
	begun := time.Now()
	if err := p.open(lost); err != nil {
		return 0, err
	}
	p.share()
	for p.members[lost].Core.Watermark.Durable() < want {
		if time.Since(begun) > 10*readyTimeout {
			return 0, fmt.Errorf("the member has %d of %d commands",
				p.members[lost].Core.Watermark.Durable(), want)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(begun), nil
}

// stopAll ends the members and keeps their data. Members that are stopped already are left out, so
// it may be called again.
func (p *members) stopAll() (err error) {
	for i, in := range p.members {
		if in != nil {
			err = errors.Join(err, in.Stop())
			p.members[i] = nil
		}
	}
	runtime.GOMAXPROCS(p.procs)
	return err
}
