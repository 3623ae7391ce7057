package riskextract

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"posttrade/sidecars/store"
)

// The roles that Options.Role can return.
const (
	RoleSingle   = "SINGLE"
	RoleLeader   = "LEADER"
	RoleFollower = "FOLLOWER"
)

// ErrFollower reports that this member stores the cut only; the leader does the rest.
var ErrFollower = errors.New("only the leader writes and announces")

// Options configure an Extractor. Sink, Engine, CloseEngine, Announce and Markers are required.
//
// The functions are called on the goroutines of Extract and Run, and may take as long as the
// context allows.
type Options struct {
	// Sink must outlive the process. Several members may share one: a file that is there already, with
	// the same bytes, is used.
	Sink           string // the directory; it is created
	Counterparties string // path; "": built in
	Instruments    string // path; "": built in
	Marks          Marks  // nil: none is ever published

	// Engine returns an engine that stands exactly at a durable sequence. It may bring the one that it
	// has returned before there.
	Engine func(ctx context.Context, seq uint64) (State, error)
	// CloseEngine closes the engine that Engine has returned last, if it is open.
	CloseEngine func() error
	// Announce publishes risk.extract.ready. It may be called again for the same extract.
	Announce func(ctx context.Context, a Announcement) error
	// Markers returns the durable markers from a sequence on, ascending. next is the sequence from
	// which to continue: all markers before it have been returned.
	Markers func(ctx context.Context, from uint64) (markers []Marker, next uint64, err error)
	// Role is asked again after the cut is stored, because a leadership may end meanwhile.
	Role func() string // nil: always SINGLE

	DB *store.DB // holds the cursor; nil: a file in the sink holds it
	// Own is for a member that always follows: the directory of its own cursor, over the cuts that it
	// has made.
	Own string
	// Followed is for the leader: the Own that it has while it follows. That cursor moves with the
	// leader's, unless cuts before the leader's cursor are still to be made there.
	Followed string
	// Returned returns a channel that closes when a lost broker may be back; that ends a pause after
	// an error. nil: there is no such signal.
	Returned func() <-chan struct{}

	Poll   time.Duration    // how often to look for markers; 0: 1 s
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: none
}

// Extractor makes the extracts of all markers.
//
// The steps of an extract are the stored files themselves: each step first looks whether its file
// is there. So nothing but the cursor has to survive a crash.
type Extractor struct {
	o    Options
	turn chan struct{}     // holds a token while an extract is made; guards kept
	kept map[uint64]string // cutSha256 of the markers whose cut this process has stored
	// step is called between the steps of an extract, in tests, which fail there; nil otherwise.
	step func(string) error

	progress  progress
	cursor    cursor
	saved     uint64 // the durable cursor; only Run uses it and the next field
	announced bool   // a marker above saved was announced
	// The cursor in Followed; nil when it stays where it is. followed is its value, of Run.
	own      cursor
	followed uint64
}

// New returns an Extractor. It does no work until one of its methods is called.
//
// The cursor is the file in Own, else the row in DB, else a file in the sink.
func New(o Options) *Extractor {
	if o.Role == nil {
		o.Role = func() string { return RoleSingle }
	}
	if o.Returned == nil {
		o.Returned = func() <-chan struct{} { return nil }
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	x := &Extractor{o: o, turn: make(chan struct{}, 1), kept: make(map[uint64]string),
		progress: newProgress()}
	switch x.cursor = cursor(fileCursor{o.Sink}); {
	case o.Own != "":
		x.cursor = fileCursor{o.Own}
	case o.DB != nil:
		x.cursor = sqlCursor{o.DB}
	}
	return x
}

// Extract makes the extract of one marker and announces it.
//
//   - It may be repeated at any time, also after a crash: the bytes are the same, and it announces
//     again.
//   - Errors: ErrRefused and ErrMismatch name the cause. A follower returns ErrFollower after it
//     has stored the cut. Any other error comes from the engine, the disk, the database or the
//     broker: try again later.
//   - Cost: an engine brought to the marker, about 20 MB for 100,000 positions and 100,000
//     contracts.
//
// One extract, or one round of Run, is made at a time; other callers wait for their turn or the end
// of their context.
func (x *Extractor) Extract(ctx context.Context, m Marker) (a Announcement, err error) {
	err = x.inTurn(ctx, func() error {
		a, err = x.extract(ctx, m)
		return err
	})
	return a, err
}

// inTurn calls f when no other extract is made, and closes the engine behind it.
func (x *Extractor) inTurn(ctx context.Context, f func() error) error {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return fmt.Errorf("riskextract: %w", ctx.Err())
	}
	return errors.Join(f(), x.o.CloseEngine())
}

// extract is Extract for a caller that has the turn. It leaves the engine open for the next marker.
func (x *Extractor) extract(ctx context.Context, m Marker) (Announcement, error) {
	a, dir, err := x.store(ctx, m)
	if err != nil {
		return Announcement{}, err
	}
	return a, x.announce(ctx, a, dir)
}

// extractOnce is extract for Run: it does not repeat an announcement that the sink has a note of.
// It leaves such a note when an earlier marker is open, because the cursor stays before that one.
//
// The files are compared also when there is a note. A crash before the note is stored repeats the
// announcement.
func (x *Extractor) extractOnce(ctx context.Context, m Marker) error {
	a, dir, err := x.store(ctx, m)
	if err != nil {
		return err
	}
	note := a.note()
	noted, err := dir.holds(announcedName(m.Seq), note)
	if err != nil {
		return err
	}
	if noted {
		delete(x.kept, m.Seq)
		return nil
	}
	if err = x.announce(ctx, a, dir); err != nil || !x.progress.openBefore(m.Seq) {
		return err
	}
	return dir.put(announcedName(m.Seq), note)
}

// store makes all files of an extract, and returns what is to be announced and their folder.
func (x *Extractor) store(ctx context.Context, m Marker) (a Announcement, dir *folder, err error) {
	if err = m.check(); err != nil {
		return a, nil, err
	}
	if x.kept[m.Seq] != "" && x.o.Role() == RoleFollower {
		return a, nil, ErrFollower
	}
	if dir, err = folderOf(x.o.Sink, m, x.step); err != nil {
		return a, nil, err
	}
	text, sum, err := x.cut(ctx, m, dir)
	if err != nil {
		return a, nil, err
	}
	if x.o.Role() == RoleFollower {
		return a, nil, ErrFollower
	}
	a, err = x.artifacts(ctx, m, dir, text, sum)
	return a, dir, err
}

// announce publishes that the files are there.
func (x *Extractor) announce(ctx context.Context, a Announcement, dir *folder) error {
	if err := x.o.Announce(ctx, a); err != nil {
		return fmt.Errorf("riskextract: announce seq=%d: %w", a.ConsensusSequence, err)
	}
	delete(x.kept, a.ConsensusSequence)
	return dir.at("announced")
}

// cut stores the cut of a marker and returns its text and SHA-256.
//
// A cut that this process has stored is read back and compared with its sum; a changed file leads
// to a new rendering, whose put then reports ErrMismatch.
func (x *Extractor) cut(ctx context.Context, m Marker, dir *folder) (text, sum string, err error) {
	if sum = x.kept[m.Seq]; sum != "" {
		if text, err = dir.read(cutName(m.Seq), sum); err == nil {
			return text, sum, nil
		}
	}
	state, err := x.o.Engine(ctx, m.Seq)
	if err != nil {
		return "", "", fmt.Errorf("riskextract: engine at seq=%d: %w", m.Seq, err)
	}
	cut, err := renderCut(m, state)
	if err != nil {
		return "", "", err
	}
	if err = dir.put(cutName(m.Seq), cut.Bytes); err != nil {
		return "", "", err
	}
	x.kept[m.Seq] = cut.SHA256
	x.o.Logger.Info(fmt.Sprintf("RISK-EXTRACT-CUT seq=%d rows=%d contracts=%d sha256=%s role=%s",
		m.Seq, cut.Rows, cut.Contracts, cut.SHA256, x.o.Role()))
	return string(cut.Bytes), cut.SHA256, nil
}

// artifacts stores the two files and all their inputs, and returns the announcement.
//
// It parses the text of the cut, as Rebuild does, and never the engine's own state.
func (x *Extractor) artifacts(ctx context.Context, m Marker, dir *folder,
	text, sum string) (Announcement, error) {
	cut, err := parseCut(text)
	if err != nil {
		return Announcement{}, err
	}
	pins, in, err := x.inputs(ctx, m, dir)
	if err != nil {
		return Announcement{}, err
	}
	made, err := dir.render(cut, sum, in, pins)
	if err != nil {
		return Announcement{}, err
	}
	// The manifest is stored first: once it is there, a repetition uses the inputs that it pins.
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{manifestName(m.Seq), []byte(pins.text(m.Seq))},
		{positionsFile(m.Seq), made.positions},
		{contractsFile(m.Seq), made.contracts},
	} {
		if err := dir.put(file.name, file.content); err != nil {
			return Announcement{}, err
		}
	}
	a := Announcement{
		SHA256: pins.positions, ContractsSHA256: pins.contracts,
		ConsensusSequence: m.Seq, SessionDate: m.SessionDate.String(), CutSHA256: sum,
		Schema: PositionsSchema, Rows: len(cut.positions),
		Contracts: len(cut.contracts), ContractsSchema: ContractsSchema, PriceVersion: m.PriceVersion,
	}
	if a.URI, err = fileURI(dir.path, positionsFile(m.Seq)); err != nil {
		return Announcement{}, err
	}
	a.ContractsURI, err = fileURI(dir.path, contractsFile(m.Seq))
	return a, err
}

// inputs returns the inputs that are pinned for a marker. When none are, it stores the ones now in
// force and returns them with a manifest that is not stored yet.
//
// A repetition with other reference files or later marks so gives the same bytes as the first
// attempt, from the moment when the manifest was stored.
func (x *Extractor) inputs(ctx context.Context, m Marker, dir *folder) (*manifest, *inputs, error) {
	pins, found, err := dir.manifest(m.Seq)
	if err != nil {
		return nil, nil, err
	}
	if found {
		in, err := dir.inputs(pins, m)
		return pins, in, err
	}
	in := new(inputs)
	if in.reference, err = loadReference(x.o.Counterparties, x.o.Instruments); err != nil {
		return nil, nil, err
	}
	var marks []store.Mark
	if x.o.Marks != nil {
		if marks, found, err = x.o.Marks.Marks(ctx, m.SessionDate, m.PriceVersion); err != nil {
			if errors.Is(err, store.ErrMarksChanged) { // it concerns this extract alone
				err = fmt.Errorf("%w: %w", ErrMismatch, err)
			}
			return nil, nil, fmt.Errorf("riskextract: marks sessionDate=%s version=%d: %w", m.SessionDate,
				m.PriceVersion, err)
		}
	}
	if in.marks, err = markSetOf(m.SessionDate, m.PriceVersion, marks, found); err != nil {
		return nil, nil, err
	}
	pins, err = dir.keep(in)
	return pins, in, err
}

// fileURI is the URI of a stored file.
func fileURI(dir, name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("riskextract: uri: %w", err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String(), nil
}
