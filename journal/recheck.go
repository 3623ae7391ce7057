package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Recheck reads again what is known to be damaged, and returns what still is. It changes nothing
// that the scrub knows: the next pass does. An error of another kind counts as damage too. Any
// goroutine.
func (s *Scrub) Recheck() (still []Damage) {
	for _, d := range s.State().Damaged {
		if err := s.again(d); err != nil {
			still = append(still, d)
		}
	}
	return still
}

// again reads the commits of a damage, and what the first of them follows. nil: they hold.
func (s *Scrub) again(d Damage) error {
	if err := s.j.share(); err != nil {
		return err
	}
	defer s.j.reading.RUnlock()
	s.j.db.dropCache()
	w := newWalker(s.j.db, s.j.Seed())
	defer w.close()
	if err := w.startAt(d.From); err != nil {
		return err
	}
	if err := w.walk(d.To, func(*decoded) error { return nil }); err != nil {
		return err
	}
	if w.at.inputSeq < d.To {
		return fmt.Errorf("journal: commands end at inputSeq=%d, want %d: %w", w.at.inputSeq, d.To,
			errSizes)
	}
	return nil
}

// ErrNoRoom: the free space does not hold the journal a second time.
var ErrNoRoom = errors.New("no room for a second copy of the journal")

// RoomForCopy is the free space without the reserve, in bytes. It is ErrNoRoom when that does not
// hold a second copy of the store; what was moved into archives is not counted (TransferSize). A
// file system that does not say counts as roomy, and has 0. ErrClosed after Close.
func (j *Journal) RoomForCopy() (room uint64, err error) {
	if err := j.share(); err != nil {
		return 0, err
	}
	defer j.reading.RUnlock()
	return roomFor(j.o.FS, j.dir, j.db.Metrics().DiskSpaceUsage(), j.o.ReserveBytes)
}

// roomFor is the free space of a folder without the reserve, if that holds as much as is used.
func roomFor(fs vfs.FS, dir string, used, reserve uint64) (room uint64, err error) {
	free, err := diskUsage(fs, dir)
	if err != nil {
		return 0, nil // a file system that does not say: roomy, as everywhere
	}
	if free < used+reserve {
		return 0, fmt.Errorf("journal: dir=%s has %d bytes, %d are free: %w", dir, used, free, ErrNoRoom)
	}
	return free - reserve, nil
}

// Damaging reports that an error shows bytes on the disk that are not what was written.
func Damaging(err error) bool {
	return errors.Is(err, ErrCorrupt) || spoiled(err)
}

// RoomForAnother is RoomForCopy of a journal that cannot be opened: reserve is the space that must
// be left, in bytes. It counts the files of the store; what cannot be counted takes nothing.
func RoomForAnother(dir string, reserve uint64) (room uint64, err error) {
	entries, _ := os.ReadDir(filepath.Join(dir, storeName)) // without one there is nothing
	var used uint64
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			used += uint64(info.Size())
		}
	}
	return roomFor(vfs.Default, dir, used, reserve)
}
