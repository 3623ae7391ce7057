package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"posttrade/matcher"
)

// Archived says what Archive has moved: the commits behind From, up to and including To.
type Archived struct {
	Name     string // of the folder; "": there was nothing to move
	From, To Point
	SHA256   string
	Root     string // of the evidence tree, "" for none
}

// ErrNothingOld: there is no block that may be moved out.
var ErrNothingOld = errors.New("no block is older than that, and older than a snapshot")

// Archive moves the commits that were closed before a time, and that a snapshot stands for, from
// the journal in dir into a folder below into, and leaves a pointer. root may be nil; it gives the
// root of the evidence tree over the commands up to a sequence, "" for none.
//
//   - No other process may have the journal open. The last blocks stay, whatever their age.
//   - What is moved is verified on the way. The blocks are removed when the archive is on stable
//     storage, together with the writing of the pointer. Killed at any moment, the journal has all
//     of it, or the archive has: the next Archive goes on. It reads the archive that it finds, and
//     removes nothing when that does not hold. It moves what that archive has and no more, also
//     when more has become old since.
//
// Errors: ErrNothingOld when nothing may be moved, those of OpenExisting, ErrCorrupt for what does
// not hold, ErrDiverged for a folder that holds another archive. Cost: what is moved is read twice
// and written once; then the store compacts.
func Archive(ctx context.Context, dir, into string, before time.Time, o Options,
	root func(inputSeq uint64) (string, error)) (done Archived, err error) {
	j, err := OpenExisting(dir, o)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	from := j.db.archives.end()
	if from.inputSeq == 0 {
		from.chain = j.seed
	}
	ends, err := j.archivesBehind(from, into)
	if err != nil {
		return done, err
	}
	to, err := j.old(ctx, before.UnixMilli(), ends)
	if err != nil {
		return done, err
	}
	s := archivePointer{Name: archiveFolder(from, to.inputSeq), From: from.exported(),
		To: to.exported()}
	if root != nil {
		if s.Root, err = root(to.inputSeq); err != nil {
			return done, err
		}
	}
	folder := j.o.FS.PathJoin(into, s.Name)
	if s.SHA256, err = j.putArchive(ctx, folder, &s, from, to); err != nil {
		return done, err
	}
	if err := j.remove(&s, from, to); err != nil {
		return done, err
	}
	return Archived{Name: s.Name, From: from.exported(), To: to.exported(), SHA256: s.SHA256,
		Root: s.Root}, nil
}

// archivesBehind lists where the archives in a folder end that are whole and begin behind a commit
// of this journal: one may be what an Archive has left that was cut short before the pointer.
func (j *Journal) archivesBehind(from point, into string) (ends []Point, err error) {
	fs := j.o.FS
	names, err := fs.List(into)
	if err != nil && !notExist(err) {
		return nil, fmt.Errorf("journal: list dir=%s: %w", into, err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, fmt.Sprintf("%020d-", from.inputSeq+1)) {
			continue
		}
		text, err := readWhole(fs, fs.PathJoin(into, name, archiveName))
		if err != nil {
			continue // cut short; one that cannot be read may be another's
		}
		body, _, err := readArchiveFile(text)
		if err == nil && body.Genesis == fmt.Sprintf("%x", j.seed) && body.From == from.exported() &&
			name == archiveFolder(from, body.To.InputSeq) {
			ends = append(ends, body.To)
		}
	}
	return ends, nil
}

// archiveFolder names the folder of an archive of what is behind a commit.
func archiveFolder(from point, to uint64) string {
	return fmt.Sprintf("%020d-%020d", from.inputSeq+1, to)
}

// old finds the last commit that may be moved out: up to its end every command is from before the
// time, in milliseconds, it is up to a snapshot whose files hold, and not among the blocks that an
// opening reads. If any of ends is not behind it, that is the commit, the last of them.
// ErrNothingOld when there is none behind what was moved before. It reads and verifies the commands
// of all that it may move: a late price may stand behind younger commands.
func (j *Journal) old(ctx context.Context, before int64, ends []Point) (at point, err error) {
	limit, err := j.newestWhole()
	if err != nil {
		return at, err
	}
	start, err := tailStart(j.db, j.safe.inputSeq) // these blocks stay
	if err != nil {
		return at, err
	}
	limit = min(limit, start-min(start, 1))
	w := newWalker(j.db, j.Seed())
	w.bare = true
	defer w.close()
	moved := j.db.archives.end()
	if err := w.startAt(moved.inputSeq + 1); err != nil {
		return at, err
	}
	var ended point
	err = w.walk(0, func(d *decoded) error {
		if d.last() > limit || slices.ContainsFunc(d.commands, func(c matcher.Command) bool {
			return c.TemplateID == matcher.TemplateCommand && c.EventTimeMillis >= before
		}) {
			return errEnd
		}
		if at = w.at; slices.Contains(ends, at.exported()) {
			ended = at
		}
		return ctx.Err()
	})
	if errors.Is(err, errEnd) {
		err = nil
	}
	if ended.inputSeq > 0 {
		at = ended
	}
	if err == nil && at.inputSeq <= moved.inputSeq {
		err = fmt.Errorf("journal: archive dir=%s: %w", j.dir, ErrNothingOld)
	}
	return at, err
}

// errEnd ends a walk without being an error.
var errEnd = errors.New("the end")

// newestWhole is the sequence of the newest snapshot whose files hold; 0: there is none. It reads
// those files in full.
func (j *Journal) newestWhole() (uint64, error) {
	list, err := j.Snapshots()
	if err != nil {
		return 0, err
	}
	for _, s := range list {
		parts, err := j.openParts(s)
		if err != nil {
			j.report(err)
			continue
		}
		for _, p := range parts {
			err = errors.Join(err, p.close())
		}
		return s.InputSeq, err
	}
	return 0, nil
}

// putArchive writes an archive, unless it is there, and returns its hash. It is made as a transfer
// is received: verified, flushed, and only then named by its file. A folder without that file was
// cut short, and is made again; one with the file of another archive is ErrDiverged. One that is
// there already is verified too: between the two calls it may have been damaged, or be another
// copy.
func (j *Journal) putArchive(ctx context.Context, folder string, s *archivePointer,
	from, to point) (sum string, err error) {
	fs := j.o.FS
	body, err := json.Marshal(archiveBody{Format: archiveFormat, Genesis: fmt.Sprintf("%x", j.seed),
		From: s.From, To: s.To, Root: s.Root})
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(body)
	sum = hex.EncodeToString(hash[:])
	name := fs.PathJoin(folder, archiveName)
	switch text, err := readWhole(fs, name); {
	case err == nil:
		if _, got, err := readArchiveFile(text); err != nil || got != sum {
			return "", errors.Join(fmt.Errorf("journal: file=%s is of another archive: %w", name,
				ErrDiverged),
				err)
		}
		return sum, j.confirm(ctx, folder, from, to) // the process ended before the rest
	case !notExist(err):
		return "", fmt.Errorf("journal: read file=%s: %w", name, err) // it may be of a whole archive
	}
	if err := fs.RemoveAll(folder); err != nil { // what was cut short
		return "", fmt.Errorf("journal: remove dir=%s: %w", folder, err)
	}
	t, err := j.transfer(placedPoint(from), func() point { return to })
	if err != nil {
		return "", err
	}
	for _, p := range t.parts { // snapshots are the journal's
		err = errors.Join(err, p.close())
	}
	t.parts = nil
	if err = errors.Join(err, t.measure()); err == nil {
		err = receiveSection(folder, j.seed, from, t, Options{FS: fs, Fatal: func(error) {}})
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return "", err
	}
	text, err := json.Marshal(archiveText{body, sum})
	if err != nil {
		return "", err
	}
	return sum, ReplaceFile(fs, folder, archiveName, append(text, '\n'))
}

// confirm reads an archive that an earlier call has written, before the journal's own copy of it is
// removed: it must have every commit behind from up to to, and be on stable storage, which the
// earlier call may not have come to. An error names the folder.
func (j *Journal) confirm(ctx context.Context, folder string, from, to point) (err error) {
	fs := j.o.FS
	defer func() {
		if err != nil {
			err = fmt.Errorf("journal: archive dir=%s does not hold what its %s says; nothing was removed "+
				"from the journal: %w", folder, archiveName, err)
		}
	}()
	db, latch, err := openArchive(fs, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(db, latch)) }()
	if err := sameGenesis(db, fmt.Sprintf("%x", j.seed)); err != nil {
		return err
	}
	w := newWalker(db, j.seed)
	defer w.close()
	w.at = from
	err = w.walk(0, func(*decoded) error { return ctx.Err() })
	if err == nil && w.at != to {
		err = fmt.Errorf("it ends at inputSeq=%d, want %d: %w", w.at.inputSeq, to.inputSeq, errSizes)
	}
	if err != nil {
		return err
	}
	return errors.Join(syncFiles(fs, fs.PathJoin(folder, storeName)), syncFiles(fs, folder),
		makeDir(fs, folder))
}

// placedPoint is the point that a section goes on from; zero for the beginning, where a point has
// the genesis hash as its chain and a Point has none.
func placedPoint(p point) Point {
	if p.inputSeq == 0 {
		return Point{}
	}
	return p.exported()
}

// remove takes the blocks out of the store and leaves the pointer, in one synced batch. Then it
// compacts the ranges, which gives the space back and may take long. A failure poisons the journal.
func (j *Journal) remove(s *archivePointer, from, to point) error {
	v, err := putPointer(*s)
	if err != nil {
		return err
	}
	b := j.db.NewBatch()
	ranges := [][2][]byte{
		{newKey(keyCommands, from.inputSeq+1), newKey(keyCommands, to.inputSeq+1)},
		{newKey(keyFills, from.tradeSeq+1), newKey(keyFills, to.tradeSeq+1)},
		{newKey(keyIDs, from.inputSeq+1), newKey(keyIDs, to.inputSeq+1)},
	}
	for _, r := range ranges {
		err = errors.Join(err, b.DeleteRange(r[0], r[1], nil))
	}
	err = errors.Join(err, b.Set(newKey(keyArchive, to.inputSeq), v, nil))
	if err != nil {
		return fmt.Errorf("journal: archive: %w", err)
	}
	err = j.latch.orPoison(func() error {
		if err := j.db.Apply(b, pebble.Sync); err != nil {
			return err
		}
		for _, r := range ranges { // gives the space back
			if string(r[0]) == string(r[1]) {
				continue
			}
			if err := j.db.Compact(context.Background(), r[0], r[1], false); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && j.lazy != nil {
		err = j.lazy.Flush()
	}
	if err != nil {
		return j.latch.Poison(fmt.Errorf("journal: archive up to inputSeq=%d: %w", to.inputSeq, err))
	}
	return nil
}
