package evidence

import (
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
	"posttrade/ring/disk"
)

// Options of Open. Engine must be set, and Dir; zero values of the others are the defaults.
type Options struct {
	// Dir is the folder of the log, made if need be. One Log at a time writes into it.
	Dir string
	// KeyFile is that of the signer; empty: log.key in Dir, which is made when it does not exist. A
	// file that is named here must exist.
	KeyFile string
	// Origin is the name of the log in every head; empty: the default, which follows from the genesis.
	Origin string
	// Interval is the time between two heads; 0 or less is the default, 1s.
	Interval time.Duration
	// Engine makes an engine at its genesis (state nil) or from a snapshot's state.
	Engine func(state io.Reader) (journal.Engine, error)
	// Leads reports whether this member signs. nil: always, as on a single node. It is asked before
	// each head, from Run's goroutine.
	Leads func() bool
	// Witnesses are asked to cosign every head; Quorum is how many must have done so before a head is
	// published. With a Quorum of 0 heads do not wait, and are published again with the cosignatures.
	Witnesses []*Witness
	Quorum    int
	// Alarm is told of the first contradiction, and of every failure that is tried again. It is called
	// on the log's goroutines, which wait for it. nil: it is told to none.
	Alarm func(error)
	// Warn is told by Open when heads that were published are not in the file checkpoints any more.
	// nil: it is told to none.
	Warn func(error)

	step func() error // tests: see folder
}

// Log is the transparency log of one journal. Run keeps it; everything else may be called from any
// goroutine.
//
// mu guards state, note, head and moved. publishing is taken before mu and held over the writing of
// files, so that heads reach the files in their order; two goroutines publish: Run's, and the one
// that talks to the witnesses.
type Log struct {
	o   Options
	j   *journal.Journal
	dir folder
	// key makes the salts, signer the signatures: two secrets. key is the same on every member of a
	// cluster, the signer may be each member's own.
	key verify.Key
	// genesis is the text of the genesis record: leaf 0.
	genesis []byte
	signer  *Signer

	mu sync.Mutex
	// state is what State returns a copy of. It is changed under mu only.
	state State
	// note is the published head, nil for none; head is what it says.
	note []byte
	head verify.Checkpoint // of note
	// moved is closed at the next published head, and made anew: proofs wait on it.
	moved chan struct{}

	// client is for requests to witnesses.
	client *http.Client
	// candidates takes heads to the goroutine of the witnesses; nil: there are none. It has no buffer:
	// a head that finds that goroutine busy is dropped, and offered again when nothing newer comes.
	candidates chan candidate
	// offered is the newest head for the witnesses; writer: Run.
	offered candidate
	// edge is a copy of the tree as it is, for MemberTree. Writer: Run; what it points to is not
	// changed.
	edge atomic.Pointer[verify.Tree]
	// publishing is held while a head is kept and shown.
	publishing sync.Mutex
	// patient: the next head is the last one, so the witnesses are waited for. Writer: Run.
	patient bool
	// foreign: the newest head is signed with another key, so it is signed again. Writer: Run.
	foreign bool
}

// Open prepares the log of a journal that has its genesis. It reads the key, or makes it.
//
// The journal must stay open until Run has returned. Open replays nothing: it reads the end of the
// file checkpoints, and writes checkpoint anew where it does not hold the newest head.
//
// Errors: no genesis; a key file that cannot be read or is of another origin; fewer witnesses than
// the quorum; the file system. A head that contradicts is none: the Log is made, and stopped
// (State.Err).
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
	if o.Warn == nil {
		o.Warn = func(error) {}
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
	if err := disk.MakeDir(o.Dir, 0o700); err != nil {
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
//
// A crash between the two files leaves them apart: checkpoints is written first, so it is the newer
// one. Where checkpoint is newer, heads were taken out of checkpoints: Warn is told.
func (l *Log) restoreNewest() error {
	text, err := os.ReadFile(l.dir.path(checkpointName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("evidence: read: %w", err)
	}
	keys, err := verify.ParseKeys([]string{l.signer.VKey}, nil)
	if err != nil {
		return err
	}
	if at, err := ParseNote(text); err == nil && (l.note == nil || at.Head > l.head.Head) {
		l.o.Warn(fmt.Errorf("evidence: file=%s ends at the head of sequence %d, %d was published: heads "+
			"are missing in it, which cannot be made again; put a copy of the file back",
			l.dir.path(checkpointsName), l.head.Head, at.Head))
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

// Checkpoint is the newest published head, nil for none.
func (l *Log) Checkpoint() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.note
}

// published is what the published head says; zero for none.
func (l *Log) published() verify.Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// show makes a head the published one.
//
// Its bytes are on the disk before: what was shown once must not be forgotten.
func (l *Log) show(note []byte, head verify.Checkpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note, l.head = note, head
	l.state.Signed = head.Head
	close(l.moved)
	l.moved = make(chan struct{})
}

// Stop makes err the reason why nothing is signed any more. The first reason stays, and only that
// one is counted and reported. Run ends at its next step. Any goroutine.
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
