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
//
// The folders take disk space, and damage that comes back is a fault of the disk.
const mostKept = 3

// healingName is a file that names the folder into which the damaged journal is being moved. While
// it is there, every start goes on with that.
//
// Its text is the name of the folder alone, and it is durable before anything moves.
const healingName = "healing"

// keptIn is the highest n of the folders damaged-<n> in data.dir, 0 for none. That is the number
// of damaged journals that are kept as long as the operator removes none of them. The next one
// gets n+1, so a name is not given twice while a later one exists.
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
//
// From then on the next start moves the journal, whatever ends this process.
func markHealing(data, folder string) error {
	err := disk.ReplaceText(filepath.Join(data, healingName), 0o644, []byte(folder))
	if err != nil {
		return fmt.Errorf("data.dir: %w", err)
	}
	return nil
}

// moveDamaged goes on with what markHealing began: it moves the journal and the consensus state
// aside. The mark goes last, so a start that is cut short is gone on with by the next.
//
// It runs before journal and consensus state are opened. The three folders belong together: a
// journal without its consensus state is refused by a start. A folder that is absent has been
// moved already. Both directories are synced after each move, so that a power cut leaves a folder
// in one place.
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
