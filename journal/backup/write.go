package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"posttrade/journal"
	"posttrade/ring/disk"
)

// Contents gives what is to be kept. Write asks for the journal first, and for the rows when it has
// all of the journal.
type Contents interface {
	// Journal is the journal behind a point of the history with that genesis hash, as TransferAfter
	// gives it; the zero Point and "" for all of it.
	//
	// The caller closes the stream. journal.ErrBase: the history has no commit that ends at the point.
	Journal(ctx context.Context, genesis string, after journal.Point) (io.ReadCloser, error)
	// Tables are the rows that no journal gives again, as lines. nil: there are none here, because
	// of why.
	//
	// The caller closes rows.
	Tables(ctx context.Context) (rows io.ReadCloser, why string, err error)
}

// Options of Write. Now must be set.
type Options struct {
	Since       string // the directory that the backup goes on from; "": a whole backup
	JournalOnly bool   // leave out the rows that no journal gives again
	// Build names the program; it is for people only.
	Build string
	// Now is the clock for Manifest.Created.
	Now func() time.Time
}

// Write makes a backup in dir, which is made if need be, and verifies it on the way. An error
// leaves a directory that counts as unfinished; the next Write begins again.
//
//   - Errors: ErrExists, ErrNotEmpty, journal.ErrLocked: nothing in dir is changed. What Read says
//     of o.Since. journal.ErrBase and transfer.ErrNotWhole: the stream was another, or not whole.
//
//   - Order on stable storage: dir and its new parents, the mark, the files, the manifest under its
//     name, then the mark goes. So a power cut at any moment leaves no backup or a whole one.
//
//   - Cost: one pass over the stream, which is hashed and verified on the way; memory does not grow
//     with it. Blocks as long as the source sends; one goroutine.
func Write(ctx context.Context, dir string, from Contents, o Options) (_ *Manifest, err error) {
	m := &Manifest{Format: manifestFormat, Build: o.Build}
	var after journal.Point
	if o.Since != "" {
		base, err := Read(o.Since)
		if err != nil {
			return nil, err
		}
		after = base.To
		m.Base, m.Genesis = base.sum, base.Genesis
	}
	w := &writing{dir: dir, makeDir: disk.MakeDir}
	if err := w.begin(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.lock.Close()) }()
	if err := w.journal(ctx, from, m, after, o.Since); err != nil {
		return nil, err
	}
	if m.NoTables = "left out"; !o.JournalOnly {
		if err := w.tables(ctx, from, m); err != nil {
			return nil, err
		}
	}
	m.Created = o.Now().UTC().Truncate(time.Second)
	if err := w.end(m); err != nil {
		return nil, err
	}
	m.dir = dir
	return m, nil
}

// writing is one Write. It holds the lock from begin until Write returns.
type writing struct {
	dir string
	// makeDir makes dir with a durable name: disk.MakeDir, outside of tests.
	makeDir func(name string, mode fs.FileMode) error
	lock    io.Closer
}

// begin takes the directory and makes the mark, before anything else is written. It looks at what
// is there before it takes the lock, so that a directory that is not its own gets no lock file.
func (w *writing) begin() error {
	if err := w.makeDir(w.dir, 0o700); err != nil {
		return fmt.Errorf("backup: make dir=%s: %w", w.dir, err)
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return fmt.Errorf("backup: list dir=%s: %w", w.dir, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	foreign := slices.ContainsFunc(names, func(n string) bool { return n != lockName })
	switch {
	case slices.Contains(names, manifestName):
		return fmt.Errorf("backup: dir=%s: %w", w.dir, ErrExists)
	case foreign && !slices.Contains(names, unfinishedName):
		return fmt.Errorf("backup: dir=%s: %w", w.dir, ErrNotEmpty)
	}
	if w.lock, err = journal.LockFile(filepath.Join(w.dir, lockName)); err != nil {
		return err
	}
	err = func() error {
		// Another process may have finished meanwhile.
		if _, err := os.Stat(filepath.Join(w.dir, manifestName)); err == nil {
			return fmt.Errorf("backup: dir=%s: %w", w.dir, ErrExists)
		}
		if err := putFile(filepath.Join(w.dir, unfinishedName), nil); err != nil {
			return err
		}
		for _, name := range []string{streamName, tablesName, manifestName + ".new"} {
			if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("backup: %w", err)
			}
		}
		return disk.SyncDir(w.dir)
	}()
	if err != nil {
		err = errors.Join(err, w.lock.Close())
	}
	return err
}

// journal writes the stream and fills in what it says. The bytes go to the file as they are
// checked; a stream that turns out wrong leaves a file without a manifest.
func (w *writing) journal(ctx context.Context, from Contents, m *Manifest, after journal.Point,
	since string) error {
	stream, err := from.Journal(ctx, m.Genesis, after)
	if err != nil {
		if errors.Is(err, journal.ErrBase) {
			err = fmt.Errorf("backup: since dir=%s: %w", since, err)
		}
		return err
	}
	seed, err := seedOf(m.Genesis)
	if err != nil {
		return errors.Join(err, stream.Close())
	}
	var seen journal.Checked
	f, err := w.file(streamName, func(to io.Writer) (err error) {
		seen, err = journal.CheckStream(io.TeeReader(stream, to), seed, after)
		return err
	})
	if err = errors.Join(err, stream.Close()); err != nil {
		return err
	}
	sum := sha256.Sum256(seen.Genesis)
	m.Genesis = hex.EncodeToString(sum[:])
	m.From, m.To = seen.From, seen.To
	m.FirstTime, m.LastTime, m.Snapshot = seen.FirstTime, seen.LastTime, seen.Snapshot
	m.Files = append(m.Files, f)
	return nil
}

// tables writes the rows of SQL, if the source has some; otherwise the manifest says why not.
func (w *writing) tables(ctx context.Context, from Contents, m *Manifest) error {
	rows, why, err := from.Tables(ctx)
	if err != nil {
		return err
	}
	if m.NoTables = why; rows == nil {
		return nil
	}
	f, err := w.file(tablesName, func(to io.Writer) error {
		_, err := io.Copy(to, rows)
		return err
	})
	m.Files = append(m.Files, f)
	return errors.Join(err, rows.Close())
}

// file writes one file and brings its content to stable storage, and says what the manifest has to
// name of it. An earlier file of that name is overwritten.
func (w *writing) file(name string, fill func(io.Writer) error) (File, error) {
	path := filepath.Join(w.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return File{}, fmt.Errorf("backup: %w", err)
	}
	to := &pacedWriter{f: f, sum: sha256.New()}
	err = fill(to)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return File{}, fmt.Errorf("backup: write file=%s: %w", path, err)
	}
	return File{Name: name, Bytes: to.bytes, SHA256: hex.EncodeToString(to.sum.Sum(nil))}, nil
}

// end writes the manifest: from here on there is a backup. The mark goes last. Where it stays,
// because the process ended between the two, the manifest counts.
func (w *writing) end(m *Manifest) error {
	text, err := m.marshal()
	if err != nil {
		return err
	}
	name := filepath.Join(w.dir, manifestName)
	if err := disk.ReplaceText(name, 0o600, text); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := os.Remove(filepath.Join(w.dir, unfinishedName)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return disk.SyncDir(w.dir)
}

// pacedWriter writes and hashes, and syncs so often that the disk never has much to do at a time:
// the journal's own syncs may go to the same disk.
type pacedWriter struct {
	f *os.File
	// sum and bytes are over all that was written: the manifest has both.
	sum   hash.Hash
	bytes int64
	// since counts bytes written after the last sync.
	since int64
}

// syncEvery is in bytes.
const syncEvery = 8 << 20

func (g *pacedWriter) Write(p []byte) (int, error) {
	g.sum.Write(p)
	n, err := g.f.Write(p)
	g.bytes += int64(n)
	if g.since += int64(n); err == nil && g.since >= syncEvery {
		g.since = 0
		err = g.f.Sync()
	}
	return n, err
}

// putFile writes a small file and syncs it. Its name becomes durable when the caller syncs the
// directory.
func putFile(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("backup: write file=%s: %w", name, err)
	}
	return nil
}
