package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// copyDir copies a folder as cp -a does: file by file, while it changes.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	must.OK(t, os.CopyFS(to, os.DirFS(from)))
}

// TestCopyOfAnOpenJournalSaysSo copies the folder of an open journal. Opened, verified or exported,
// the copy says what it is, whether something is missing in it or not. The journal itself does not,
// also not when its process was killed, and neither does a copy of a closed one.
func TestCopyOfAnOpenJournalSaysSo(t *testing.T) {
	root := t.TempDir()
	dir, f := filepath.Join(root, "j"), flow{seed: 1}
	o := strict(t, vfs.Default)
	j := openNew(t, dir, o)
	appendAll(t, j, &f, 10, 20)
	must.OK(t, j.Copied())
	torn, lucky, killed := filepath.Join(root, "torn"), filepath.Join(root, "lucky"),
		filepath.Join(root, "killed")
	copyDir(t, dir, torn)
	appendAll(t, j, &f, 30)
	must.OK(t, os.RemoveAll(filepath.Join(torn, anchorName)))
	anchor, err := os.ReadFile(filepath.Join(dir, anchorName))
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(torn, anchorName), anchor, 0o600)) // copied last
	copyDir(t, dir, lucky)
	for name, err := range map[string]error{
		"open":   second(Open(torn, o)),
		"read":   second(Read(torn, VerifyOptions{})),
		"verify": second(Verify(t.Context(), torn, VerifyOptions{})),
	} {
		if !errors.Is(err, ErrShortened) || !errors.Is(err, ErrCopied) ||
			!strings.Contains(err.Error(), "posttrade backup") {
			t.Errorf("%s: %v", name, err)
		}
	}
	copied, err := Open(lucky, o)
	must.OK(t, err)
	must.Be(t, copied.Copied(), ErrCopied)
	must.OK(t, copied.Close())
	copied, err = Open(lucky, o) // it has been closed: it is a journal of its own
	must.OK(t, err)
	must.OK(t, copied.Copied())
	must.OK(t, copied.Close())

	// The process was killed, and the folder has another name.
	mark, err := os.ReadFile(filepath.Join(dir, openName))
	must.OK(t, err)
	must.OK(t, j.Close())
	if _, err := os.Stat(filepath.Join(dir, openName)); !os.IsNotExist(err) {
		t.Errorf("the mark stays: %v", err)
	}
	copyDir(t, dir, killed)
	must.OK(t, CopiedFrom(killed))
	must.OK(t, os.WriteFile(filepath.Join(killed, openName), mark, 0o600))
	must.Be(t, CopiedFrom(killed), ErrCopied)
	j, err = Open(dir, o)
	must.OK(t, err)
	must.OK(t, os.Rename(dir, dir+"2"))
	must.OK(t, CopiedFrom(dir+"2"))
	must.OK(t, os.Rename(dir+"2", dir))
	must.OK(t, j.Close())
}

func second[T any](_ T, err error) error { return err }
