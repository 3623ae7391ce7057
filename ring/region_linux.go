package ring

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Anonymous maps private memory. Pages become resident when first written; no page is reserved.
func Anonymous(bytes int) (*Region, error) {
	if err := usable("anonymous", bytes); err != nil {
		return nil, err
	}
	if raceEnabled && bytes <= raceHeapBytes {
		return &Region{mem: HeapPages(bytes), fd: -1, heap: true}, nil
	}
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	mem, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, fmt.Errorf("ring: map anonymous bytes=%d: %w", bytes, err)
	}
	return &Region{mem: mem, fd: -1}, nil
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

// release gives memory and descriptor back to the system.
func (r *Region) release() error {
	var errs []error
	if !r.heap {
		errs = append(errs, unix.Munmap(r.mem))
	}
	if r.fd >= 0 {
		errs = append(errs, unix.Close(r.fd))
	}
	return errors.Join(errs...)
}
