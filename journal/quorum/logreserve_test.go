package quorum

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// reservedFS notes how much its log files take from the disk at once.
type reservedFS struct {
	vfs.FS
	mu    sync.Mutex
	taken []int64 // guarded by mu
}

type reservedFile struct {
	vfs.File
	fs *reservedFS
}

func (fs *reservedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = reservedFile{f, fs}
	}
	return f, err
}

func (f reservedFile) Preallocate(offset, length int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.taken = append(f.fs.taken, length)
	return f.File.Preallocate(offset, length)
}

// TestLogFileTakesWhatIsReserved: cluster.log-reserve-bytes is what a log file takes from the disk
// when it begins, give or take the rounding of the store; 0 is the default.
func TestLogFileTakesWhatIsReserved(t *testing.T) {
	for _, reserve := range []uint64{0, 4 << 20, 64 << 20} {
		fs := &reservedFS{FS: vfs.Default}
		s := must.Get(openLogStore(filepath.Join(t.TempDir(), "raft"),
			logStoreOptions{FS: fs, Reserve: reserve, Fatal: func(err error) { t.Error(err) }}))(t)
		must.OK(t, s.StoreLogs(logEntries(1, 3, 1)))
		must.OK(t, s.Close())
		want := int64(reserve)
		if want == 0 {
			want = DefaultLogReserve
		}
		if len(fs.taken) == 0 {
			t.Fatalf("%d: nothing is taken at once", reserve)
		}
		for _, got := range fs.taken {
			if got < want-want/16 || got > want+want/16 {
				t.Errorf("a log file takes %d bytes at once, want %d", got, want)
			}
		}
	}
}
