package engine

import (
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/ring"
)

// buildPath makes everything between the desk and the journal, and starts nothing. Each part gets
// what comes behind it on the path, so that no event or answer can appear before its reader is
// there. The order of the observers is the order in which the recorder calls them for an event;
// the desk is last.
func (c *Engine) buildPath() (err error) {
	if c.In, err = c.CommandRing(); err != nil {
		return err
	}
	submissions := c.In
	if c.Options.Member {
		if c.Proposals, err = c.CommandRing(); err != nil {
			return err
		}
		submissions = c.Proposals
	}
	outRegion, err := c.region(ring.FanoutBytes[matcher.Event](c.Options.OutputSlots))
	if err != nil {
		return err
	}
	if c.Out, err = ring.NewFanout[matcher.Event](outRegion, c.Options.OutputSlots); err != nil {
		return err
	}
	if c.Desk, err = desk.NewShared(submissions, c.Options.shares()); err != nil {
		return err
	}
	observers := []journal.Observer{c.Blotter, c.Views, gateObserver{c.Gate}}
	if c.Options.Session != nil {
		if c.Session, err = c.Options.Session(c); err != nil {
			return err
		}
		observers = append(observers, c.Session)
	}
	c.Stage = matcher.NewStage(c.Engine, c.In, c.Out, c.Options.Idle, c.Options.MatcherCPU)
	c.Recorder = journal.NewRecorder(c.Journal, c.Out, c, journal.RecorderOptions{
		Idle: c.Options.Idle, IdleSet: true, CPU: c.Options.RecorderCPU,
		Pinned: c.Options.RecorderCPU >= 0, Flush: c.flush,
	}, observers...)
	c.Stage.DriveNext(c.Recorder.Drive)
	if !c.Options.Member { // a member's matcher gets its commands from ClusterHost
		c.Desk.Drives(failStop(c.Stage.Drive))
	}
	c.Watermark.durable.Store(c.Recovered.Sequence)
	c.Views.SetWake(c.Recorder.Wake)
	c.Shadow, err = journal.NewSnapshotter(c.Journal, RebuildFrom(c.Genesis),
		uint64(c.Options.SnapshotInterval))
	return err
}

// CommandRing makes a ring of commands of the size ring.input-slots.
//
// The engine owns the ring's memory, and Discard unmaps it.
func (c *Engine) CommandRing() (*ring.MPSC[matcher.Command], error) {
	region, err := c.region(ring.MPSCBytes[matcher.Command](c.Options.InputSlots))
	if err != nil {
		return nil, err
	}
	return ring.NewMPSC[matcher.Command](region, c.Options.InputSlots)
}

// region maps anonymous memory for a ring, asks the system for large pages, and notes the memory
// for Discard. bytes is the size that the ring's own package computes from the number of slots.
func (c *Engine) region(bytes int) (*ring.Region, error) {
	r, err := ring.Anonymous(bytes)
	if err == nil {
		ring.LargePages(r.Bytes())
		c.Regions = append(c.Regions, r)
	}
	return r, err
}
