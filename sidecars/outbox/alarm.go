package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Alarms returns how many alarms were raised for an operator; a finding that lasts counts once.
//
// Messages of other writers count once per burst (CountForeign).
func (b *Outbox) Alarms() uint64 { return b.alarms.Load() }

// Alarm returns the current alarm for an operator, "" for none.
func (b *Outbox) Alarm() string {
	if text := b.alarm.Load(); text != nil {
		return *text
	}
	return ""
}

// raise counts and logs a finding, unless it is the current alarm.
func (b *Outbox) raise(text string) {
	if b.Alarm() == text {
		return
	}
	b.alarms.Add(1)
	b.alarm.Store(&text)
	b.o.Logger.Error("outbox alarm", "source", string(b.o.Source), "alarm", text)
}

// ErrForeign says that stream and database belong to different histories. Nothing is published
// until an operator bumps the source's epoch.
//
// It ends by itself when a later Compare finds that they agree, for example after an operator has
// put the right database back.
var ErrForeign = errors.New("stream and database have different histories: " +
	"was the database restored from a backup? bump the source's epoch")

// foreign stops publishing: every Step compares again until stream and database agree.
//
// Replicas beside the publisher learn it from Behind.
func (b *Outbox) foreign(what string) error {
	b.refused.Store(true)
	b.raise(what)
	return fmt.Errorf("outbox: source=%s: %s: %w", b.o.Source, what, ErrForeign)
}

// settle ends an alarm when publishing continues, except for a finding of Compare.
//
// It is called when Step has published something, or has found nothing to publish.
func (b *Outbox) settle() {
	b.refused.Store(false)
	switch text := foreignAlarm; {
	case b.finding != "":
		b.raise(b.finding)
	case b.passed: // CountForeign has counted and logged it
		b.alarm.Store(&text)
	default:
		b.alarm.Store(nil)
	}
}

// ErrBehind says that a change has been waiting for too long.
var ErrBehind = errors.New("changes do not reach the stream")

// Behind tells a replica beside the publisher what the stream cannot tell it: there are changes
// above its watermark which the stream refuses, or which have waited for longer than patience. It
// returns ErrForeign, ErrBehind or nil. Any goroutine.
//
// Without it a replica that hears nothing could not tell a quiet source from a stream that takes
// nothing. Most calls cost two atomic loads. A query is made only when the oldest waiting row is
// late and the replica has it already.
func (b *Outbox) Behind(ctx context.Context, watermark uint64, patience time.Duration) error {
	if b.refused.Load() {
		return fmt.Errorf("outbox: source=%s: %s: %w", b.o.Source, b.Alarm(), ErrForeign)
	}
	late := b.o.Now().Add(-patience).UnixMilli()
	at := b.backlog.Load()
	if at.Rows == 0 || at.Version <= watermark || at.OldestMillis >= late {
		return nil
	}
	// The replica's snapshot has the oldest: look at the first that it lacks.
	if at.First <= watermark {
		row, found, err := b.row(ctx, watermark+1)
		if err != nil || !found || row.Published || row.CreatedAt >= late {
			return nil // a database that cannot be read takes no change either
		}
	}
	return fmt.Errorf("outbox: source=%s: %w: %d wait, from version %d on", b.o.Source,
		ErrBehind, at.Rows, at.First)
}
