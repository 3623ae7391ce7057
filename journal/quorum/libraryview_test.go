package quorum

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"

	"posttrade/ring/must"
)

// An entry that cannot be read any more is as final as one that cannot be written: the library
// would panic on the error.
func TestEntryThatCannotBeReadEndsTheMember(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".sst") && !isWrite(op) {
			return syscall.EIO
		}
		return nil
	})}
	fatal := make(chan error, 2)
	s := must.Get(openLogStore("raft", logStoreOptions{
		FS: errorfs.Wrap(vfs.NewMem(), toggle), Fatal: func(err error) { fatal <- err },
	}))(t)
	const entries = 2 * logBlockCache / (1 << 20)
	for i := uint64(1); i <= entries; i++ { // more than the store's cache holds
		must.OK(t, s.StoreLog(&raft.Log{Index: i, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 1<<20)}))
	}
	must.OK(t, s.flush())
	s.tail = newLogTail(1, 0)
	toggle.On()
	returned := make(chan error, 1)
	go func() { returned <- libraryView{s}.GetLog(1, new(raft.Log)) }()
	select {
	case err := <-returned:
		t.Fatalf("the library is told: %v", err)
	case err := <-fatal:
		must.Be(t, err, syscall.EIO)
	}
	must.Be(t, s.StoreLog(logEntry(entries+1, 1)), syscall.EIO)
	must.Be(t, s.Close(), syscall.EIO)
}

// The library gets the errors that are answers and no failures.
func TestLibraryIsToldWhatIsNoFailure(t *testing.T) {
	s, err := openLogStore("raft", logStoreOptions{FS: vfs.NewMem(),
		Fatal: func(err error) { t.Error(err) }})
	must.OK(t, err)
	v := libraryView{s}
	_, err = v.Get([]byte("vote"))
	must.Be(t, err, errNoStableKey)
	_, err = v.GetUint64([]byte("vote"))
	must.Be(t, err, errNoStableKey)
	must.Be(t, v.GetLog(1, new(raft.Log)), raft.ErrLogNotFound)
	must.OK(t, v.StoreLogs(logEntries(1, 5, 1)))
	must.Be(t, v.StoreLog(logEntry(3, 1)), ErrLogOrder)
	must.Be(t, v.DeleteRange(2, 3), ErrLogMiddle)
	must.OK(t, v.Set([]byte("vote"), []byte("a")))
	must.OK(t, v.SetUint64([]byte("term"), 3))
	first, err := v.FirstIndex()
	must.OK(t, err)
	last, err := v.LastIndex()
	must.OK(t, err)
	if first != 1 || last != 5 {
		t.Errorf("%d..%d, want 1..5", first, last)
	}
	must.OK(t, s.Close())
}
