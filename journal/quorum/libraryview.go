package quorum

import (
	"errors"

	"github.com/hashicorp/raft"
)

// libraryView is the log store that the consensus library gets: a store that never fails.
//
// The library (v1.8.0) panics when it cannot save its term, or cannot read an entry that it wants
// to apply. But the first failure of the disk is final anyway, and Fatal ends the process as soon
// as the waiting callers have been answered. So a call that meets a failure, or comes after one,
// does not return: it confirms nothing, and gives the library no reason to panic in the meantime. A
// closed log is treated the same way.
//
// The library gets the errors that it needs: that an entry or a value is not there, and that
// entries are out of order, which a store refuses without writing anything.
type libraryView struct{ *logStore }

var (
	_ raft.LogStore          = libraryView{}
	_ raft.MonotonicLogStore = libraryView{}
	_ raft.StableStore       = libraryView{}
)

// final returns the errors that are answers. For any other error it poisons the log, which calls
// Fatal if nothing has done so yet, and the goroutine stops here.
func (v libraryView) final(err error) error {
	switch {
	case err == nil, errors.Is(err, raft.ErrLogNotFound), errors.Is(err, errNoStableKey),
		errors.Is(err, ErrLogOrder), errors.Is(err, ErrLogMiddle):
		return err
	case !errors.Is(err, ErrLogClosed):
		_ = v.stop.Poison(err)
	}
	select {}
}

// FirstIndex implements the library's interface.
func (v libraryView) FirstIndex() (uint64, error) {
	index, err := v.logStore.FirstIndex()
	return index, v.final(err)
}

// LastIndex implements the library's interface.
func (v libraryView) LastIndex() (uint64, error) {
	index, err := v.logStore.LastIndex()
	return index, v.final(err)
}

// GetLog implements the library's interface.
func (v libraryView) GetLog(index uint64, l *raft.Log) error {
	return v.final(v.logStore.GetLog(index, l))
}

// StoreLog implements the library's interface.
func (v libraryView) StoreLog(l *raft.Log) error { return v.final(v.logStore.StoreLog(l)) }

// StoreLogs implements the library's interface.
func (v libraryView) StoreLogs(logs []*raft.Log) error {
	return v.final(v.logStore.StoreLogs(logs))
}

// DeleteRange implements the library's interface.
func (v libraryView) DeleteRange(lo, hi uint64) error {
	return v.final(v.logStore.DeleteRange(lo, hi))
}

// Set implements the library's interface.
func (v libraryView) Set(key, value []byte) error { return v.final(v.logStore.Set(key, value)) }

// Get implements the library's interface.
func (v libraryView) Get(key []byte) ([]byte, error) {
	value, err := v.logStore.Get(key)
	return value, v.final(err)
}

// SetUint64 implements the library's interface.
func (v libraryView) SetUint64(key []byte, value uint64) error {
	return v.final(v.logStore.SetUint64(key, value))
}

// GetUint64 implements the library's interface.
func (v libraryView) GetUint64(key []byte) (uint64, error) {
	value, err := v.logStore.GetUint64(key)
	return value, v.final(err)
}
