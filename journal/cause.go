package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// storeError is an error of the store in one line that names files in full. errors.Is and errors.As
// find the store's error behind it, and ErrCorrupt when that is one of damage.
type storeError struct {
	text    string
	err     error
	corrupt bool
}

func (e *storeError) Error() string { return e.text }

func (e *storeError) Unwrap() []error {
	if e.corrupt {
		return []error{e.err, ErrCorrupt}
	}
	return []error{e.err}
}

// carrier is the text of the error in which the store passes on the details of a corruption.
const carrier = "<corruption detail carrier>"

// plain puts an error of the store into one line: without the mark that carries the details of a
// corruption, and with the file that the details name. What the store calls corruption is
// ErrCorrupt. Any other error in one line comes back as it is.
func plain(err error) error {
	if err == nil {
		return nil
	}
	corrupt := spoiled(err)
	if !corrupt && !strings.ContainsAny(err.Error(), "\n<") {
		return err
	}
	text := strings.ReplaceAll(err.Error(), carrier, "")
	text = strings.Join(strings.Fields(text), " ")
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil &&
		!strings.Contains(text, info.Path) {
		text = "file=" + info.Path + ": " + text
	}
	return &storeError{text, err, corrupt}
}

// spoiled reports an error in which the store says that bytes are not what it has written, or that
// a file is missing.
func spoiled(err error) bool {
	return pebble.IsCorruptionError(err) || pebble.ExtractDataCorruptionInfo(err) != nil
}

var (
	// storeFile matches the name of a file of the store that stands alone.
	storeFile = regexp.MustCompile(`"?\b(MANIFEST-\d{6,}|OPTIONS-\d{6,}|\d{6,}\.(?:log|sst))\b"?`)
	// missingTable matches the number of a table that the manifest names and the folder lacks.
	missingTable = regexp.MustCompile(`\bfile (\d{6,}) \(type sstable\)`)
	// oddOptions matches what the store says of a file of options that is not what it has written.
	oddOptions = regexp.MustCompile(
		`invalid key=value syntax|unknown option|name from options|changed from previous options`)
	// otherSize matches what the store says of a table of another size than the manifest has.
	otherSize = regexp.MustCompile(`object size mismatch`)
)

// inFull is an error of opening the store in dir with its files' full names, so that an operator
// knows which file to look at. It is ErrCorrupt when a file of the store is missing, or is not what
// the store has written. The store marks only some of these errors; the others are known by their
// texts. It names the folder alone when the store does not say which file it is.
func inFull(err error, fs vfs.FS, dir string) error {
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	text = missingTable.ReplaceAllString(text, "file $1.sst (type sstable)")
	var number *strconv.NumError
	options := oddOptions.MatchString(text) || errors.As(err, &number)
	if options {
		text = "file=" + newestOf(fs, dir, "OPTIONS-") + ": " + text
	}
	full := storeFile.ReplaceAllStringFunc(text, func(name string) string {
		return fs.PathJoin(dir, strings.Trim(name, `"`))
	})
	full = strings.ReplaceAll(full, dir+"/"+dir, dir) // it was a full name
	return &storeError{full, err, options || spoiled(err) || otherSize.MatchString(text) ||
		errors.Is(err, pebble.ErrDBNotPristine) || // the marker of its format is missing
		notExist(err) && !errors.Is(err, pebble.ErrDBDoesNotExist)}
}

// manifestOf is the manifest of a store, the newest if there are several.
func manifestOf(fs vfs.FS, dir string) string { return newestOf(fs, dir, "MANIFEST-") }

// newestOf is the newest file in the folder of a store with a name that begins so; the folder when
// there is none.
func newestOf(fs vfs.FS, dir, prefix string) string {
	newest := ""
	names, _ := fs.List(dir) // dir itself is named when it cannot be listed
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			newest = max(newest, name)
		}
	}
	return fs.PathJoin(dir, newest)
}

// lockDir takes the journal's own lock, which covers anchor and snapshots too, and makes its file
// if need be. It does not wait: ErrLocked names the process that has it, where the system says.
func lockDir(f vfs.FS, dir string) (io.Closer, error) {
	return lockFile(f, f.PathJoin(dir, LockName))
}

// lockFile is LockFile in a file system.
func lockFile(f vfs.FS, name string) (io.Closer, error) {
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
// ends. It does not wait. ErrLocked names the process that has it, where the system says; any other
// error says that the file could not be opened.
func LockFile(name string) (io.Closer, error) { return lockFile(vfs.Default, name) }

// LockName is the file of a directory whose lock says that a process uses the directory.
const LockName = "lock"

// LockDir is LockFile of the lock of a directory, for which Holder looks.
func LockDir(dir string) (io.Closer, error) { return lockDir(vfs.Default, dir) }

// InUse returns the process that has the journal in dir open. It returns 0 when there is none, or
// when the system does not say. It touches no file of the journal: opening and closing the lock
// file would end the lock of a server in this very process.
func InUse(dir string) (pid int) { return holder(dir + "/" + LockName) }

// Holder is InUse for a caller that acts on the answer: when the system cannot tell, it returns an
// error instead of 0. What is not there is in use by none. dir may also be a data directory, whose
// lock has the same name.
func Holder(dir string) (pid int, err error) {
	pid, err = lockedBy(dir + "/" + LockName)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		err = fmt.Errorf("journal: find the holder of %s/%s: %w", dir, LockName, err)
	}
	return pid, err
}

// holder is lockedBy, with 0 for what it cannot tell.
func holder(name string) int {
	pid, _ := lockedBy(name)
	return pid
}
