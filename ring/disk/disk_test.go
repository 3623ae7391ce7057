package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"posttrade/ring/must"
)

func TestReplaceShowsOneFileOrTheOther(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(name+".new", []byte("left by a crash, and longer"), 0o600))
	for _, text := range []string{"first", "second one"} {
		must.OK(t, ReplaceText(name, 0o600, []byte(text)))
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Fatalf("%q, %v, want %q", got, err, text)
		}
		if _, err := os.Stat(name + ".new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the other name is left: %v", err)
		}
	}
	torn := errors.New("torn")
	err := Replace(name, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, torn)
	})
	if got, readErr := os.ReadFile(name); !errors.Is(err, torn) || readErr != nil ||
		string(got) != "second one" {
		t.Errorf("after a failed write: %q, %v; %v", got, readErr, err)
	}
}

// TestMadeDirectoriesHaveDurableNames makes directories below none, one and two that are missing.
// Each name is synced in its parent before the next directory is made in it, and first that of the
// lowest one that was there: a process that was killed may have made it.
func TestMadeDirectoriesHaveDurableNames(t *testing.T) {
	base := t.TempDir()
	must.OK(t, os.MkdirAll(filepath.Join(base, "there", "in it"), 0o700))
	tests := []struct {
		name string
		want []string // in which directories names are synced
	}{
		{"there", []string{"..", "."}},
		{"new", []string{"..", "."}},
		{"there/in it/new", []string{"there", "there/in it"}},
		{"a/b/c", []string{"..", ".", "a", "a/b"}},
	}
	for _, tt := range tests {
		var synced []string
		name := filepath.Join(base, tt.name)
		must.OK(t, makeDir(name, 0o700, func(dir string) error {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				t.Errorf("%s: %s is synced before it is there: %v", tt.name, dir, err)
			}
			if len(synced) < len(tt.want)-1 {
				if _, err := os.Stat(name); err == nil && tt.name != "there" {
					t.Errorf("%s is made before the name of %s is durable", tt.name, dir)
				}
			}
			synced = append(synced, must.Get(filepath.Rel(base, dir))(t))
			return SyncDir(dir)
		}))
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !slices.Equal(synced, tt.want) {
			t.Errorf("%s: synced are %v, want %v", tt.name, synced, tt.want)
		}
	}
}

// TestDirectoriesThatCannotBeMade: every error comes back, and nothing is made behind it. Only a
// directory above what was there already may be unreadable.
func TestDirectoriesThatCannotBeMade(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	for _, name := range []string{file, filepath.Join(file, "a"), filepath.Join(file, "a", "b")} {
		if err := MakeDir(name, 0o700); err == nil {
			t.Errorf("%s: made", name)
		}
	}
	torn := errors.New("torn")
	for at := range 3 {
		n, name := 0, filepath.Join(base, "a", "b")
		must.Be(t, makeDir(name, 0o700, func(string) error {
			if n++; n == at+1 {
				return torn
			}
			return nil
		}), torn)
		if _, err := os.Stat(name); at < 2 && err == nil {
			t.Errorf("sync %d: %s is made behind a name that is not durable", at, name)
		}
		must.OK(t, os.RemoveAll(filepath.Join(base, "a")))
	}
	for at, want := range []error{nil, fs.ErrPermission} {
		n := 0
		err := makeDir(filepath.Join(base, "c"), 0o700, func(string) error {
			if n++; n == at+1 {
				return fs.ErrPermission
			}
			return nil
		})
		if !errors.Is(err, want) {
			t.Errorf("sync %d is not permitted: %v", at, err)
		}
	}
}

// TestMovedAside: each gets the lowest number that is free, whatever has the others.
func TestMovedAside(t *testing.T) {
	dir := t.TempDir()
	name, aside := filepath.Join(dir, "log"), filepath.Join(dir, "log.old-")
	must.OK(t, os.Symlink("nowhere", aside+"2"))
	for _, n := range []string{"1", "3"} {
		must.OK(t, os.Mkdir(name, 0o700))
		if to, err := MoveAside(name, aside); to != aside+n || err != nil {
			t.Errorf("moved to %s, want %s: %v", to, aside+n, err)
		}
		must.Get(os.Stat(aside + n))(t)
	}
	if _, err := MoveAside(name, aside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	file := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	if _, err := MoveAside(file, filepath.Join(file, "x")); err == nil {
		t.Error("moved below a file")
	}
}

func TestErrorsOfTheSystemComeBack(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if err := SyncDir(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sync: %v", err)
	}
	if err := ReplaceText(filepath.Join(missing, "file"), 0o600, nil); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("replace: %v", err)
	}
}
