//go:build !linux

package journal

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring"
)

// hasTail: no memory here outlives the process, so answers come from the store, which has written
// its log by then.
const hasTail = false

func mapTail(_ vfs.FS, name string, _ int, _ bool) (tailMap, error) {
	return nil, fmt.Errorf("journal: map file=%s: %w", name, ring.ErrUnsupported)
}

// lower does nothing: a priority is the whole process's.
func lower(int) {}

func syncData(f *os.File) error { return f.Sync() }

// lockedBy: the system does not say which process has a lock.
func lockedBy(string) (int, error) { return 0, errors.ErrUnsupported }

// orphanBytes: it is not known whether another process has the file open.
func orphanBytes(*os.File) int64 { return 0 }

func beginWriting(uintptr, int64, int64) {}
