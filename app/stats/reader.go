package stats

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"posttrade/ring"
)

// OpenStats maps the file at path for reading, after it has checked the header.
//
// Errors: errStatsAbsent, errStatsForeign, errStatsVersion, ErrStatsFault, and those of opening.
// The file may be one of a process that is gone: ask Alive.
func OpenStats(path string) (*file, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, errStatsAbsent
	}
	region, err := ring.FileReadOnly(path, bytes)
	if errors.Is(err, ring.ErrSize) {
		return nil, fmt.Errorf("%w: %w", errStatsForeign, err)
	} else if err != nil {
		return nil, err
	}
	f := over(region)
	var header Header
	err = withoutFaults(func() { ring.CopyOut(wordsOf(&header), f.words) })
	switch {
	case err != nil:
	case header.Magic != Magic:
		err = fmt.Errorf("%w: magic %016x, want %016x", errStatsForeign, header.Magic, uint64(Magic))
	case header.Version != Version:
		err = fmt.Errorf("%w: %d, this program reads %d", errStatsVersion, header.Version, Version)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// How a reader waits for a block that changes. A writer needs some hundred nanoseconds every 100
// ms, unless the machine takes the CPU from it just then.
//
// A reader yields first, then sleeps: a writer that the machine has stopped in the middle may need
// the very CPU core that the reader is on. After tries, about a second, the block counts as torn.
const (
	spins = 100
	tries = spins + 1000
	pause = time.Millisecond
)

// Load copies every block. Each copy is consistent.
//
// The blocks may be of different looks of the writer. After an error image has some blocks of this
// reading and some of the one before. Errors: errStatsTorn and ErrStatsFault.
func (f *file) Load(image *Image) error {
	torn := false
	err := withoutFaults(func() {
		ring.CopyOut(wordsOf(&image.Header), f.words)
		at := first
		for _, block := range image.blocks() {
			if torn = !f.loadBlock(at, block); torn {
				return
			}
			at = nextBlock(at, block)
		}
	})
	if err == nil && torn {
		err = errStatsTorn
	}
	return err
}

// loadBlock copies the block whose lock is at a position; false: it changed at every try.
func (f *file) loadBlock(at int, block []uint64) bool {
	lock := f.lockAt(at)
	for try := range tries {
		if stamp, ok := lock.Read(); ok {
			ring.CopyOut(block, f.words[at+1:])
			if !lock.Retry(stamp) {
				return true
			}
		}
		if try < spins {
			runtime.Gosched()
		} else {
			time.Sleep(pause)
		}
	}
	return false
}

// Alive reports whether the process that writes the file still runs.
//
// It asks the kernel for the writer's lock, which ends with the writer. It says nothing about
// whether the writer still makes progress.
func (f *file) Alive() (bool, error) {
	held, err := locked(f.region)
	if err != nil {
		return false, fmt.Errorf("stats: ask for the lock: %w", err)
	}
	return held, nil
}
