//go:build unix

package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// TestFoldersAreTheOwnersOnly: the journal has every order, and the secret that hashes client ids.
// What lies below such a folder cannot be reached. The folder that holds archives is the
// operator's.
func TestFoldersAreTheOwnersOnly(t *testing.T) {
	t.Chdir(t.TempDir())
	must.OK(t, os.Mkdir("archives", 0o755))
	agedJournal(t, vfs.Default)
	must.Get(archive(t, vfs.Default, tomorrow))(t)
	folders := append(must.Get(filepath.Glob("archives/*"))(t), "j")
	if len(folders) != 2 {
		t.Fatalf("folders %v", folders)
	}
	for _, path := range folders {
		if mode := must.Get(os.Stat(path))(t).Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %o", path, mode)
		}
	}
}
