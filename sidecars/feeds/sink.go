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
//
// The fields up to Quarantined are set before the first use. The only state of its own is what it
// needs within a process: how far the engine is, it reads from the views, which follow the journal.
// So a restart at any moment continues where the journal ends.
type Sink struct {
	Source control.Source
	Gate   *gate.Gate
	Desk   *desk.Desk
	Views  *blotter.Views
	Now    func() time.Time
	Log    *slog.Logger
	// Quarantined is called when the source was quarantined, so that its publisher checks the stream
	// too; nil: there is no publisher.
	//
	// It is called with the lock of the bootstrap held and must not wait.
	Quarantined func()

	regressed uint32 // the mark of an epoch in which the source has lost changes
	// Why the last change failed, nil when it did not; any goroutine reads.
	trouble atomic.Pointer[error]
	Unknown unknownRecords // records that found no room
}

// RoomSettings name the settings of the engine's room, by source.
//
// Nothing writes to the map.
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
//
// It returns err as it is.
func (s *Sink) Noted(err error) error {
	if err == nil {
		s.trouble.Store(nil)
	} else {
		s.trouble.Store(&err)
	}
	return err
}

// change is a record to be sequenced, and the flags that it does not set.
//
// keep has the bits matcher.KeepEnabled and matcher.KeepHalted: the engine leaves these flags
// alone.
type change struct {
	control.Record
	keep matcher.Side
}

// EpochMark returns the mark that a command from a source of this epoch carries. It is never 0,
// which stands for a control by hand.
//
// The mark is 32 bits of a hash, because a command has no room for an epoch. Two epochs with one
// mark look the same; the multiplier spreads neighbouring times over all bits.
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
//
// It returns when every command is durable. bootstrap.ErrRegression means that the journal already
// holds a later version of this epoch; nothing is sequenced then. After any other error a part may
// be sequenced, and Install may be called again.
func (s *Sink) Install(ctx context.Context, snapshot control.Snapshot) error {
	return s.Noted(s.install(ctx, snapshot))
}

// install decides which records need a command: those of another epoch, those with a version behind
// what the journal has, and those that the engine does not know. Records that the engine has and
// the source does not are closed under the watermark's version, last.
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
//
// said is the version of the change that set a flag; byHand whether the engine's flag was set by
// hand.
func (s *Sink) kept(
	r *control.Record, at blotter.SourceMark, sameEpoch bool,
) (keep matcher.Side) {
	stays := func(said uint64, byHand, same bool) bool {
		old := said <= uint64(at.Watermark)
		return byHand && (old || at.Mark == 0) || old && sameEpoch && same
	}
	if s.Source == control.Account {
		a, ok := s.Views.Account(r.ID)
		if ok && stays(r.EnabledSetVersion(), a.ByHand, a.Enabled == r.Enabled) {
			keep = matcher.KeepEnabled
		}
		return keep
	}
	id, _ := s.Gate.Security([]byte(r.Ticker))
	row, ok := s.Views.Security(id)
	if ok && stays(r.EnabledSetVersion(), row.EnabledByHand, row.Enabled == r.Enabled) {
		keep |= matcher.KeepEnabled
	}
	if ok && stays(r.HaltedSetVersion(), row.HaltedByHand, row.Halted == r.Halted) {
		keep |= matcher.KeepHalted
	}
	return keep
}

// Apply sequences deltas in their order. A flag that a change does not set has its old value in the
// source, and keeps its value in the engine.
//
// All deltas are of one epoch. It returns when every command is durable.
func (s *Sink) Apply(ctx context.Context, deltas []control.Delta) error {
	changes := make([]change, len(deltas))
	for i := range deltas {
		r := &deltas[i].Record
		changes[i].Record = *r
		if r.EnabledSetVersion() != r.Version {
			changes[i].keep |= matcher.KeepEnabled
		}
		if s.Source == control.Security && r.HaltedSetVersion() != r.Version {
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
//
// A security may be registered and have no record yet: it holds a place and is not known.
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
//
// Accounts and securities that are disabled need nothing. Cost: a walk over both sides.
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
