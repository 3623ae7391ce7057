package bundle_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/journal/evidence/bundle"
	"posttrade/ring/must"
)

// TestAFolderHasPlainFilesOnly: a stranger's folder may have a link to what has no end.
func TestAFolderHasPlainFilesOnly(t *testing.T) {
	dir := t.TempDir()
	read := bundle.Folder(dir)
	must.OK(t, os.WriteFile(filepath.Join(dir, "a"), []byte("text"), 0o600))
	must.OK(t, os.Symlink(os.DevNull, filepath.Join(dir, "device")))
	must.OK(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	if text, err := read("a"); err != nil || string(text) != "text" {
		t.Errorf("%q %v", text, err)
	}
	if _, err := read("absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, name := range []string{"device", "folder"} {
		if _, err := read(name); err == nil || !strings.HasSuffix(err.Error(), " is not a plain file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestASmallFileOfAFolderHasABound: one with a hole of gigabytes takes no memory.
func TestASmallFileOfAFolderHasABound(t *testing.T) {
	dir := t.TempDir()
	read := bundle.Folder(dir)
	for _, name := range []string{bundle.ManifestName, bundle.CheckpointName, bundle.AttestedName,
		"tile/entries/000", "tile/0/x001/002.p/3", bundle.RecordsName} {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.OK(t, os.WriteFile(path, nil, 0o600))
		must.OK(t, os.Truncate(path, 1<<20+1))
		_, err := read(name)
		large := err != nil && strings.HasSuffix(err.Error(), " is larger than 1048576 bytes")
		if large != (name != bundle.RecordsName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadFileHasABound, also for what has no end.
func TestReadFileHasABound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	must.OK(t, os.WriteFile(name, []byte("text"), 0o600))
	if text, err := bundle.ReadFile(name, 4); err != nil || string(text) != "text" {
		t.Errorf("%q %v", text, err)
	}
	for _, name := range []string{name, "/dev/zero"} {
		if _, err := bundle.ReadFile(name, 3); err == nil ||
			!strings.HasSuffix(err.Error(), " is larger than 3 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := bundle.ReadFile(name+"b", 3); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
