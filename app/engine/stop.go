package engine

import (
	"errors"
	"slices"

	"posttrade/journal"
)

// Stop is End and then Discard. No caller may use the engine any more.
//
// The error is that of End.
func (c *Engine) Stop() error {
	err := c.End()
	c.Discard()
	return err
}

// End takes no new commands and ends the stages in the order of the path. So every command that was
// handed in is decided, journaled and answered. Then it closes the journal. A caller that comes
// later finds the desk closed, and the engine's memory still mapped.
//
// The order matters: the desk first, so that no command comes behind the last one; then the stage,
// which decides everything that was published; then the recorder, which journals every event; then
// the journal, which waits for its commits. A part that ended before its reader would leave
// commands without an answer. On a member the node must have been closed before, because it would
// hand agreed commands to a stage that is gone.
//
// End may be called once. It returns the errors of all parts, joined: a journal that failed
// earlier returns its first error here.
func (c *Engine) End() error {
	c.Desk.Close()
	c.stopLoops()
	c.loops.Wait()
	var err error
	if c.Session != nil {
		err = errors.Join(c.Session.Close(), <-c.sessionDone)
	}
	c.Stage.Stop()
	err = errors.Join(err, <-c.StageDone)
	c.Recorder.Stop()
	err = errors.Join(err, <-c.recordDone, c.Journal.Close())
	c.Journal = nil
	c.late = errors.Is(err, journal.ErrPoisoned)
	c.Procs.restore()
	if c.BeforeDiscard != nil {
		c.BeforeDiscard()
	}
	c.Session = nil // End has closed it
	return err
}

// Discard releases what a start has taken. It does not wait for anything.
//
// Discard may follow an Open that failed half-way, so every part can be nil. It may be called when
// no goroutine uses the engine any more: an access to unmapped memory ends the process. A caller
// that cannot be sure of that leaves the memory to the end of the process. So does Discard itself
// when the journal has failed: its committer may still look at the rings, and at what observes
// them.
func (c *Engine) Discard() {
	if c.late {
		return
	}
	if c.Session != nil {
		c.Session.Close()
	}
	if c.Journal != nil {
		c.Journal.Close()
	}
	if c.Blotter != nil {
		c.Blotter.Close()
	}
	if c.Views != nil {
		c.Views.Close()
	}
	if c.Engine != nil {
		c.Engine.Close()
	}
	for _, r := range slices.Backward(c.Regions) {
		r.Close()
	}
	c.floor = nil
}
