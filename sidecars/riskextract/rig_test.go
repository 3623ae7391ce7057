package riskextract

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/store"
)

var _ State = (*matcher.Engine)(nil)

// fakeState is a state in memory.
type fakeState struct {
	positions  []matcher.PositionInfo
	securities []matcher.SecurityInfo
	contracts  []matcher.ContractInfo
}

func (s *fakeState) EachPosition(f func(matcher.PositionInfo) bool) { each(s.positions, f) }
func (s *fakeState) EachSecurity(f func(matcher.SecurityInfo) bool) { each(s.securities, f) }
func (s *fakeState) EachContract(f func(matcher.ContractInfo) bool) { each(s.contracts, f) }

func each[T any](all []T, f func(T) bool) {
	for _, v := range all {
		if !f(v) {
			return
		}
	}
}

// fakeMarks are published marks in memory, of one session and version.
type fakeMarks struct {
	session store.Date
	version uint32
	marks   []store.Mark
	err     error
}

func (m *fakeMarks) Marks(_ context.Context, session store.Date, version uint32) ([]store.Mark,
	bool, error) {
	if session != m.session || version != m.version {
		return nil, false, m.err
	}
	return m.marks, true, m.err
}

// errCrash is the error with which a step of a test ends: nothing after it happens.
var errCrash = errors.New("crash")

// rig is an Extractor and its surroundings.
type rig struct {
	o   Options
	log *waittest.Log

	mu        sync.Mutex // guards the fields below
	states    map[uint64]State
	markers   []Marker
	durable   uint64 // every marker up to it is visible
	announced []Announcement
	engines   int  // states handed out
	open      bool // the engine of the last one is open
	closed    int
	failing   error // the errors of the engine and of the announcement
}

func newRig(t testing.TB) *rig {
	r := &rig{states: make(map[uint64]State), log: new(waittest.Log)}
	r.o = Options{
		Sink:   filepath.Join(t.TempDir(), "extracts"),
		Engine: r.engine, CloseEngine: r.close, Announce: r.announce, Markers: r.durableMarkers,
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	return r
}

func (r *rig) engine(_ context.Context, seq uint64) (State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing != nil {
		return nil, r.failing
	}
	state, there := r.states[seq]
	if !there {
		return nil, errors.New("no engine at that sequence")
	}
	r.engines++
	r.open = true
	return state, nil
}

func (r *rig) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open {
		r.open, r.closed = false, r.closed+1
	}
	return nil
}

// cuts returns how many states were handed out, and how many engines closed.
func (r *rig) cuts() (engines, closed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engines, r.closed
}

func (r *rig) announce(_ context.Context, a Announcement) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing != nil {
		return r.failing
	}
	r.announced = append(r.announced, a)
	return nil
}

func (r *rig) durableMarkers(_ context.Context, from uint64) (found []Marker,
	next uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.markers {
		if from <= m.Seq && m.Seq <= r.durable {
			found = append(found, m)
		}
	}
	return found, max(r.durable+1, from), r.failing
}

// mark sequences a marker over a state.
func (r *rig) mark(m Marker, s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[m.Seq], r.markers, r.durable = s, append(r.markers, m), m.Seq
}

func (r *rig) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = err
}

func (r *rig) announcements() []Announcement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Announcement(nil), r.announced...)
}

// files returns the content of every file below a directory, by name.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		all[name] = string(content)
		return err
	})
	must.OK(t, err)
	return all
}

// write replaces a file, read-only or not.
func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	must.OK(t, os.WriteFile(path, []byte(content), 0o644))
}

// date is a day that the test spells.
func date(t testing.TB, text string) store.Date {
	t.Helper()
	return must.Get(store.ParseDate(text))(t)
}

func containsOnce(text, part string) bool { return strings.Count(text, part) == 1 }

// join is a line of CSV.
func join(columns ...any) string {
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = fmt.Sprint(c)
	}
	return strings.Join(texts, ",") + "\n"
}

// unmarked is the golden counterparties and some instruments, with no marks published.
func unmarked(t *testing.T, instruments string) *inputs {
	t.Helper()
	reference := must.Get(parseReference(goldenCounterparties, instrumentsHeader+"\n"+instruments))(t)
	marks := must.Get(markSetOf(1, 1, nil, false))(t)
	return &inputs{reference: reference, marks: marks}
}
