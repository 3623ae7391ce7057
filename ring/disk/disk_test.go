package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
