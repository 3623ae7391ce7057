package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"

	"posttrade/journal"
	"posttrade/ring/disk"
)

// The names in a data directory.
const (
	// restoringName is a file: a restore is under way, or was cut short.
	restoringName = "restoring"
	// RestoredName is a folder: what the first start after a restore has to do. Its file origin.json
	// is an Origin; tables.ndjson, if there is one, has the rows of SQL.
	RestoredName = "restored"
	originName   = "origin.json"
	journalName  = "journal"
)

// Origin says what a data directory was restored from.
type Origin struct {
	InputSequence uint64   `json:"inputSequence"` // of the journal's last command
	TradeSequence uint64   `json:"tradeSequence"`
	From          []string `json:"from"` // the directories
}

// ErrRestoring: a restore into the directory was not finished.
var ErrRestoring = errors.New("a restore into it was not finished: run it again")

// Whole refuses a data directory in which a restore was cut short.
func Whole(data string) error {
	if _, err := os.Stat(filepath.Join(data, restoringName)); err == nil {
		return fmt.Errorf("data.dir %s: %w", data, ErrRestoring)
	}
	return nil
}

// Chain reads the manifests of directories that follow each other, the whole backup first.
func Chain(dirs []string) (list []*Manifest, err error) {
	for i, dir := range dirs {
		m, err := Read(dir)
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0 && m.From.InputSeq != 0:
			return nil, fmt.Errorf(
				"backup: dir=%s goes on from sequence %d; the whole backup comes first: %w", dir,
				m.From.InputSeq, ErrChain)
		case i > 0 && m.Genesis != list[0].Genesis:
			return nil, fmt.Errorf("backup: dir=%s is of genesis %.16s, dir=%s of %.16s: %w", dir, m.Genesis,
				dirs[0], list[0].Genesis, ErrChain)
		case i > 0 && m.From != list[i-1].To:
			return nil, fmt.Errorf(
				"backup: dir=%s goes on from sequence %d chain %x, dir=%s ends at %d chain %x: %w", dir,
				m.From.InputSeq, m.From.Chain[:4], dirs[i-1], list[i-1].To.InputSeq,
				list[i-1].To.Chain[:4], ErrChain)
		}
		list = append(list, m)
	}
	return list, nil
}

// Verify reads all of a backup and compares it with its manifest.
func Verify(m *Manifest) error {
	for _, f := range m.Files {
		if err := m.verify(f); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) verify(f File) error {
	r := m.open(f)
	defer r.Close()
	if f.Name != streamName {
		_, err := io.Copy(io.Discard, r)
		return errors.Join(err, r.err())
	}
	seed, err := seedOf(m.Genesis)
	if err != nil {
		return err
	}
	seen, err := journal.CheckStream(r, seed, m.From)
	if err == nil && (seen.To != m.To || sha256.Sum256(seen.Genesis) != seed) {
		err = fmt.Errorf("it ends at sequence %d, want %d: %w", seen.To.InputSeq, m.To.InputSeq,
			ErrDamaged)
	}
	if err = errors.Join(r.err(), err); err != nil {
		return fmt.Errorf("backup: file=%s: %w", r.name, err)
	}
	return nil
}

// RestoreOptions of Restore.
type RestoreOptions struct {
	To      uint64 // the last command to take; 0: all
	Journal journal.Options
	// Verify is called with the folder of the journal, before the directory counts as restored.
	Verify func(dir string) error
}

// Restore makes a data directory from a chain of backups: the journal, and what the first start
// needs to make everything else again.
//
//   - Errors: ErrNotEmpty, journal.ErrLocked: nothing in data is changed. What Chain says.
//     ErrDamaged and transfer.ErrNotWhole: a file is not what was written; data then holds the mark
//     only.
func Restore(data string, chain []*Manifest, o RestoreOptions) (got Origin, err error) {
	last := chain[len(chain)-1]
	if o.To > last.To.InputSeq {
		return got, fmt.Errorf("backup: dir=%s ends at sequence %d, which is before %d: %w", last.dir,
			last.To.InputSeq, o.To, ErrChain)
	}
	r := &restore{data: data, chain: chain, o: o}
	if err := r.begin(); err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, r.lock.Close()) }()
	if err := r.journal(&got); err != nil {
		return got, err
	}
	if err := r.leaveRows(&got); err != nil {
		return got, err
	}
	if o.Verify != nil {
		if err := o.Verify(filepath.Join(data, journalName)); err != nil {
			return got, err
		}
	}
	return got, r.end()
}

// restore is one Restore.
type restore struct {
	data  string
	chain []*Manifest
	o     RestoreOptions
	lock  io.Closer
}

// begin takes the directory, makes the mark and removes what an earlier attempt has left.
func (r *restore) begin() error {
	if err := os.MkdirAll(r.data, 0o700); err != nil {
		return fmt.Errorf("backup: make dir=%s: %w", r.data, err)
	}
	entries, err := os.ReadDir(r.data)
	if err != nil {
		return fmt.Errorf("backup: list dir=%s: %w", r.data, err)
	}
	mark := filepath.Join(r.data, restoringName)
	ours := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == restoringName })
	if len(entries) > 0 && !ours {
		return fmt.Errorf("backup: data.dir %s: %w", r.data, ErrNotEmpty)
	}
	if r.lock, err = journal.LockFile(mark); err != nil {
		return err
	}
	for _, name := range []string{journalName, RestoredName} {
		if err := os.RemoveAll(filepath.Join(r.data, name)); err != nil {
			return errors.Join(fmt.Errorf("backup: %w", err), r.lock.Close())
		}
	}
	if err := errors.Join(disk.SyncDir(r.data), disk.SyncDir(filepath.Dir(r.data))); err != nil {
		return errors.Join(err, r.lock.Close())
	}
	return nil
}

// journal receives the journal.
func (r *restore) journal(got *Origin) error {
	var parts []*part
	var streams []io.Reader
	for _, m := range r.chain {
		f, ok := m.file(streamName)
		if !ok {
			return fmt.Errorf("backup: dir=%s has no %s: %w", m.dir, streamName, ErrDamaged)
		}
		p := m.open(f)
		defer p.Close()
		parts, streams = append(parts, p), append(streams, p)
		got.From = append(got.From, m.dir)
		if r.o.To > 0 && m.To.InputSeq >= r.o.To {
			break
		}
	}
	r.chain = r.chain[:len(parts)]
	into := filepath.Join(r.data, journalName)
	received, err := journal.ReceiveAll(into, r.o.To, r.o.Journal, streams...)
	for _, p := range parts {
		e := p.err()
		if e == nil && err != nil && p.bytes > 0 && !p.ended {
			e = err // it was being read
		}
		if e != nil {
			err = fmt.Errorf("backup: file=%s: %w", p.name, e)
			break
		}
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(into))
	}
	got.InputSequence, got.TradeSequence = received.InputSeq, received.TradeSeq
	return nil
}

// leaveRows leaves what the first start needs: the rows of the last backup that was used.
func (r *restore) leaveRows(got *Origin) error {
	folder := filepath.Join(r.data, RestoredName)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	m := r.chain[len(r.chain)-1]
	if f, ok := m.file(tablesName); ok {
		if err := copyRows(folder, m.open(f)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(got)
	if err == nil {
		err = putFile(filepath.Join(folder, originName), text)
	}
	if err == nil {
		err = disk.SyncDir(folder)
	}
	return err
}

// copyRows copies the rows of a backup, which are checked on the way, into a folder.
func copyRows(folder string, from *part) error {
	defer from.Close()
	w := &writing{dir: folder}
	_, err := w.file(tablesName, func(to io.Writer) error {
		_, err := io.Copy(to, from)
		return err
	})
	if err = errors.Join(err, from.err()); err != nil {
		return fmt.Errorf("backup: file=%s: %w", from.name, err)
	}
	return nil
}

// end removes the mark: from here on the directory is restored.
func (r *restore) end() error {
	if err := disk.SyncDir(r.data); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.data, restoringName)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return disk.SyncDir(r.data)
}

// part reads a file of a backup, opened when it is first read, and compares it with the manifest.
type part struct {
	file  File
	name  string
	f     *os.File
	sum   hash.Hash
	bytes int64
	bad   error
	ended bool
}

func (m *Manifest) open(f File) *part {
	return &part{file: f, name: filepath.Join(m.dir, f.Name), sum: sha256.New()}
}

func (p *part) Read(b []byte) (int, error) {
	if p.f == nil && p.bad == nil {
		p.f, p.bad = os.Open(p.name)
	}
	if p.bad != nil {
		return 0, p.bad
	}
	n, err := p.f.Read(b)
	p.sum.Write(b[:n])
	p.bytes += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		p.ended = true
	case err != nil:
		p.bad = err
	}
	return n, err
}

func (p *part) Close() error {
	if p.f == nil {
		return nil
	}
	return p.f.Close()
}

// err says whether the file is what the manifest says, as far as it was read.
func (p *part) err() error {
	got := hex.EncodeToString(p.sum.Sum(nil))
	switch {
	case p.bad != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, p.bad)
	case !p.ended:
		return nil // another error came before its end, or it was not needed
	case p.bytes != p.file.Bytes || got != p.file.SHA256:
		return fmt.Errorf("%d bytes, sha256 %s, want %d, %s: %w", p.bytes, got, p.file.Bytes,
			p.file.SHA256, ErrDamaged)
	}
	return nil
}
