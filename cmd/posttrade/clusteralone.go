package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/quorum"
)

// alone makes the stopped member on data.dir the only one of its cluster: the disks of the others
// are lost.
//
// It is refused while another member of the settings, or of the newest configuration that the disk
// knows, listens: two histories would begin. Only one that cannot be connected to, or that
// waits with an empty disk, is taken for lost. Errors: those of quorum.Alone, and a server that
// runs.
func (k *clusterCommand) alone(c *settings.Config) error {
	held, err := journal.LockDir(c.String("data.dir"))
	if errors.Is(err, journal.ErrLocked) {
		return errors.New("cluster alone: stop the server first")
	}
	if err != nil {
		return err
	}
	self := c.Self()
	server, last, err := quorum.Alone(c.InDataDir("quorum"), self, func(known []quorum.Server) error {
		for _, m := range k.members {
			known = append(known, quorum.Server{Member: m.ID, Address: m.Raft})
		}
		asked := map[string]bool{self.Raft: true}
		for _, s := range known {
			if asked[s.Address] {
				continue
			}
			asked[s.Address] = true
			if err := k.lost(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, held.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(k.out, "member %s (now %s) is alone behind entry %d of term %d of its log: "+
		"start it, then\n`cluster add` each other member and start that one with an empty data.dir; no "+
		"lost disk may start again\n", self.ID, server, last.Index, last.Term)
	return err
}

// lost returns nil for a member that cannot be connected to, or waits with an empty disk.
//
// Any other answer, also one that is no member's, says that its machine is there. Each member has a
// time of its own to answer: one whose time another had used up would pass for lost.
func (k *clusterCommand) lost(s quorum.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	answer, err := k.remote.Status(ctx, s.Address)
	var refused *net.OpError
	switch {
	case err == nil && len(answer.Servers) == 0: // an empty disk, which waits to join
		return nil
	case err == nil:
		return fmt.Errorf("cluster alone: member %s answers and takes part: its disk is not lost",
			s.Member)
	case errors.As(err, &refused) && refused.Op == "dial":
		return nil
	}
	return fmt.Errorf("cluster alone: member %s is there, and whether its disk is lost cannot be "+
		"told; stop it: %w", s.Member, err)
}
