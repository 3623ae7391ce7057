package feeds

import (
	"context"
	"fmt"
	"slices"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/sidecars/control"
)

// sequence passes changes to the engine, as many at a time as a ticket holds.
//
// Each part is durable before the next is submitted. An error leaves the parts before it sequenced.
func (s *Sink) sequence(ctx context.Context, mark uint32, changes []change) error {
	for chunk := range slices.Chunk(changes, desk.MaxBatch) {
		chunk, err := s.admit(ctx, chunk)
		if err != nil {
			return err
		}
		if len(chunk) == 0 {
			continue
		}
		err = s.submit(ctx, len(chunk), func(i int, c *matcher.Command) error {
			return s.control(c, &chunk[i], mark)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// admit returns the changes for which the engine has room, in their order. Securities that are new
// to the engine are registered. The other changes are not sequenced: otherwise the journal would
// get a refused command for each of them at every start.
//
// Several changes of one new record in a chunk take one place.
func (s *Sink) admit(ctx context.Context, chunk []change) ([]change, error) {
	held, capacity := s.capacity().Places()
	free := capacity - held
	// Whether there is a place for an account or security that is new to the engine.
	fresh := map[string]bool{}
	var tickers, homeless []string
	fit := make([]change, 0, len(chunk))
	for i := range chunk {
		r := &chunk[i].Record
		if !s.capacity().Holds(r) {
			key := r.Key(s.Source)
			if _, met := fresh[key]; !met {
				fresh[key] = free > 0
				free--
				if fresh[key] {
					tickers = append(tickers, key)
				} else {
					homeless = append(homeless, key)
				}
			}
			if !fresh[key] {
				continue
			}
		}
		fit = append(fit, chunk[i])
	}
	s.noteUnknown(homeless, tickers, capacity)
	if s.Source == control.Account || len(tickers) == 0 {
		return fit, nil
	}
	return fit, s.submit(ctx, len(tickers), func(i int, c *matcher.Command) error {
		*c = matcher.NewSymbolRegister(tickers[i])
		return nil
	})
}

// noteUnknown raises the alarm for records without a place, and removes those that have got one.
func (s *Sink) noteUnknown(homeless, housed []string, capacity int) {
	s.Unknown.remove(housed)
	if first := s.Unknown.add(homeless); first != "" {
		s.Log.Error("control feed: the engine has no room for a record: it stays unknown to the gate",
			"source", string(s.Source), "record", first, "unknown", s.Unknown.Count(),
			"capacity", capacity, "see", RoomSettings[s.Source])
	}
}

// capacity is the engine's room for the records of the source.
func (s *Sink) capacity() Capacity { return Capacity{s.Source, s.Gate} }

// control fills in the command for a record.
//
// Such a command has the flags in the field Side, the record's version in PriceTicks and the mark
// of the epoch in OrderRef. An account has no flag "halted".
func (s *Sink) control(c *matcher.Command, r *change, mark uint32) error {
	now := s.Now().UnixMilli()
	if s.Source == control.Account {
		*c = matcher.NewCommand(matcher.AccountControl)
		c.AccountID = r.ID
		r.keep &^= matcher.KeepHalted
	} else {
		id, ok := s.Gate.Security([]byte(r.Ticker))
		if !ok {
			return fmt.Errorf("controls: ticker %s: %w", r.Ticker, gate.ErrSecurity)
		}
		*c = matcher.NewCommand(matcher.SecurityControl)
		c.SecurityID = id
		if r.Halted {
			c.Side = matcher.SecurityHalted
		}
	}
	if r.Enabled {
		c.Side |= matcher.SecurityEnabled
	}
	c.Side |= r.keep
	c.EventTimeMillis, c.PriceTicks, c.OrderRef = now, int64(r.Version), mark
	return nil
}

// submit sequences n commands and waits until they are durable. When the desk has no room, submit
// tries again until ctx ends.
//
// A refusal of the engine is an error: admit has left out what the engine would refuse for lack of
// room.
func (s *Sink) submit(ctx context.Context, n int,
	fill func(i int, c *matcher.Command) error) error {
	told := false
	return desk.SubmitUntil(ctx, s.Desk, n, fill, func(a *desk.Answer) error {
		if a.Kind == matcher.EventApplied || told {
			return nil
		}
		told = true // only the first refusal is reported
		return fmt.Errorf("controls: source %s: sequence %d was refused: %v",
			s.Source, a.InputSeq, a.Reason)
	})
}
