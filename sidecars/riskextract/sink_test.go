package riskextract

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"posttrade/ring/must"
)

// TestManyWritersOfOneName has members share a sink. With equal content all succeed; with different
// contents, the first keeps the name.
func TestManyWritersOfOneName(t *testing.T) {
	for _, differ := range []bool{false, true} {
		for range 20 {
			f := &folder{path: t.TempDir(), mode: 0o444}
			const writers = 8
			errs := make([]error, writers)
			content := make([]string, writers)
			start := make(chan struct{})
			var all sync.WaitGroup
			for i := range writers {
				content[i] = "the same"
				if differ {
					content[i] = strings.Repeat("x", i+1)
				}
				all.Go(func() { <-start; errs[i] = f.put("name", []byte(content[i])) })
			}
			close(start)
			all.Wait()
			got := files(t, f.path)
			if len(got) != 1 {
				t.Fatalf("the folder is %q", got)
			}
			for i, err := range errs {
				if (err == nil) != (got["name"] == content[i]) || err != nil && !errors.Is(err, ErrMismatch) {
					t.Errorf("writer %d of %q, where %q is: %v", i, content[i], got["name"], err)
				}
			}
		}
	}
}

// TestWriterNeverReplaces has another process take the name between the check and the link.
func TestWriterNeverReplaces(t *testing.T) {
	f := &folder{path: t.TempDir(), mode: 0o444}
	f.step = func(step string) error {
		if step == "name written" {
			write(t, filepath.Join(f.path, "name"), "theirs")
		}
		return nil
	}
	if err := f.put("name", []byte("ours")); !errors.Is(err, ErrMismatch) {
		t.Errorf("got %v", err)
	}
	if got := files(t, f.path); got["name"] != "theirs" {
		t.Errorf("the folder is %q", got)
	}
}

func TestFailedWriteLeavesNoName(t *testing.T) {
	f := &folder{path: filepath.Join(t.TempDir(), "gone"), mode: 0o444}
	if err := f.put("name", []byte("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	f.path = t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(f.path, "name"), 0o755))
	if err := f.put("name", []byte("x")); err == nil || errors.Is(err, ErrMismatch) {
		t.Errorf("over a folder: %v", err)
	}
}
