package riskextract

import (
	"os"
	"path/filepath"
	"testing"

	"posttrade/ring/must"
)

// TestNewestIsTheHighestSequence reads names alone, and skips extracts that were given up.
func TestNewestIsTheHighestSequence(t *testing.T) {
	sink := filepath.Join(t.TempDir(), "a[b]*c") // a name that is a pattern
	if s, err := Newest(sink); err != nil || s.Seq != 0 {
		t.Errorf("a sink that is not there: %+v, %v", s, err)
	}
	for _, name := range []string{
		"2026-11-23/v1/seq-7.cut", "2026-11-23/v1/seq-7-contracts.csv", "2026-11-24/v2/seq-100.cut",
		"2026-11-24/v2/seq-x.cut",
		"2026-11-24/v0x/seq-900.cut", "no-day/v1/seq-901.cut", "2026-11-24/v2/.seq-902.cut.new-1",
		"2026-11-24/v2/seq-",
	} {
		path := filepath.Join(sink, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, nil, 0o444))
	}
	check := func(want uint64) {
		t.Helper()
		if s, err := Newest(sink); err != nil || s.Seq != want {
			t.Errorf("the newest is %+v, %v, want %d", s, err, want)
		}
	}
	check(100)
	if s, _ := Newest(sink); s.SessionDate.String() != "2026-11-24" || s.PriceVersion != 2 {
		t.Errorf("the newest is of %s v%d", s.SessionDate, s.PriceVersion)
	}
	for _, step := range []struct {
		behind uint64
		files  int
		newest uint64
	}{{100, 0, 100}, {7, 1, 7}, {7, 0, 7}, {0, 2, 0}} {
		if n, err := GiveUp(sink, step.behind); err != nil || n != step.files {
			t.Errorf("given up behind %d: %d files, %v, want %d", step.behind, n, err, step.files)
		}
		check(step.newest)
	}
}

func TestTheFileCursorIsSetBackOnly(t *testing.T) {
	dir := t.TempDir()
	at := func() uint64 {
		seq, _, err := FileCoverage(dir)
		must.OK(t, err)
		return seq
	}
	if err := SetFileBack(dir, 5); err != nil || at() != 0 {
		t.Errorf("no cursor: %d, %v", at(), err)
	}
	must.OK(t, (fileCursor{dir}).save(t.Context(), 9))
	for _, step := range []struct{ to, want uint64 }{{12, 9}, {9, 9}, {4, 4}, {0, 0}} {
		if err := SetFileBack(dir, step.to); err != nil || at() != step.want {
			t.Errorf("set back to %d: %d, %v, want %d", step.to, at(), err, step.want)
		}
	}
}
