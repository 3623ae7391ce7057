package ring

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Errors of regions; test them by errors.Is.
var (
	ErrSize     = errors.New("unusable region size")
	ErrUnsealed = errors.New("region is not sealed against shrinking")
)

const (
	pageBytes = 4096
	// maxRegionBytes keeps every offset inside an int on every platform.
	maxRegionBytes = 1 << 46
	// raceHeapBytes is the largest private region taken from the Go heap under
	// the race detector, which marks all of an allocation at once.
	raceHeapBytes = 256 << 20
)

// Region is one mapped range of memory, zero when new. The owner that made it closes it, when no
// ring or slice over it is in use any more.
type Region struct {
	mem      []byte
	fd       int
	readOnly bool
	heap     bool // mem is Go memory (race builds)
	closing  sync.Once
	closeErr error
}

// Anonymous maps private memory. Pages become resident when first written; no page is reserved.
func Anonymous(bytes int) (*Region, error) {
	if err := usable("anonymous", bytes); err != nil {
		return nil, err
	}
	if raceEnabled && bytes <= raceHeapBytes {
		return &Region{mem: heapPages(bytes), fd: -1, heap: true}, nil
	}
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	mem, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, fmt.Errorf("ring: map anonymous bytes=%d: %w", bytes, err)
	}
	return &Region{mem: mem, fd: -1}, nil
}

// heapPages returns zeroed, page-aligned Go memory without pointers.
func heapPages(bytes int) []byte {
	words := make([]uint64, (bytes+pageBytes)/8)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	skip := -int(uintptr(unsafe.Pointer(&words[0]))) & (pageBytes - 1)
	return all[skip : skip+bytes : skip+bytes]
}

// Memfd maps shared memory that has no name in the file system and can be given to another process
// by its descriptor. It is sealed: no process can shrink or grow it, so no access inside it ever
// faults.
func Memfd(name string, bytes int) (*Region, error) {
	if err := usable("memfd", bytes); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("ring: create memfd=%s: %w", name, err)
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if err := unix.Ftruncate(fd, int64(bytes)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("ring: size memfd=%s bytes=%d: %w", name, bytes, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("ring: seal memfd=%s: %w", name, err)
	}
	return mapShared(fd, bytes, false)
}

// File maps a named file, created with mode 0600 and extended as needed, never
// shortened. A file cannot be sealed: use it between processes of one owner only.
func File(path string, bytes int) (*Region, error) {
	return mapFile(path, bytes, unix.O_RDWR|unix.O_CREAT, false)
}

// FileReadOnly maps an existing file that holds at least bytes, for readers only.
func FileReadOnly(path string, bytes int) (*Region, error) {
	return mapFile(path, bytes, unix.O_RDONLY, true)
}

func mapFile(path string, bytes, flags int, readOnly bool) (*Region, error) {
	if err := usable("file", bytes); err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ring: open file=%s: %w", path, err)
	}
	size, err := fileBytes(fd)
	if err == nil && size < int64(bytes) {
		if readOnly {
			err = fmt.Errorf("%w: %d of %d bytes", ErrSize, size, bytes)
		} else {
			err = unix.Ftruncate(fd, int64(bytes))
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("ring: size file=%s bytes=%d: %w", path, bytes, err)
	}
	return mapShared(fd, bytes, readOnly)
}

// Attach maps a memfd made by another process. It takes the descriptor over,
// also when it fails. The memory must be sealed against shrinking (ErrUnsealed) and hold at
// least bytes (ErrSize); after that no access inside it ever faults.
func Attach(fd int, bytes int) (*Region, error) { return attach(fd, bytes, false) }

// AttachReadOnly is Attach for a process that only reads, such as a free reader of a Fanout.
func AttachReadOnly(fd int, bytes int) (*Region, error) { return attach(fd, bytes, true) }

func attach(fd, bytes int, readOnly bool) (*Region, error) {
	if fd < 0 {
		return nil, fmt.Errorf("ring: attach fd=%d: %w", fd, unix.EBADF)
	}
	if err := verify(fd, bytes); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("ring: attach fd=%d bytes=%d: %w", fd, bytes, err)
	}
	unix.CloseOnExec(fd)
	return mapShared(fd, bytes, readOnly)
}

// verify checks the seal before the size: a sealed size cannot change afterwards.
func verify(fd, bytes int) error {
	if err := usable("attached", bytes); err != nil {
		return err
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if errors.Is(err, unix.EINVAL) { // not a memfd
		return ErrUnsealed
	}
	if err != nil {
		return err
	}
	if seals&unix.F_SEAL_SHRINK == 0 {
		return ErrUnsealed
	}
	size, err := fileBytes(fd)
	if err != nil {
		return err
	}
	if size < int64(bytes) {
		return fmt.Errorf("%w: %d of %d bytes", ErrSize, size, bytes)
	}
	return nil
}

func fileBytes(fd int) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	return st.Size, nil
}

// mapShared takes the descriptor over, also when it fails.
func mapShared(fd, bytes int, readOnly bool) (*Region, error) {
	prot := unix.PROT_READ
	if !readOnly {
		prot |= unix.PROT_WRITE
	}
	mem, err := unix.Mmap(fd, 0, bytes, prot, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("ring: map fd=%d bytes=%d: %w", fd, bytes, err)
	}
	return &Region{mem: mem, fd: fd, readOnly: readOnly}, nil
}

func usable(kind string, bytes int) error {
	if bytes < 1 || bytes > maxRegionBytes {
		return fmt.Errorf("ring: map %s bytes=%d: %w", kind, bytes, ErrSize)
	}
	return nil
}

// Bytes is the mapped memory, nil after Close. Slices of it must not outlive the region.
func (r *Region) Bytes() []byte { return r.mem }

// Fd is the descriptor behind the region, -1 when there is none. The region keeps owning it.
func (r *Region) Fd() int { return r.fd }

// Populate makes every page resident now, so that the first lap takes no page faults.
func (r *Region) Populate() error {
	if r.heap {
		return nil
	}
	if !r.readOnly {
		return MakeResident(r.mem, 0, len(r.mem))
	}
	if err := unix.Madvise(r.mem, unix.MADV_POPULATE_READ); err != nil {
		return fmt.Errorf("ring: populate bytes=%d: %w", len(r.mem), err)
	}
	return nil
}

// Close unmaps the memory and closes the descriptor. Later calls return the result of the first. No
// ring, slice or pointer into the region may be used afterwards.
func (r *Region) Close() error {
	r.closing.Do(func() {
		var errs []error
		if !r.heap {
			errs = append(errs, unix.Munmap(r.mem))
		}
		if r.fd >= 0 {
			errs = append(errs, unix.Close(r.fd))
		}
		r.mem, r.fd = nil, -1
		if err := errors.Join(errs...); err != nil {
			r.closeErr = fmt.Errorf("ring: close region: %w", err)
		}
	})
	return r.closeErr
}
