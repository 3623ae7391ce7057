package tca

import (
	"os"
	"path/filepath"
	"testing"

	"posttrade/ring/must"
)

// TestStandingIsTheCheckpoints: that of a valid checkpoint, else empty.
func TestStandingIsTheCheckpoints(t *testing.T) {
	dir := t.TempDir()
	if s, err := ReadCoverage(dir); err != nil || s.InputSeq != 0 {
		t.Errorf("no checkpoint: %+v, %v", s, err)
	}
	if err := Forget(dir); err != nil {
		t.Error(err)
	}
	var x index
	x.executions.file, x.samples.file = &blockFile{}, &blockFile{}
	x.applied = 42
	x.last.InputSeq = 42
	name := filepath.Join(dir, checkpointName)
	f, err := os.Create(name)
	must.OK(t, err)
	must.OK(t, x.write(f, [32]byte{1, 2}))
	f.Close()
	s, err := ReadCoverage(dir)
	if err != nil || s.InputSeq != 42 || s.Last.InputSeq != 42 || s.Genesis != [32]byte{1, 2} ||
		s.Path != name {
		t.Errorf("got %+v, %v", s, err)
	}
	text, err := os.ReadFile(name)
	must.OK(t, err)
	for at := range text {
		text[at] ^= 1
		must.OK(t, os.WriteFile(name, text, 0o600))
		if s, err := ReadCoverage(dir); err != nil || s.InputSeq != 0 {
			t.Fatalf("byte %d damaged: %+v, %v", at, s, err)
		}
		text[at] ^= 1
	}
	for n := range text {
		must.OK(t, os.WriteFile(name, text[:n], 0o600))
		if s, err := ReadCoverage(dir); err != nil || s.InputSeq != 0 {
			t.Fatalf("cut to %d bytes: %+v, %v", n, s, err)
		}
	}
	if err := Forget(dir); err != nil {
		t.Error(err)
	}
	if s, _ := ReadCoverage(dir); s.InputSeq != 0 {
		t.Error("not forgotten")
	}
}
