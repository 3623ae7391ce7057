package installation

import (
	"context"
	"log/slog"
	"sync"

	"posttrade/sidecars/pace"
)

// leaveWhenFull has another member lead while this one's disk is full: it could admit nothing. It
// looks every healPause, and logs once for each time that the disk fills up.
func (in *Installation) leaveWhenFull(log *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for said := false; pace.Sleep(ctx, healPause); {
			said = in.leaveIfFull(said, log)
		}
	})
	in.Member.stops = append(in.Member.stops, func() { cancel(); ended.Wait() })
}

// leaveIfFull is a step of leaveWhenFull. said: the log has that the disk is full.
func (in *Installation) leaveIfFull(said bool, log *slog.Logger) bool {
	if !in.Core.Journal.StorageFull() {
		return false
	}
	if !in.Member.Node.Leads() {
		return said
	}
	switch err := in.Member.Node.HandOver(); {
	case said:
	case err == nil:
		log.Warn("the disk is full: the leadership goes to a member with room")
	default:
		log.Error("the disk is full, and the leadership could not be handed over; it is tried again",
			"because", err)
	}
	return true
}
