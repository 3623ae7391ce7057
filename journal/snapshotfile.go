package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"

	"posttrade/ring"
)

// SnapshotFile is one file of a snapshot: zstd around the stream, hashed as stored, so that it can
// be checked, copied and sent without unpacking it.
type SnapshotFile struct {
	Path   string `json:"path"` // below the journal's directory
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// stateName and viewsName are the names of the files of a snapshot.
func stateName(inputSeq uint64) string { return fmt.Sprintf("%020d.state.zst", inputSeq) }

func viewsName(inputSeq uint64) string { return fmt.Sprintf("%020d.views.zst", inputSeq) }

// snapshotFile writes one file of dir under a temporary name, syncs it and renames it. The path
// that it returns is the name. The rename is durable only when the caller has synced dir.
func snapshotFile(fs vfs.FS, dir, name string,
	write func(io.Writer) error) (SnapshotFile, error) {
	path := fs.PathJoin(dir, name)
	s := SnapshotFile{Path: name}
	sum := &hashing{sum: sha256.New(), breath: ring.NewBreather()}
	err := replace(fs, path+snapshotTemp, path, func(w io.Writer) error {
		sum.w = w
		z, err := zstd.NewWriter(sum, zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return err
		}
		return errors.Join(write(z), z.Close())
	})
	if err != nil {
		return s, errors.Join(err, dropped(fs.Remove(path+snapshotTemp)))
	}
	s.SHA256, s.Bytes = hex.EncodeToString(sum.sum.Sum(nil)), sum.n
	return s, nil
}

// dropped is the error of removing a file that is no longer wanted: a file that is gone is fine,
// because an earlier attempt may have removed it.
func dropped(err error) error {
	if notExist(err) {
		return nil
	}
	return err
}

// hashing hashes and counts what passes through it: the bytes as stored, so a file can be verified
// without unpacking it.
type hashing struct {
	w   io.Writer
	sum hash.Hash
	n   int64

	breath ring.Breather
}

func (h *hashing) Write(p []byte) (int, error) {
	// The file system may change p while writing it.
	h.sum.Write(p)
	h.n += int64(len(p))
	h.breath.Breathe()
	return h.w.Write(p)
}

// snapshotReader is a verified, open file. Read gives the stream without zstd.
type snapshotReader struct {
	*zstd.Decoder
	f vfs.File
}

// Close closes decoder and file; a file that was only read has nothing to lose.
func (s *snapshotReader) Close() {
	s.Decoder.Close()
	_ = s.f.Close()
}

// openSnapshotFile hashes the file, compares, and opens it for reading. It is read twice: use must
// never see a byte of a file that does not hold.
func openSnapshotFile(fs vfs.FS, dir string, s SnapshotFile) (*snapshotReader, error) {
	path := fs.PathJoin(dir, s.Path)
	if err := checkSnapshotFile(fs, path, s); err != nil {
		return nil, err
	}
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, fmt.Errorf("journal: open file=%s: %w", path, err)
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal: open file=%s: %w", path, err), f.Close())
	}
	return &snapshotReader{z, f}, nil
}

// checkSnapshotFile reads the file to its end and compares it with its manifest, which costs a read
// of the whole file.
func checkSnapshotFile(fs vfs.FS, path string, s SnapshotFile) error {
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("journal: open file=%s: %w", path, err)
	}
	err = s.check(path, f)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("journal: close file=%s: %w", path, closeErr)
	}
	return err
}

// check reads r to its end and compares it with the manifest: size and SHA-256 of the file as
// stored. ErrSnapshot when it is another; path is for messages.
func (s SnapshotFile) check(path string, r io.Reader) error {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err != nil {
		return fmt.Errorf("journal: read file=%s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 || n != s.Bytes {
		return fmt.Errorf("journal: file=%s: %d bytes sha256 %s, manifest has %d bytes %s: %w",
			path, n, got, s.Bytes, s.SHA256, ErrSnapshot)
	}
	return nil
}
