package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A scrub reads the whole journal while everything else runs, and makes the checks that Verify
// makes of blocks: checksums, chain, contiguity of both sequences, fills and client ids. The store
// checks its tables as it reads them; a pass begins with an empty cache, so that it reads every
// block of a table from its file. A scrub records damage and reads on behind it, so one pass
// finds all of it. The findings survive a restart in a small file beside the store; a pass that was
// cut short continues where it was.
//
// A scrub checks neither what a replay would give, nor data that is still in the system's memory.

// Damage is a range of commands that cannot be read as they were written. From and To are the first
// and the last of them. A range may contain whole blocks that the search for its end has passed
// (readable).
type Damage struct {
	File string `json:"file"` // of the store; empty when it is not known
	Key  string `json:"key"`
	From uint64 `json:"from"` // commands with unreadable records, fills or client ids
	To   uint64 `json:"to"`
	Why  string `json:"why"`
}

// ScrubState is what is known of the journal's blocks. The zero value: no pass has been made.
type ScrubState struct {
	// where the pass under way continues; 0: no pass is under way
	Next      uint64    `json:"next"`
	Completed time.Time `json:"completed"` // the last pass; zero: none
	Damaged   []Damage  `json:"damaged"`   // found since the pass before the last began, by sequence
}

// scrubName is the file beside the store with the findings: ScrubState as JSON.
const scrubName = "scrub"

// scrubShare is the part of the time in which a scrub uses the disk: after every scrubPiece it
// rests for the other parts.
const (
	scrubShare = 5
	scrubPiece = 1 << 20
)

// keptAtOnce is how many findings of a pass are written when they are found; the others wait for
// the end of the pass: a ruined disk has damage everywhere.
const keptAtOnce = 20

// Scrub reads journals again and again. One goroutine runs it; any goroutine may call State. It
// reads the store beside everything else and writes only its own file.
type Scrub struct {
	j        *Journal
	interval time.Duration
	report   func(Damage)     // gets each damage once a pass
	now      func() time.Time // tests
	rest     func(time.Duration) <-chan time.Time
	piece    uint64 // scrubPiece; tests

	mu    sync.Mutex
	state ScrubState // guarded by mu
	found []Damage   // of the pass under way, by sequence; of the goroutine that runs the scrub
	// why the file does not have the state; nil: it has the last one. Guarded by mu
	unkept error
}

// NewScrub returns a scrub that begins a pass every interval, and knows what the last one has
// found. If the file with the findings cannot be read, a pass begins at once. report is called by
// the goroutine that runs the scrub, and again for the same damage in each pass.
func NewScrub(j *Journal, interval time.Duration, report func(Damage)) *Scrub {
	s := &Scrub{
		j: j, interval: interval, report: report, now: time.Now, rest: time.After, piece: scrubPiece,
	}
	if text, err := readWhole(j.o.FS, s.file()); err == nil {
		if json.Unmarshal(text, &s.state) != nil {
			s.state = ScrubState{}
		}
		// An older build may have written one damage twice.
		list := s.state.Damaged
		slices.SortStableFunc(list, func(a, b Damage) int { return cmp.Compare(a.From, b.From) })
		s.state.Damaged = slices.CompactFunc(list, func(a, b Damage) bool { return a.From == b.From })
	}
	s.found, _ = s.state.beyond(s.state.Next)
	return s
}

// beyond divides what is known to be damaged at a sequence: what begins before it, and the rest.
func (s *ScrubState) beyond(next uint64) (before, rest []Damage) {
	for _, d := range s.Damaged {
		if d.From < next {
			before = append(before, d)
		} else {
			rest = append(rest, d)
		}
	}
	return before, rest
}

func (s *Scrub) file() string { return s.j.o.FS.PathJoin(s.j.dir, scrubName) }

// State is what is known now. The caller must not change its slice.
func (s *Scrub) State() ScrubState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Unkept is why the findings could not be written into their file; nil when they were. A restart
// knows what was written last. Any goroutine.
func (s *Scrub) Unkept() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unkept
}

// Run scrubs until ctx ends. It returns an error when the journal is poisoned or closed; damaged
// blocks go to report, and Unkept says that findings could not be written.
func (s *Scrub) Run(ctx context.Context) error {
	for {
		if due := s.State().Completed.Add(s.interval); s.State().Next == 0 && s.now().Before(due) {
			select {
			case <-s.rest(due.Sub(s.now())):
			case <-ctx.Done():
				return nil
			}
		}
		if err := s.Pass(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// Pass continues the pass that was cut short, or makes a new one, up to the head at its beginning.
// When ctx ends it records how far it has come, and returns nil. What was moved into archives is
// not read. It takes scrubShare times as long as the reading does. Errors: those of Run.
func (s *Scrub) Pass(ctx context.Context) error {
	head, _ := s.j.Head()
	s.j.db.dropCache()
	w := newWalker(s.j.db, s.j.Seed())
	defer w.close()
	moved := s.j.db.archives.end()
	if err := w.startAt(moved.inputSeq + 1); err != nil {
		return err
	}
	if from := s.State().Next; from > moved.inputSeq+1 {
		if next, found := s.readable(from, head); found && next == from {
			w.skipTo(from)
		} else { // it cannot tell what is there: this pass begins anew
			s.found = nil
		}
	}
	pace := scrubPace{s: s, begun: s.now()}
	for w.at.inputSeq < head {
		err := w.walk(head, func(d *decoded) error {
			s.at(d.last() + 1)
			return pace.read(ctx, d.stored)
		})
		switch {
		case err == nil:
			w.at.inputSeq = max(w.at.inputSeq, head) // the walk ends at the end of the store
		case ctx.Err() != nil:
			s.reached(s.State().Next)
			s.keep()
			return nil
		case s.j.usable() != nil:
			return s.j.usable()
		default:
			w.skipTo(s.damaged(w, head, err))
		}
	}
	s.completed()
	s.keep()
	return nil
}

// at records progress: the pass goes on with the command next.
func (s *Scrub) at(next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Next = next
}

// reached is at, and makes the state one that a restart goes on from: before next it knows what
// this pass has found, from there on what the one before has found.
func (s *Scrub) reached(next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, rest := s.state.beyond(next)
	s.state.Next, s.state.Damaged = next, slices.Concat(s.found, rest)
}

// damaged reports what could not be read behind the walker's position, and returns the first
// sequence behind the damage. A block that reads by itself and does not follow the one before it is
// damage too: its chain, fills or ids.
func (s *Scrub) damaged(w *walker, head uint64, why error) (next uint64) {
	from := w.at.inputSeq + 1
	next, found := s.readable(from, head)
	if found && next == from { // the damage is in that block, or in a block that belongs to it
		next, found = s.readable(from+1, head)
	}
	if !found {
		next = head + 1
	}
	d := Damage{Key: keyName(newKey(keyCommands, from)), From: from, To: next - 1, Why: why.Error()}
	if info := pebble.ExtractDataCorruptionInfo(why); info != nil {
		d.File, d.Why = info.Path, fmt.Sprint(info.Details)
	} else {
		d.File = s.tableOf(newKey(keyCommands, from))
	}
	s.found = append(s.found, d)
	s.reached(next)
	if len(s.found) <= keptAtOnce {
		s.keep()
	}
	s.report(d)
	return next
}

// readable finds the first block of commands at or behind from that the store can read. Behind a
// damaged part of a table it searches in steps that double, and so may pass some whole blocks: the
// store takes a second for a damaged part of a table, because it searches that part for a flipped
// bit.
func (s *Scrub) readable(from, head uint64) (first uint64, found bool) {
	for step := uint64(1); from <= head; from, step = from+step, 2*step {
		first = 0
		lower, upper := newKey(keyCommands, from), newKey(keyCommands, head+1)
		err := iterate(s.j.db, lower, upper, func(it *pebble.Iterator) error {
			if !it.First() {
				return it.Error()
			}
			var ok bool
			if first, ok = keySeq(it.Key()); !ok {
				return errSizes
			}
			v, err := it.ValueAndErr()
			if err == nil {
				_, _, err = parseEnvelope(v, keyCommands)
			}
			if first == from && err != nil {
				return nil // found, and damaged
			}
			return err
		})
		switch {
		case err == nil && first >= from:
			return first, true
		case err == nil:
			return 0, false // there is no block behind it
		}
	}
	return 0, false
}

// tableOf is the file that holds a key; empty when it is in a log, or when the store does not say.
func (s *Scrub) tableOf(key []byte) string {
	levels, err := tablesOf(s.j.db)
	if err != nil {
		return ""
	}
	for _, level := range levels {
		for _, t := range level {
			if string(t.Smallest.UserKey) <= string(key) && string(key) <= string(t.Largest.UserKey) {
				return s.j.o.FS.PathJoin(s.j.dir, storeName, fmt.Sprintf("%06d.sst", uint64(t.FileNum)))
			}
		}
	}
	return ""
}

// completed ends a pass: damage that the pass has not found again has been repaired.
func (s *Scrub) completed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = ScrubState{Completed: s.now(), Damaged: s.found}
	s.found = nil
}

// keep writes the state into its file. A disk that is full does not end the scrub: the next pass
// tries again.
func (s *Scrub) keep() {
	err := s.write()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unkept = err
}

// write writes the state, in one rename and without a sync. A crash during write loses only the
// position of the pass.
func (s *Scrub) write() error {
	text, err := json.Marshal(s.State())
	if err != nil {
		return err
	}
	fs, name := s.j.o.FS, s.file()
	f, err := fs.Create(name+".new", writeCategory)
	if err != nil {
		return fmt.Errorf("journal: create file=%s: %w", name, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("journal: write file=%s: %w", name, err)
	}
	if err := fs.Rename(name+".new", name); err != nil {
		return fmt.Errorf("journal: rename file=%s: %w", name, err)
	}
	return nil
}

// scrubPace leaves most of the disk's time to other work: after a piece that took some time it
// rests four times as long.
type scrubPace struct {
	s     *Scrub
	begun time.Time
	bytes uint64
}

// read rests when a piece has been read, in proportion to the time that the piece took: on a disk
// that others keep busy it rests longer. It returns ctx's error.
func (p *scrubPace) read(ctx context.Context, bytes uint64) error {
	if p.bytes += bytes; p.bytes < p.s.piece {
		return ctx.Err()
	}
	rest := max(p.s.now().Sub(p.begun)*(scrubShare-1), time.Millisecond)
	select {
	case <-p.s.rest(rest):
	case <-ctx.Done():
	}
	p.bytes, p.begun = 0, p.s.now()
	return ctx.Err()
}

// skipTo makes the walker continue with the block that begins with a sequence, whatever is before
// it: the walker does not check what that block follows. From the next block on it checks
// everything again.
func (w *walker) skipTo(first uint64) {
	w.at = point{inputSeq: first - 1}
	w.adrift = true
}

// readWhole reads a small file. notExist knows the error of one that is missing.
func readWhole(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}
