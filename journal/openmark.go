package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// openName is a file that lies beside the store while the journal is open for writing. It knows its
// own place on the disk. A copy of the folder that was made meanwhile has the file in another
// place, and so is known for a copy: its files are of different moments. A process that was killed
// leaves the file where it was.
const openName = "open"

// openMark is what the file says.
type openMark struct {
	PID    int       `json:"pid"`
	Since  time.Time `json:"since"`
	File   uint64    `json:"file"`   // the number that the file system has given to the file itself,
	Folder uint64    `json:"folder"` // and to the journal's folder
}

// ErrCopied: the folder is a copy of a journal that was open.
var ErrCopied = errors.New("this is a copy of a journal that a server had open: " +
	"its files are of different moments; posttrade backup makes a copy that holds")

// markOpen makes the file. Without it only the reason of a later refusal is less clear, so that it
// cannot be made is no error.
func markOpen(fs vfs.FS, dir string) {
	folder, ok := placeOf(fs, dir)
	if !ok {
		return // not the system's file system
	}
	name := fs.PathJoin(dir, openName)
	f, err := fs.Create(name, writeCategory)
	if err != nil {
		return
	}
	file, _ := placeOf(fs, name)
	text, err := json.Marshal(openMark{os.Getpid(), time.Now().UTC().Truncate(time.Second), file,
		folder})
	if err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = fs.Remove(name) // see above
	}
}

// unmarkOpen removes the file at a clean close.
func unmarkOpen(fs vfs.FS, dir string) {
	if _, ok := placeOf(fs, dir); ok {
		_ = fs.Remove(fs.PathJoin(dir, openName)) // see markOpen
	}
}

// copied says that the folder is a copy of an open journal; nil when it is not, or not known to be.
// A file that cannot be read says nothing: this is a help for the operator, no check.
func copied(fs vfs.FS, dir string) error {
	name := fs.PathJoin(dir, openName)
	folder, ok := placeOf(fs, dir)
	file, there := placeOf(fs, name)
	if !ok || !there {
		return nil
	}
	text, err := readWhole(fs, name)
	var m openMark
	if err != nil || json.Unmarshal(text, &m) != nil || m.File == 0 {
		return nil
	}
	if m.File == file && m.Folder == folder {
		return nil
	}
	return fmt.Errorf("dir=%s process %d since %s: %w", dir, m.PID, m.Since.Format(time.RFC3339),
		ErrCopied)
}

// withCopied adds to an error of opening that the folder is a copy, which is the likely reason of a
// history that does not hold.
func withCopied(err error, fs vfs.FS, dir string) error {
	if err == nil {
		return nil
	}
	if c := copied(fs, dir); c != nil {
		return fmt.Errorf("%w; %w", err, c)
	}
	return err
}

// CopiedFrom is Copied of the journal in dir, without opening it.
func CopiedFrom(dir string) error { return copied(vfs.Default, dir) }

// Copied is an ErrCopied when the journal was opened from a copy that was made while a server had
// it open, although nothing was found missing; otherwise nil. Such a journal may lack what was
// written during the copying. Any goroutine.
func (j *Journal) Copied() error { return j.copied }
