package feeds

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/control"
)

// Sink carries what a control feed says into the engine: every change is
// a sequenced command, so that the journal and every replay know it, and the
// gate takes it over from the engine's own events. One goroutine uses it.
//
// A record that the engine has no room for stays unknown to the gate; everything else
// goes on, and the record is tried again with its next change and the next snapshot.
type Sink struct {
	Source control.Source
	Gate   *gate.Gate
	Desk   *desk.Desk
	Views  *blotter.Views
	Now    func() time.Time
	Log    *slog.Logger
	// quarantined is told when the source was, for its publisher to look at the stream
	// too; nil: there is none.
	Quarantined func()

	regressed uint32                // the mark of an epoch whose source has lost its memory
	trouble   atomic.Pointer[error] // why the last change was not taken in, nil when it was; any goroutine reads
	Unknown   unknownRecords        // for want of room
}

// RoomSettings name the places that there are, by source.
var RoomSettings = map[control.Source]string{control.Account: "risk.max-accounts", control.Security: "risk.max-securities"}

// Why is the error that keeps the source from being ready, nil when there is none. Any goroutine.
func (s *Sink) Why() error {
	if err := s.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// Noted keeps what a change has come to, for why.
func (s *Sink) Noted(err error) error {
	if err == nil {
		s.trouble.Store(nil)
	} else {
		s.trouble.Store(&err)
	}
	return err
}

// change is a record on its way into the engine, and the flags of which it says nothing.
type change struct {
	control.Record
	keep matcher.Side
}

// mark is what a command that comes from a source of this epoch carries: never 0,
// which stands for a control by hand.
func EpochMark(epoch uint64) uint32 {
	h := epoch * 0x9E3779B97F4A7C15
	return uint32(h>>32) | 1
}

func (s *Sink) viewOf() blotter.ControlSource {
	if s.Source == control.Account {
		return blotter.AccountSource
	}
	return blotter.SecuritySource
}

// Install makes the engine's universe that of a snapshot. What the journal holds
// of this epoch already is left alone, so that a control which an operator has
// set by hand stands until the source itself changes the record again. Records
// are sequenced in the order of their versions: the journal then knows how far
// it has come, whenever this ends.
func (s *Sink) Install(ctx context.Context, snapshot control.Snapshot) error {
	return s.Noted(s.install(ctx, snapshot))
}

func (s *Sink) install(ctx context.Context, snapshot control.Snapshot) error {
	at, mark := s.Views.SourceMark(s.viewOf()), EpochMark(snapshot.Epoch)
	if at.Mark == mark && (s.regressed == mark || snapshot.Watermark < uint64(at.Watermark)) {
		s.regressed = mark // however far it comes now: its versions mean something else
		return fmt.Errorf("controls: source %s: version %d was sequenced: %w", s.Source, at.Watermark, bootstrap.ErrRegression)
	}
	changes := make([]change, 0, len(snapshot.Records))
	for _, r := range snapshot.Records {
		if at.Mark != mark || r.Version > uint64(at.Watermark) || !s.known(&r) {
			changes = append(changes, change{r, s.kept(&r, at, at.Mark == mark)})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.Version, b.Version) })
	for _, r := range s.absent(snapshot.Records) {
		r.Version = snapshot.Watermark
		changes = append(changes, change{r, matcher.KeepHalted})
	}
	s.Unknown.only(snapshot.Records, s.Source)
	return s.sequence(ctx, mark, changes)
}

// kept are the flags of a snapshot's record that no change has said since the journal last
// took the source in: they stay as an operator has set them, in a new epoch too, whose
// numbers go on above those of the one before. Where nobody has, what is there already
// stays, so that an operator who is setting it this moment is not overtaken.
func (s *Sink) kept(
	r *control.Record, at blotter.SourceMark, sameEpoch bool,
) (keep matcher.Side) {
	stays := func(said uint64, byHand, same bool) bool {
		old := said <= uint64(at.Watermark)
		return byHand && (old || at.Mark == 0) || old && sameEpoch && same
	}
	if s.Source == control.Account {
		a, ok := s.Views.Account(r.ID)
		if ok && stays(r.SaidEnabled(), a.ByHand, a.Enabled == r.Enabled) {
			keep = matcher.KeepEnabled
		}
		return keep
	}
	id, _ := s.Gate.Security([]byte(r.Ticker))
	row, ok := s.Views.Security(id)
	if ok && stays(r.SaidEnabled(), row.EnabledByHand, row.Enabled == r.Enabled) {
		keep |= matcher.KeepEnabled
	}
	if ok && stays(r.SaidHalted(), row.HaltedByHand, row.Halted == r.Halted) {
		keep |= matcher.KeepHalted
	}
	return keep
}

// Apply sequences deltas in their order. A flag that a change does not say is what it was
// in the source, and stays what it is in the engine.
func (s *Sink) Apply(ctx context.Context, deltas []control.Delta) error {
	changes := make([]change, len(deltas))
	for i := range deltas {
		r := &deltas[i].Record
		changes[i].Record = *r
		if r.SaidEnabled() != r.Version {
			changes[i].keep |= matcher.KeepEnabled
		}
		if s.Source == control.Security && r.SaidHalted() != r.Version {
			changes[i].keep |= matcher.KeepHalted
		}
	}
	return s.Noted(s.sequence(ctx, EpochMark(deltas[0].Epoch), changes))
}

// SetState shows the source's standing on the gate, which lets orders in only
// while every source is ready.
func (s *Sink) SetState(state bootstrap.State, epoch, watermark, high uint64, reason bootstrap.Reason) {
	at := map[bootstrap.State]gate.SourceState{
		bootstrap.Bootstrapping: gate.Bootstrapping, bootstrap.Installed: gate.Installed,
		bootstrap.Ready: gate.Ready, bootstrap.Quarantined: gate.Quarantined,
	}[state]
	if err := s.Gate.SetSource(string(s.Source), at, epoch, watermark, high, string(reason)); err != nil {
		panic(err) // the gate knows both sources: a bug
	}
	if state == bootstrap.Quarantined && s.Quarantined != nil {
		s.Quarantined()
	}
}

// known reports whether the engine has met the record's account or security.
func (s *Sink) known(r *control.Record) bool {
	if s.Source == control.Account {
		_, ok := s.Views.Account(r.ID)
		return ok
	}
	id, ok := s.Gate.Security([]byte(r.Ticker))
	if !ok {
		return false
	}
	row, ok := s.Views.Security(id)
	return ok && row.Known
}

// absent are the accounts or securities that are open in the engine and not in
// the source: they are closed.
func (s *Sink) absent(records []control.Record) (closed []control.Record) {
	there := make(map[string]bool, len(records))
	for i := range records {
		there[records[i].Key(s.Source)] = true
	}
	add := func(r control.Record) {
		if !there[r.Key(s.Source)] {
			closed = append(closed, r)
		}
	}
	if s.Source == control.Account {
		for _, a := range s.Views.Accounts() {
			if a.Enabled {
				add(control.Record{ID: a.ID})
			}
		}
		return closed
	}
	for _, x := range s.Views.Securities() {
		if x.Enabled {
			add(control.Record{Ticker: x.Ticker})
		}
	}
	return closed
}

// sequence hands changes to the engine, as many at a time as a ticket holds.
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

// admit returns the changes that the engine has room for, in their order. Securities that
// it has not met are registered. The others are not even sequenced: the journal would get
// a refused command for each of them at every start.
func (s *Sink) admit(ctx context.Context, chunk []change) ([]change, error) {
	held, capacity := s.room().Places()
	free := capacity - held
	fresh := map[string]bool{} // whether there is a place for what the engine has not met
	var tickers, homeless []string
	fit := make([]change, 0, len(chunk))
	for i := range chunk {
		r := &chunk[i].Record
		if !s.room().Holds(r) {
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

// noteUnknown raises the alarm for records that have no place, and forgets those that have got one.
func (s *Sink) noteUnknown(homeless, housed []string, capacity int) {
	s.Unknown.remove(housed)
	if first := s.Unknown.add(homeless); first != "" {
		s.Log.Error("control feed: the engine has no room for a record: it stays unknown to the gate",
			"source", string(s.Source), "record", first, "unknown", s.Unknown.Count(),
			"capacity", capacity, "see", RoomSettings[s.Source])
	}
}

// room is the engine's table of what the source has records of.
func (s *Sink) room() Room { return Room{s.Source, s.Gate} }

// control fills in the command that a record asks for.
func (s *Sink) control(c *matcher.Command, r *change, mark uint32) error {
	now := s.Now().UnixMilli()
	if s.Source == control.Account {
		*c = matcher.NewCommand(matcher.AccountControl)
		c.AccountID = r.ID
		if r.Enabled {
			c.Side = matcher.SecurityEnabled
		}
		r.keep &^= matcher.KeepHalted
	} else {
		id, ok := s.Gate.Security([]byte(r.Ticker))
		if !ok {
			return fmt.Errorf("controls: ticker %s: %w", r.Ticker, gate.ErrSecurity)
		}
		*c = matcher.NewCommand(matcher.SecurityControl)
		c.SecurityID = id
		if r.Enabled {
			c.Side |= matcher.SecurityEnabled
		}
		if r.Halted {
			c.Side |= matcher.SecurityHalted
		}
	}
	c.Side |= r.keep
	c.EventTimeMillis, c.PriceTicks, c.OrderRef = now, int64(r.Version), mark
	return nil
}

// submit sequences n commands and waits until they are durable. A desk that has
// no room is asked again until ctx ends.
func (s *Sink) submit(ctx context.Context, n int, fill func(i int, c *matcher.Command) error) error {
	told := false
	return desk.SubmitUntil(ctx, s.Desk, n, fill, func(a *desk.Answer) error {
		if a.Kind == matcher.EventApplied || told {
			return nil
		}
		told = true // the first refusal speaks for all
		return fmt.Errorf("controls: source %s: sequence %d was refused: %v", s.Source, a.InputSeq, a.Reason)
	})
}
