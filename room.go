package main

import (
	"context"
	"errors"
	"time"

	"posttrade/ring"
)

const (
	// roomAhead is for how many orders, and as many fills, memory is resident before they
	// come: some tens of milliseconds of a flood.
	roomAhead = 1 << 15

	// How long the tables are left alone while they fill, and while they do not.
	roomPace = 10 * time.Millisecond
	roomRest = 50 * time.Millisecond
)

// makeRoom gives rings and tables the memory for the first orders before the first of them
// can come. A system that cannot do it gives it as the orders come, and the start says so.
func (c *core) makeRoom() {
	var all []error
	for _, r := range c.regions {
		all = append(all, ring.MakeResident(r.Bytes(), 0, len(r.Bytes())))
	}
	all = append(all, c.engine.MakeResident(), c.views.MakeResident())
	c.ahead = ring.NewAhead(roomAhead, append(c.views.Frontiers(),
		c.engine.Frontier(c.views.NextRef), c.blotter.Frontier(c.recovered.tradeSeq+1))...)
	_, _, err := c.ahead.Step()
	if err := errors.Join(append(all, err)...); err != nil {
		c.recovered.room = err
	}
}

// keepAhead has the tables' memory resident ahead of the orders until there is no table
// left that has places nobody has used.
func (c *core) keepAhead(ctx context.Context) {
	timer := time.NewTimer(roomRest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		moved, more, err := c.ahead.Step()
		if err != nil || !more {
			return
		}
		if moved {
			timer.Reset(roomPace)
		} else {
			timer.Reset(roomRest)
		}
	}
}
