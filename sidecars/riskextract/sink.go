package riskextract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"posttrade/ring"
	"posttrade/ring/disk"
)

// folder is the directory of one session and price version in the sink. Files that are stored there
// are never replaced.
//
// A name stands for one content for good. So two processes, or two attempts, that store the same
// file need no lock.
type folder struct {
	path string
	// mode is that of new files: read-only for an extract.
	mode fs.FileMode
	step func(name string) error // called between the steps of put, in tests; nil: not called
}

// folderOf makes the directory of a marker, durably.
//
// The name of each level is durable before the next is made: a file in a folder that a power cut
// takes back would be lost with it.
func folderOf(sink string, m Marker, step func(string) error) (*folder, error) {
	f := &folder{path: filepath.Join(sink, m.SessionDate.String(),
		"v"+strconv.FormatUint(uint64(m.PriceVersion), 10)), mode: 0o444, step: step}
	if err := disk.MakeDir(f.path, 0o755); err != nil {
		return nil, fmt.Errorf("riskextract: make sink: %w", err)
	}
	return f, nil
}

// The names of a marker's files.
func cutName(seq uint64) string       { return seqName(seq) + ".cut" }
func positionsFile(seq uint64) string { return seqName(seq) + ".csv" }
func contractsFile(seq uint64) string { return seqName(seq) + "-contracts.csv" }
func manifestName(seq uint64) string  { return seqName(seq) + ".sha256" }
func announcedName(seq uint64) string { return seqName(seq) + ".announced" }
func seqName(seq uint64) string       { return "seq-" + strconv.FormatUint(seq, 10) }

// put stores a file. When it returns nil, the file has exactly this content and is on the disk
// under its name. A name that has other content already is ErrMismatch and stays as it is.
//
// The directory is synced also when the file was there: an earlier attempt may have ended before
// that.
func (f *folder) put(name string, content []byte) error {
	path := filepath.Join(f.path, name)
	same, err := f.holds(name, content)
	if err != nil {
		return err
	}
	if !same {
		if err = f.add(name, content); err != nil {
			return err
		}
	}
	f.tidy(name)
	return errors.Join(disk.SyncDir(filepath.Dir(path)), f.at(name+" stored"))
}

// add writes a temporary file and gives it its final name, which must be free.
//
// A link fails when the name exists, where a rename would replace the file.
func (f *folder) add(name string, content []byte) error {
	path := filepath.Join(f.path, name)
	temp, err := f.writeTemp(name, content)
	if err != nil {
		return err
	}
	if err = f.at(name + " written"); err != nil {
		return err // a crash would leave the temporary file as well
	}
	err = os.Link(temp, path)
	_ = os.Remove(temp) // a remaining file does no harm, and tidy tries again
	if err != nil {
		// Either another process has stored the file meanwhile, and perhaps removed the temporary one; or
		// this call has failed.
		if same, check := f.holds(name, content); check != nil || !same {
			return errors.Join(fmt.Errorf("riskextract: store %s: %w", path, err), check)
		}
	}
	return f.at(name + " linked")
}

// writeTemp writes a new file next to its final place, and syncs it.
//
// The name begins with a dot, so readers that list seq-* do not see it.
func (f *folder) writeTemp(name string, content []byte) (path string, err error) {
	file, err := os.CreateTemp(f.path, tempPrefix(name)+"*")
	if err != nil {
		return "", fmt.Errorf("riskextract: store %s: %w", name, err)
	}
	breath := ring.NewBreather()
	err = writePieces(file, content, &breath)
	if err == nil {
		err = file.Chmod(f.mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("riskextract: store %s: %w", name, err), os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// writePieces writes content in pieces with pauses for other threads.
func writePieces(w io.Writer, content []byte, breath *ring.Breather) error {
	for piece := range slices.Chunk(content, bytesPerBreath) {
		if _, err := w.Write(piece); err != nil {
			return err
		}
		breath.Breathe()
	}
	return nil
}

// tempPrefix is the start of the name of the temporary files of a file.
func tempPrefix(name string) string { return "." + name + ".new-" }

// tidy removes the temporary files of a stored file. It leaves files that cannot be removed: no
// process reads their names.
func (f *folder) tidy(name string) {
	entries, _ := os.ReadDir(f.path)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix(name)) {
			_ = os.Remove(filepath.Join(f.path, e.Name()))
		}
	}
}

// holds reports whether a file is there; other content is ErrMismatch.
//
// It reads and compares the whole file.
func (f *folder) holds(name string, content []byte) (bool, error) {
	got, err := os.ReadFile(filepath.Join(f.path, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("riskextract: read stored: %w", err)
	case !bytes.Equal(got, content):
		return false, fmt.Errorf("riskextract: stored file=%s has sha256=%s, expected %s: %w",
			filepath.Join(f.path, name), sumOf(got), sumOf(content), ErrMismatch)
	}
	return true, nil
}

// read returns a stored file whose SHA-256 is known.
//
// ErrMismatch when the content has another sum.
func (f *folder) read(name, sum string) (string, error) {
	content, err := os.ReadFile(filepath.Join(f.path, name))
	if err != nil {
		return "", fmt.Errorf("riskextract: read stored: %w", err)
	}
	if got := sumOf(content); got != sum {
		return "", fmt.Errorf("riskextract: stored file=%s has sha256=%s, expected %s: %w",
			filepath.Join(f.path, name), got, sum, ErrMismatch)
	}
	return string(content), nil
}

// at tells a test that a step is done; its error ends the extract there, as a crash would.
func (f *folder) at(step string) error {
	if f.step == nil {
		return nil
	}
	return f.step(step)
}
