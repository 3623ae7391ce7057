package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"posttrade/ring"
)

// hasTail reports that the memory of a mapped file outlives the process (tail.go).
const hasTail = true

// mappedTail is a tail in a file that the operating system maps.
type mappedTail struct {
	*ring.Region
	log logFile // nil: no WriteAt
}

// logFile is what a log is written to.
type logFile interface {
	io.WriterAt
	io.Closer
}

// mapTail maps a file of that size or, if it is a log, its header slots. createTail has written the
// whole file before.
//
// Writes of a log go past the system's memory to the disk. Marks are stored into mapped memory: a
// write of a mark would have to wait for every such write to the same file.
func mapTail(fs vfs.FS, name string, size int, logged bool) (_ tailMap, err error) {
	m := &mappedTail{}
	if logged {
		size = tailSlots * tailHeader
		if m.log, err = openLog(fs, name); err != nil {
			return nil, fmt.Errorf("journal: open file=%s: %w", name, err)
		}
	}
	if m.Region, err = ring.File(name, size); err != nil {
		err = fmt.Errorf("journal: map file=%s: %w", name, err)
		if logged {
			err = errors.Join(err, m.log.Close())
		}
		return nil, err
	}
	return m, nil
}

// Sync brings the memory to the disk.
func (m *mappedTail) Sync() error { return unix.Fsync(m.Region.Fd()) }

// WriteAt writes through to the disk.
func (m *mappedTail) WriteAt(p []byte, at int64) (int, error) { return m.log.WriteAt(p, at) }

// Close closes the file and ends the mapping.
func (m *mappedTail) Close() error {
	err := m.Region.Close()
	if m.log != nil {
		err = errors.Join(err, m.log.Close())
	}
	return err
}

// openLog opens a log's file so that WriteAt returns when its bytes are on the disk. A file system
// that takes no write past the system's memory gets it by that memory, and one that is not the
// system's by its own calls. A symbolic link in the file's place is refused.
func openLog(fs vfs.FS, name string) (logFile, error) {
	if fs != vfs.Default {
		f, err := fs.OpenReadWrite(name, writeCategory)
		return syncedFile{f}, err
	}
	const flags = os.O_RDWR | unix.O_DSYNC | unix.O_NOFOLLOW
	f, err := os.OpenFile(name, flags|unix.O_DIRECT, 0)
	if errors.Is(err, unix.EINVAL) {
		f, err = os.OpenFile(name, flags, 0)
	}
	return directFile{f}, err
}

// directFile is a file with O_DSYNC and, as long as the file system takes it, O_DIRECT. Some file
// systems take O_DIRECT at the opening and refuse the first write; the flag is then removed, and
// the write repeated.
type directFile struct{ *os.File }

func (f directFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	if n > 0 || !errors.Is(err, unix.EINVAL) {
		return n, err
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags&^unix.O_DIRECT)
	}
	if err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

// syncedFile syncs after each write: the log of a test's file system.
type syncedFile struct{ vfs.File }

func (f syncedFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	if err == nil {
		err = f.SyncData()
	}
	return n, err
}

// lower gives the goroutine a thread of its own, for good, at a low priority. The thread ends with
// the goroutine. What the system refuses is left as it was.
func lower(nice int) {
	runtime.LockOSThread() // never unlocked
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}

// syncData brings a file's bytes to the disk, and of its metadata only what reading them needs.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// lockedBy is the process that has a lock on the file, 0 when there is none; an error when that
// cannot be told. It reads the system's list of locks and never opens the file itself.
func lockedBy(name string) (int, error) {
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return 0, err
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, err
	}
	return holderIn(string(locks),
		fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino))
}

// errHiddenHolder reports a lock of a process that is not visible from this one's namespace.
var errHiddenHolder = errors.New("a process that this one cannot see has it")

// holderIn finds the process in the lines of /proc/locks that has a lock on a file, 0 for none.
func holderIn(locks, file string) (int, error) {
	var err error
	for line := range strings.Lines(locks) {
		// 1: POSIX ADVISORY WRITE 4711 08:01:123456 0 EOF
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "POSIX" || f[5] != file {
			continue
		}
		if pid, _ := strconv.Atoi(f[4]); pid > 0 {
			return pid, nil
		}
		err = errHiddenHolder
	}
	return 0, err
}

// orphanBytes is the size of a file that has no name and is open nowhere else, otherwise 0. A log's
// blocks are reserved beyond its end, and go when the file becomes shorter.
func orphanBytes(f *os.File) int64 {
	var st syscall.Stat_t
	if syscall.Fstat(int(f.Fd()), &st) != nil || st.Nlink != 0 || !unshared(f) {
		return 0
	}
	return max(st.Size, st.Blocks*512)
}

// unshared reports that the file is open nowhere else. The system gives a write lease only for such
// a file, and a file without a name cannot be opened afterwards.
func unshared(f *os.File) bool {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}

// beginWriting asks the system to begin writing a part of a file. It is a hint: the sync that
// follows reports what fails.
func beginWriting(fd uintptr, at, bytes int64) {
	if fd != vfs.InvalidFd {
		_ = unix.SyncFileRange(int(fd), at, bytes, unix.SYNC_FILE_RANGE_WRITE)
	}
}
