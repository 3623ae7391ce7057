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

// Sink carries the changes of a control feed into the engine. Every change is a sequenced command,
// so that it is in the journal and in every replay, and the gate takes it over from the engine's
// own events. One goroutine uses it.
//
// A record for which the engine has no room stays unknown to the gate. All other records go on, and
// the record is tried again with its next change and the next snapshot.
type Sink struct {
	Source control.Source
	Gate   *gate.Gate
	Desk   *desk.Desk
	Views  *blotter.Views
	Now    func() time.Time
	Log    *slog.Logger
	// Quarantined is called when the source was quarantined, so that its publisher checks the stream
	// too; nil: there is no publisher.
	Quarantined func()

	regressed uint32 // the mark of an epoch in which the source has lost changes
	// Why the last change failed, nil when it did not; any goroutine reads.
	trouble atomic.Pointer[error]
	Unknown unknownRecords // records that found no room
}

// RoomSettings name the settings of the engine's room, by source.
var RoomSettings = map[control.Source]string{control.Account: "risk.max-accounts",
	control.Security: "risk.max-securities"}

// Why returns the error that keeps the source from being ready, nil for none. Any goroutine.
func (s *Sink) Why() error {
	if err := s.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// Noted keeps the result of a change, for Why.
func (s *Sink) Noted(err error) error {
	if err == nil {
		s.trouble.Store(nil)
	} else {
		s.trouble.Store(&err)
	}
	return err
}

// change is a record to be sequenced, and the flags that it does not set.
type change struct {
	control.Record
	keep matcher.Side
}

// EpochMark returns the mark that a command from a source of this epoch carries. It is never 0,
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

// Install makes the engine's universe that of a snapshot. It skips the records of this epoch that
// the journal already holds, so that a control which an operator has set by hand stays until the
// source itself changes the record again. Records are sequenced in the order of their versions, so
// that the journal shows the progress whenever Install ends.
func (s *Sink) Install(ctx context.Context, snapshot control.Snapshot) error {
	return s.Noted(s.install(ctx, snapshot))
}

func (s *Sink) install(ctx context.Context, snapshot control.Snapshot) error {
	at, mark := s.Views.SourceMark(s.viewOf()), EpochMark(snapshot.Epoch)
	if at.Mark == mark && (s.regressed == mark || snapshot.Watermark < uint64(at.Watermark)) {
		s.regressed = mark // however far it comes now: its versions have another meaning
		return fmt.Errorf("controls: source %s: version %d was sequenced: %w", s.Source,
			at.Watermark, bootstrap.ErrRegression)
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

// kept returns the flags of a snapshot's record that no change has set since the journal last took
// the source's changes. They stay as an operator has set them, in a new epoch too, since its
// versions go on above those of the epoch before. Within an epoch, such a flag also stays when it
// is equal in the engine, so that the command does not overwrite a change that an operator is
// making at this moment.
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

// Apply sequences deltas in their order. A flag that a change does not set has its old value in the
// source, and keeps its value in the engine.
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

// SetState shows the source's state on the gate, which admits orders only while every source is
// ready.
func (s *Sink) SetState(state bootstrap.State,
	epoch, watermark, high uint64, reason bootstrap.Reason) {
	at := map[bootstrap.State]gate.SourceState{
		bootstrap.Bootstrapping: gate.Bootstrapping, bootstrap.Installed: gate.Installed,
		bootstrap.Ready: gate.Ready, bootstrap.Quarantined: gate.Quarantined,
	}[state]
	if err := s.Gate.SetSource(string(s.Source), at, epoch, watermark, high,
		string(reason)); err != nil {
		panic(err) // the gate knows both sources: a bug
	}
	if state == bootstrap.Quarantined && s.Quarantined != nil {
		s.Quarantined()
	}
}

// known reports whether the engine has the record's account or security.
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

// absent returns the accounts or securities that are open in the engine and not in the source: the
// sink closes them.
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

// sequence passes changes to the engine, as many at a time as a ticket holds.
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

// capacity returns what the engine has room for, of the records of the source.
func (s *Sink) capacity() Capacity { return Capacity{s.Source, s.Gate} }

// control fills in the command for a record.
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
