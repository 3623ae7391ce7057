package ring

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"posttrade/ring/must"
)

func TestRegionsAreZeroedAndClosedOnce(t *testing.T) {
	const bytes = 3 * pageBytes
	makers := map[string]func() (*Region, error){
		"anonymous": func() (*Region, error) { return Anonymous(bytes) },
		"memfd":     func() (*Region, error) { return Memfd("test", bytes) },
		"file":      func() (*Region, error) { return File(filepath.Join(t.TempDir(), "r"), bytes) },
	}
	for name, create := range makers {
		t.Run(name, func(t *testing.T) {
			r := must.Get(create())(t)
			if err := r.Populate(); err != nil {
				t.Error(err)
			}
			mem := r.Bytes()
			if len(mem) != bytes || uintptr(unsafe.Pointer(&mem[0]))%pageBytes != 0 {
				t.Errorf("%d bytes at %p, want %d on a page boundary", len(mem), &mem[0], bytes)
			}
			for i, b := range mem {
				if b != 0 {
					t.Fatalf("byte %d is %d, want 0", i, b)
				}
			}
			mem[bytes-1] = 1
			for range 2 {
				if err := r.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			if r.Bytes() != nil || r.Fd() != -1 {
				t.Errorf("after close: %d bytes, fd %d", len(r.Bytes()), r.Fd())
			}
		})
	}
}

func TestRegionRefusesUnusableSizes(t *testing.T) {
	for _, bytes := range []int{-1, 0, maxRegionBytes + 1} {
		_, anonymous := Anonymous(bytes)
		_, memfd := Memfd("test", bytes)
		_, file := File(filepath.Join(t.TempDir(), "r"), bytes)
		_, readOnly := FileReadOnly(filepath.Join(t.TempDir(), "r"), bytes)
		for _, err := range []error{anonymous, memfd, file, readOnly} {
			if !errors.Is(err, ErrSize) {
				t.Errorf("bytes %d: got %v, want %v", bytes, err, ErrSize)
			}
		}
	}
}

func TestMemfdIsSealedBothWays(t *testing.T) {
	r := must.Get(Memfd("test", 2*pageBytes))(t)
	defer r.Close()
	for _, size := range []int64{pageBytes, 3 * pageBytes} {
		if err := unix.Ftruncate(r.Fd(), size); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncate to %d: got %v, want EPERM", size, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(r.Fd()), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err == nil {
		t.Error("another seal was accepted")
	}
}

func TestAttachSharesMemory(t *testing.T) {
	a := must.Get(Memfd("test", pageBytes))(t)
	defer a.Close()
	b := must.Get(Attach(dup(t, a.Fd()), pageBytes))(t)
	defer b.Close()
	a.Bytes()[17] = 42
	if got := b.Bytes()[17]; got != 42 {
		t.Errorf("got %d through the second mapping, want 42", got)
	}
}

func TestAttachRefusesWhatItCannotTrust(t *testing.T) {
	sealed := must.Get(Memfd("sealed", pageBytes))(t)
	defer sealed.Close()
	unsealed := must.Get(unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING))(t)
	defer unix.Close(unsealed)
	must.OK(t, unix.Ftruncate(unsealed, pageBytes))
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "plain")))(t)
	defer file.Close()
	tests := []struct {
		name  string
		fd    int
		bytes int
		want  error
	}{
		{"no descriptor", -1, pageBytes, unix.EBADF},
		{"closed descriptor", 1 << 19, pageBytes, unix.EBADF},
		{"no bytes", dup(t, sealed.Fd()), 0, ErrSize},
		{"shorter than promised", dup(t, sealed.Fd()), pageBytes + 1, ErrSize},
		{"not sealed", dup(t, unsealed), pageBytes, ErrUnsealed},
		{"a plain file", dup(t, int(file.Fd())), pageBytes, ErrUnsealed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Attach(tt.fd, tt.bytes); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestFileKeepsItsBytesAndIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	if _, err := FileReadOnly(path, pageBytes); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want %v", err, fs.ErrNotExist)
	}
	a := must.Get(File(path, pageBytes))(t)
	a.Bytes()[5] = 7
	must.OK(t, a.Close())
	b := must.Get(File(path, 2*pageBytes))(t)
	defer b.Close()
	if got := b.Bytes()[5]; got != 7 {
		t.Errorf("byte 5 is %d after reopening, want 7", got)
	}
	info := must.Get(os.Stat(path))(t)
	if info.Mode().Perm() != 0o600 || info.Size() != 2*pageBytes {
		t.Errorf("mode %v, size %d, want 0600, %d", info.Mode(), info.Size(), 2*pageBytes)
	}
	if _, err := FileReadOnly(path, 3*pageBytes); !errors.Is(err, ErrSize) {
		t.Errorf("short file: got %v, want %v", err, ErrSize)
	}
}

// dup returns a descriptor that Attach may take over.
func dup(t *testing.T, fd int) int {
	t.Helper()
	return must.Get(unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0))(t)
}
