package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"

	"posttrade/journal"
	"posttrade/journal/evidence/leaf"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// Options of Open.
type Options struct {
	Dir      string        // the folder of the log
	KeyFile  string        // of the signer; empty: log.key in Dir
	Origin   string        // empty: the default
	Interval time.Duration // between two heads; default 1s
	// Engine makes an engine at its genesis (state nil) or from a snapshot's state.
	Engine func(state io.Reader) (journal.Engine, error)
	Leads  func() bool // whether this member signs; nil: always
	// Witnesses are asked to cosign every head; Quorum is how many must have done so before a head is
	// published.
	Witnesses []*Witness
	Quorum    int
	// Alarm is told of the first contradiction, and of every failure that is tried again.
	Alarm func(error)

	step func() error // tests: see folder
}

// Log is the transparency log of one journal. Run keeps it; everything else may be called from any
// goroutine.
type Log struct {
	o       Options
	j       *journal.Journal
	dir     folder
	key     verify.Key
	genesis []byte
	signer  *Signer

	mu    sync.Mutex
	state State
	note  []byte            // the published head, nil for none; writer: Run
	head  verify.Checkpoint // of note
	moved chan struct{}     // closed at the next published head

	client     *http.Client
	candidates chan candidate              // to the witnesses; nil: there are none
	offered    candidate                   // the newest head for them; writer: Run
	edge       atomic.Pointer[verify.Tree] // the tree as it is; writer: Run
	publishing sync.Mutex                  // held while a head is kept and shown
	// the next head is the last one: the witnesses are waited for
	patient bool
	// the newest head is signed with another key: it is signed again; writer: Run
	foreign bool
}

// State is how far a log has come.
type State struct {
	Size     uint64    // leaves of the tree
	Head     uint64    // the last command in the tree or the open leaf
	Signed   uint64    // the last command that a published head covers
	Cosigned uint64    // the last that a quorum of witnesses has cosigned
	Behind   time.Time // since when stable commands wait that no published head covers; zero: none
	Checked  bool      // the whole history has been compared since the start
	Differs  []string  // members with another tree or snapshot, and where
	Err      error     // why the log has stopped; nil: it has not
	// Divergences counts the contradictions found in files, and members with another history.
	Divergences uint64
	Failed      error // the last failure that is being tried again; nil: none
}

// late notes that nothing is signed from now on.
func (s *State) late() {
	if s.Behind.IsZero() {
		s.Behind = time.Now()
	}
}

// Open prepares the log of a journal that has its genesis. It reads the key, or makes it.
func Open(j *journal.Journal, o Options) (*Log, error) {
	text, created := j.Genesis()
	if !created {
		return nil, errors.New("evidence: the journal has no genesis")
	}
	g, err := matcher.ParseGenesis(text)
	if err != nil {
		return nil, err
	}
	o.Origin = Origin(o.Origin, j.Seed())
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Alarm == nil {
		o.Alarm = func(error) {}
	}
	if o.Quorum > len(o.Witnesses) {
		return nil, fmt.Errorf("evidence: %d witnesses must cosign, there are %d", o.Quorum,
			len(o.Witnesses))
	}
	l := &Log{o: o, client: &http.Client{}, j: j, dir: folder{dir: o.Dir, step: o.step},
		genesis: text, moved: make(chan struct{})}
	if l.key, err = leaf.SaltKey(g, j.Seed()); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	if l.signer, err = LoadSigner(o.Dir, o.KeyFile, o.Origin); err != nil {
		return nil, err
	}
	// A published head that cannot be read stops the log, not the start.
	note, head, err := newest(l.dir)
	if err != nil && !isContradiction(err) {
		return nil, err
	}
	if l.state.Err = err; err != nil {
		l.state.Divergences++
		l.state.late()
	}
	if note != nil {
		l.show(note, head)
		l.state.Size, l.state.Head = head.Size, head.Head
	}
	if err != nil {
		return l, nil
	}
	return l, l.restoreNewest()
}

// restoreNewest makes the file checkpoint the newest published head. A head that only that file has
// is taken over when its signature is right.
func (l *Log) restoreNewest() error {
	text, err := os.ReadFile(l.dir.path(checkpointName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("evidence: read: %w", err)
	}
	keys, err := verify.ParseKeys([]string{l.signer.VKey}, nil)
	if err != nil {
		return err
	}
	if head, _, err := keys.Open(text); err == nil &&
		(l.note == nil || head.Head > l.head.Head) {
		l.show(text, head)
		return keep(l.dir, text)
	}
	if l.note == nil || string(text) == string(l.note) {
		return nil
	}
	return l.dir.write(checkpointName, l.note, false)
}

// VKey is the public key of the log.
func (l *Log) VKey() string { return l.signer.VKey }

// Origin is the name of the log.
func (l *Log) Origin() string { return l.o.Origin }

// State is how far the log has come.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Checkpoint is the newest published head, nil for none.
func (l *Log) Checkpoint() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.note
}

func (l *Log) published() verify.Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// show makes a head the published one.
func (l *Log) show(note []byte, head verify.Checkpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note, l.head = note, head
	l.state.Signed = head.Head
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *Log) change(f func(*State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.state)
}

// Stop makes err the reason why nothing is signed any more. The first reason stays.
func (l *Log) Stop(err error) {
	first := false
	l.change(func(s *State) {
		if first = s.Err == nil; first {
			s.Err = err
			s.Divergences++
			s.late()
		}
	})
	if first {
		l.o.Alarm(err)
	}
}

// verifyNewest checks the signature of the published head, if it is of this log's key.
func (l *Log) verifyNewest() error {
	v, err := note.NewVerifier(l.signer.VKey)
	if err != nil {
		return err
	}
	_, err = note.Open(l.Checkpoint(), note.VerifierList(v))
	return err
}

// Run keeps the log until ctx ends or the log stops. Then it signs what has become stable, for at
// most lastPatience. The journal must stay open until Run has returned.
func (l *Log) Run(ctx context.Context) error {
	return journal.Politely(journal.Background, func() error { return l.run(ctx) })
}

// How long the last head at a stop may take, and the pause before a failure is tried again.
const (
	lastPatience = 5 * time.Second
	retryPause   = time.Second
)

func (l *Log) run(ctx context.Context) error {
	if len(l.o.Witnesses) > 0 {
		defer l.startWitnesses()()
	}
	if err := l.State().Err; err != nil {
		l.o.Alarm(err)
		return nil
	}
	for {
		err := l.live(ctx)
		switch {
		case isContradiction(err):
			l.Stop(err)
			return nil
		case err == nil, ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil
		}
		l.change(func(s *State) { s.Failed = err; s.late() })
		l.o.Alarm(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPause):
		}
	}
}

// startWitnesses starts the goroutine that talks to the witnesses; end lets it finish the last
// head.
func (l *Log) startWitnesses() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	l.candidates = make(chan candidate)
	var talking sync.WaitGroup
	talking.Go(func() { l.witness(ctx) })
	return func() {
		late := time.AfterFunc(lastPatience, cancel)
		close(l.candidates)
		talking.Wait()
		late.Stop()
		cancel()
	}
}

// live follows the journal until ctx ends or something fails.
func (l *Log) live(ctx context.Context) (err error) {
	if err := l.notAhead(); err != nil {
		return err
	}
	l.foreign = l.Checkpoint() != nil && l.verifyNewest() != nil
	f, whole, err := l.resume(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	l.change(func(s *State) { s.Failed = nil })
	if !whole && !l.State().Checked {
		checking, cancel := context.WithCancel(ctx)
		var ended sync.WaitGroup
		ended.Go(func() { l.recheck(checking) })
		defer ended.Wait()
		defer cancel()
	}
	tick := time.NewTicker(l.o.Interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := l.step(ctx, f)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && whole { // the step has compared everything
			l.change(func(s *State) { s.Checked = true })
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return l.lastStep(f)
}

// notAhead refuses a published head that covers more than the journal of a single node has. A
// member may get its last commands again from the others.
func (l *Log) notAhead() error {
	signed := l.published().Head
	if head, _ := l.j.Head(); l.o.Leads == nil && signed > head {
		return fmt.Errorf("evidence: file=%s covers sequence %d, the journal ends at %d: %w",
			l.dir.path(checkpointsName), signed, head, ErrContradiction)
	}
	return nil
}

// lastStep signs what a stop leaves behind.
func (l *Log) lastStep(f *follower) error {
	ctx, cancel := context.WithTimeout(context.Background(), lastPatience)
	defer cancel()
	l.patient = true
	head, _ := l.j.Head()
	if err := l.j.WaitStable(ctx, head); err != nil {
		return nil // the journal has failed: it says so itself
	}
	if err := l.step(ctx, f); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// stepCommands is how far a step goes before the time for a new head is looked at.
const stepCommands = 1 << 18

// step follows the journal to its stable head and signs.
func (l *Log) step(ctx context.Context, f *follower) error {
	begun := time.Now()
	for {
		if err := l.State().Err; err != nil {
			return err
		}
		stable, _ := l.j.StableHead()
		l.behind(stable)
		to := min(stable, f.leaf.Head()+stepCommands)
		if err := f.follow(ctx, to); err != nil {
			return err
		}
		l.change(func(s *State) { s.Size, s.Head = f.tree.Size, f.leaf.Head() })
		if edge := l.edge.Load(); edge == nil || edge.Size != f.tree.Size {
			l.edge.Store(f.tree.Clone())
		}
		if to == stable {
			return l.sign(f)
		}
		if time.Since(begun) >= l.o.Interval {
			if err := l.sign(f); err != nil {
				return err
			}
			begun = time.Now()
		}
	}
}

// behind notes since when there is something to sign.
func (l *Log) behind(stable uint64) {
	l.change(func(s *State) {
		if stable > s.Signed {
			s.late()
		}
	})
}

// recheck compares the whole history with the files once, at the lowest priority.
func (l *Log) recheck(ctx context.Context) {
	err := journal.Politely(journal.Bulk, func() error { return l.recheckAll(ctx) })
	switch {
	case ctx.Err() != nil:
	case err == nil:
		l.change(func(s *State) { s.Checked = true })
	case isContradiction(err):
		l.Stop(err)
	default:
		l.o.Alarm(err)
	}
}

func (l *Log) recheckAll(ctx context.Context) (err error) {
	f, err := l.newFollower(l.compareTile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	to := l.published().Head
	if err := f.genesis(); err != nil {
		return err
	}
	f.last = 0 // the partial tiles are compared when they are made
	if f.shadow, err = journal.NewShadow(l.j, l.o.Engine, 0); err != nil {
		return err
	}
	f.leaf.StartAt(0)
	return f.follow(ctx, to)
}
