package engine

import (
	"context"
	"errors"
	"time"

	"posttrade/ring"
)

const (
	// RoomAhead is the number of orders, and of fills, for which memory is resident before they come:
	// some tens of milliseconds of a flood.
	RoomAhead = 1 << 15

	// How long the tables are left alone while they fill, and while they do not.
	roomPace = 10 * time.Millisecond
	roomRest = 50 * time.Millisecond
)

// makeRoom makes the memory of rings and tables resident for the first orders, before the first can
// come. When the system cannot do it, memory becomes resident as orders come, and the start reports
// it.
//
// An error is kept in Recovered.Room and does not refuse the start: only the first orders are
// slower. Without this step each first write to a page stops the matcher for a page fault.
func (c *Engine) makeRoom() {
	var all []error
	for _, r := range c.Regions {
		all = append(all, ring.MakeResident(r.Bytes(), 0, len(r.Bytes())))
	}
	all = append(all, c.Engine.MakeResident(), c.Views.MakeResident())
	c.Ahead = ring.NewAhead(RoomAhead, append(c.Views.Frontiers(),
		c.Engine.Frontier(c.Views.NextRef), c.Blotter.Frontier(c.Recovered.TradeSeq+1))...)
	_, _, err := c.Ahead.Step()
	if err := errors.Join(append(all, err)...); err != nil {
		c.Recovered.Room = err
	}
}

// KeepAhead keeps the tables' memory resident ahead of the orders, until no table has unused places
// left.
//
// It runs on a goroutine of its own, which no order waits for, until ctx ends. It ends by itself
// after an error: memory then becomes resident as orders come.
func (c *Engine) KeepAhead(ctx context.Context) {
	timer := time.NewTimer(roomRest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		moved, more, err := c.Ahead.Step()
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
