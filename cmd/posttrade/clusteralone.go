package main

import (
	"context"
	"errors"
	"fmt"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/quorum"
)

// alone makes the stopped member on data.dir the only one of its cluster: the disks of the others
// are lost.
//
// It is refused while another member answers and takes part: two histories would begin. A member
// that does not answer is taken for lost. Errors: those of quorum.Alone, and a server that runs.
func (k *clusterCommand) alone(ctx context.Context, c *settings.Config) error {
	self := c.Self()
	for _, m := range k.members {
		if m.ID == self.ID {
			continue
		}
		if s, err := k.remote.Status(ctx, m.Raft); err == nil && len(s.Servers) > 0 {
			return fmt.Errorf("cluster alone: member %s answers and takes part: its disk is not lost", m.ID)
		}
	}
	held, err := journal.LockDir(c.String("data.dir"))
	if errors.Is(err, journal.ErrLocked) {
		return errors.New("cluster alone: stop the server first")
	}
	if err != nil {
		return err
	}
	server, last, err := quorum.Alone(c.InDataDir("quorum"), self)
	if err = errors.Join(err, held.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(k.out, "member %s (%s) is alone from entry %d of its log on: start it, then "+
		"`cluster add` each other member\nand start that one with an empty data.dir; no lost disk may "+
		"start again\n", self.ID, server, last)
	return err
}
