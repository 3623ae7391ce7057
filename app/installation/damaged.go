package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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

// keptIn is how many damaged journals are kept in data.dir: its folders damaged-<n>. The operator
// removes them in any order, so the highest n says nothing of how many there are.
func keptIn(data string) int { return len(keptNumbers(data)) }

// nextKept is the name of the folder for the next damaged journal: its number is one above the
// highest of those that are kept, so it is newer than all of them.
func nextKept(data string) string {
	return damagedPrefix + strconv.Itoa(slices.Max(append(keptNumbers(data), 0))+1)
}

// damagedPrefix begins the name of each folder with a damaged journal; a number follows.
const damagedPrefix = "damaged-"

// keptNumbers are the numbers of the damaged journals that are kept, in no particular order.
func keptNumbers(data string) (numbers []int) {
	entries, _ := os.ReadDir(data) // without the folder nothing is kept
	for _, e := range entries {
		if number, ok := strings.CutPrefix(e.Name(), damagedPrefix); ok {
			if n, err := strconv.Atoi(number); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
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
