package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"posttrade/ring/disk"
)

// mostKept is how many damaged journals are kept. A disk that has damaged that many is not given
// another.
const mostKept = 3

// healingName is a file that names the folder into which the damaged journal is being moved. While
// it is there, every start goes on with that.
const healingName = "healing"

// keptIn counts the damaged journals that are kept.
func keptIn(data string) int {
	n := 0
	entries, _ := os.ReadDir(data) // without the folder nothing is kept
	for _, e := range entries {
		if number, ok := strings.CutPrefix(e.Name(), "damaged-"); ok {
			if k, err := strconv.Atoi(number); err == nil {
				n = max(n, k)
			}
		}
	}
	return n
}

// markHealing makes the mark, durably.
func markHealing(data, folder string) error {
	err := disk.ReplaceText(filepath.Join(data, healingName), 0o644, []byte(folder))
	if err != nil {
		return fmt.Errorf("data.dir: %w", err)
	}
	return nil
}

// moveDamaged goes on with what markHealing began: it moves the journal and the consensus state
// aside. The mark goes last, so a start that is cut short is gone on with by the next.
func moveDamaged(data string, log *slog.Logger) error {
	text, err := os.ReadFile(filepath.Join(data, healingName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data.dir: %w", err)
	}
	folder := filepath.Join(data, filepath.Base(string(text)))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("data.dir: %w", err)
	}
	for _, name := range []string{"journal", "journal.incoming", "quorum"} {
		err := os.Rename(filepath.Join(data, name), filepath.Join(folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("data.dir: %w", err)
		}
		if err := errors.Join(disk.SyncDir(folder), disk.SyncDir(data)); err != nil {
			return fmt.Errorf("data.dir: %w", err)
		}
	}
	log.Warn("the damaged journal is kept; remove it when this member is whole again", "folder",
		folder)
	if err := os.Remove(filepath.Join(data, healingName)); err != nil {
		return fmt.Errorf("data.dir: %w", err)
	}
	return disk.SyncDir(data)
}
