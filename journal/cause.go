package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// storeError is an error of the store in one line that names files in full. errors.Is and errors.As
// find the store's error behind it.
type storeError struct {
	text string
	err  error
}

func (e *storeError) Error() string { return e.text }

func (e *storeError) Unwrap() error { return e.err }

// carrier is the text of the error in which the store passes on the details of a corruption.
const carrier = "<corruption detail carrier>"

// plain puts an error of the store into one line: without the mark that carries the details of a
// corruption, and with the file that the details name. An error that is in one line already comes
// back as it is.
func plain(err error) error {
	if err == nil || !strings.ContainsAny(err.Error(), "\n<") {
		return err
	}
	text := strings.ReplaceAll(err.Error(), carrier, "")
	text = strings.Join(strings.Fields(text), " ")
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil &&
		!strings.Contains(text, info.Path) {
		text = "file=" + info.Path + ": " + text
	}
	return &storeError{text, err}
}

// storeFile matches the name of a file of the store that stands alone.
var storeFile = regexp.MustCompile(`"?\b(MANIFEST-\d{6,}|OPTIONS-\d{6,}|\d{6,}\.(?:log|sst))\b"?`)

// inFull is an error of opening the store in dir with its files' full names, so that an operator
// knows which file to look at. One that names none is about what the store reads first.
func inFull(err error, fs vfs.FS, dir string) error {
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	named := strings.Contains(text, dir+"/")
	full := storeFile.ReplaceAllStringFunc(text, func(name string) string {
		named = true
		return fs.PathJoin(dir, strings.Trim(name, `"`))
	})
	full = strings.ReplaceAll(full, dir+"/"+dir, dir) // it was a full name
	if !named {
		full = "file=" + manifestOf(fs, dir) + ": " + full
	}
	return &storeError{full, err}
}

// manifestOf is the manifest of a store, the newest if there are several.
func manifestOf(fs vfs.FS, dir string) string {
	newest := ""
	names, _ := fs.List(dir) // dir itself is named when it cannot be listed
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") {
			newest = max(newest, name)
		}
	}
	return fs.PathJoin(dir, newest)
}

// lockDir takes the journal's own lock, which covers anchor and snapshots too, and makes its file
// if need be. It does not wait: ErrLocked names the process that has it, where the system says.
func lockDir(f vfs.FS, dir string) (io.Closer, error) {
	name := f.PathJoin(dir, lockName)
	lock, err := f.Lock(name)
	var denied *fs.PathError
	switch {
	case err == nil:
		return lock, nil
	case errors.As(err, &denied): // the file could not even be opened for writing
		return nil, fmt.Errorf("journal: lock file=%s: %w", name, denied.Err)
	}
	if pid := holder(name); pid > 0 {
		return nil, fmt.Errorf("journal: lock file=%s: %w, pid %d", name, ErrLocked, pid)
	}
	return nil, fmt.Errorf("journal: lock file=%s: %w: %w", name, ErrLocked, err)
}

// LockFile takes a lock on a file, which is made if need be, until it is closed or the process
// ends. It does not wait. ErrLocked names the process that has it, 0 when the system does not say;
// any other error says that the file could not be opened.
func LockFile(name string) (io.Closer, error) {
	lock, err := vfs.Default.Lock(name)
	var denied *fs.PathError
	switch {
	case err == nil:
		return lock, nil
	case errors.As(err, &denied):
		return nil, fmt.Errorf("journal: lock file=%s: %w", name, denied.Err)
	}
	return nil, fmt.Errorf("journal: lock file=%s: %w, pid %d", name, ErrLocked, holder(name))
}

// InUse returns the process that has the journal in dir open. It returns 0 when there is none, or
// when the system does not say. It touches no file of the journal: opening and closing the lock
// file would end the lock of a server in this very process.
func InUse(dir string) (pid int) { return holder(dir + "/" + lockName) }
