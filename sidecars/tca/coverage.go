package tca

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"posttrade/matcher"
	"posttrade/ring/disk"
)

// Coverage is how much of the history the files of an index hold.
//
// A start compares it with the journal, to find files that a later or another journal has left.
type Coverage struct {
	Path     string
	Genesis  [sha256.Size]byte // of the genesis record
	InputSeq uint64            // 0: they hold nothing
	Last     matcher.Command   // the command of that sequence
}

// ReadCoverage reads the Coverage from the checkpoint in dir. A missing or damaged checkpoint gives
// an empty one: the index will be built again.
//
// It checks the checksum and the format, and reads nothing behind the last command. It may be
// called while no index is open in dir.
func ReadCoverage(dir string) (s Coverage, err error) {
	s.Path = filepath.Join(dir, checkpointName)
	text, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("tca: read checkpoint: %w", err)
	}
	body, head := len(text)-sha256.Size, len(checkpointMagic)+sha256.Size
	if body < head+8+matcher.CommandBytes || string(text[:len(checkpointMagic)]) != checkpointMagic ||
		sha256.Sum256(text[:body]) != [sha256.Size]byte(text[body:]) {
		return s, nil
	}
	copy(s.Genesis[:], text[len(checkpointMagic):head])
	s.InputSeq = binary.LittleEndian.Uint64(text[head:])
	copy(s.Last.Bytes()[:], text[head+8:])
	return s, nil
}

// Forget makes the next Open begin with an empty index. Call it only while no index is open.
//
// The blocks stay, and are cut away when the index is opened: without a checkpoint none of them
// counts.
func Forget(dir string) error {
	err := os.Remove(filepath.Join(dir, checkpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tca: remove checkpoint: %w", err)
	}
	return disk.SyncDir(dir)
}
