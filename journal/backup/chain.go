package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"posttrade/journal"
)

// Chain reads the manifests of directories that follow each other, the whole backup first. It reads
// no other file.
//
// Errors: those of Read; ErrChain when a directory does not go on from exactly the commit at which
// the one before it ends, or is of another journal. The message names both.
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
//
// The journal's stream is checked as a restore would check it: commits, chain, checksums, and that
// it goes from From to To. Errors: ErrDamaged, transfer.ErrNotWhole, those of the file system.
// Nothing is written.
func Verify(m *Manifest) error {
	for _, f := range m.Files {
		if err := m.verify(f); err != nil {
			return err
		}
	}
	return nil
}

// verify is Verify of one file. The sums of the file come first in the error, because a wrong byte
// is the cause of whatever the stream's check has found.
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

// part reads a file of a backup, opened when it is first read, and compares it with the manifest.
//
// It verifies only what is read to the end. Whether it was whole is asked with err, after the
// reading.
type part struct {
	// file is what the manifest says of it, name its path.
	file File
	name string
	// f is nil until the first Read
	f *os.File
	// sum and bytes are of what was read so far.
	sum   hash.Hash
	bytes int64
	// bad is the error of opening or reading, other than the end.
	bad error
	// ended: the end of the file was reached, so sum and bytes are those of all of it.
	ended bool
}

// open returns a reader of one file. The file is opened by the first Read: one that is not needed
// is not touched.
func (m *Manifest) open(f File) *part {
	return &part{file: f, name: filepath.Join(m.dir, f.Name), sum: sha256.New()}
}

// Read hashes what it hands on. An error of opening or reading stays, and err returns it as damage.
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

// Close closes the file, if it was opened. It does not judge what was read.
func (p *part) Close() error {
	if p.f == nil {
		return nil
	}
	return p.f.Close()
}

// err says whether the file is what the manifest says, as far as it was read. A file that was not
// read to its end is not judged.
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
