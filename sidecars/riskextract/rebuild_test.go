package riskextract

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// storedCopy makes the golden extract, copies its folder to another place and deletes all its
// sources.
func storedCopy(t *testing.T) (dir string, want map[string]string) {
	t.Helper()
	r := goldenRig(t)
	must.Get(New(r.o).Extract(t.Context(), goldenMarker))(t)
	want = files(t, filepath.Join(r.o.Sink, "2026-11-20", "v1"))
	must.OK(t, errors.Join(os.RemoveAll(r.o.Sink), os.Remove(r.o.Counterparties)))
	dir = t.TempDir()
	for name, content := range want {
		write(t, filepath.Join(dir, name), content)
	}
	return dir, want
}

func TestRebuildIsByteIdentical(t *testing.T) {
	dir, want := storedCopy(t)
	out := t.TempDir()
	positions, contracts := filepath.Join(out, "p.csv"), filepath.Join(out, "c.csv")
	for _, missing := range []string{"", "seq-42.csv", "seq-42-contracts.csv"} {
		if missing != "" {
			must.OK(t, os.Remove(filepath.Join(dir, missing)))
		}
		for range 2 { // over its own result, too
			must.OK(t, Rebuild(filepath.Join(dir, "seq-42.cut"), positions, contracts))
		}
		got := files(t, out)
		if len(got) != 2 || got["p.csv"] != want["seq-42.csv"] ||
			got["c.csv"] != want["seq-42-contracts.csv"] {
			t.Fatalf("without %q: got %q", missing, got)
		}
		must.OK(t, errors.Join(os.Remove(positions), os.Remove(contracts)))
	}
	// The lost artifacts can be restored in place.
	must.OK(t, Rebuild(filepath.Join(dir, "seq-42.cut"), filepath.Join(dir, "seq-42.csv"),
		filepath.Join(dir, "seq-42-contracts.csv")))
	if got := files(t, dir); len(got) != len(want) || got["seq-42.csv"] != want["seq-42.csv"] {
		t.Errorf("the folder is %q", got)
	}
}

// TestRebuildRefusesEveryChangedFile changes one byte, the end, or all of each stored file.
func TestRebuildRefusesEveryChangedFile(t *testing.T) {
	dir, want := storedCopy(t)
	out := t.TempDir()
	rebuild := func() error {
		return Rebuild(filepath.Join(dir, "seq-42.cut"), filepath.Join(out, "p.csv"),
			filepath.Join(out, "c.csv"))
	}
	changes := 0
	for name, content := range want {
		for what, changed := range map[string]string{
			"the first byte":       "X" + content[1:],
			"a byte in the middle": content[:len(content)/2] + "~" + content[len(content)/2+1:],
			"the last byte":        content[:len(content)-1] + " ", "a byte more": content + "\n",
			"a byte less":     content[:len(content)-1],
			"the first digit": flipDigit(content), "nothing left": "",
		} {
			write(t, filepath.Join(dir, name), changed)
			if err := rebuild(); !errors.Is(err, ErrMismatch) {
				t.Errorf("%s of %s: %v", what, name, err)
			}
			changes++
		}
		write(t, filepath.Join(dir, name), content)
	}
	if got := files(t, out); len(got) != 0 {
		t.Errorf("a refused rebuild wrote %q", got)
	}
	if err := rebuild(); err != nil {
		t.Errorf("with everything restored: %v", err)
	}
	t.Logf("%d changes of %d files refused", changes, len(want))
}

// flipDigit changes the first digit of a text.
func flipDigit(text string) string {
	i := strings.IndexAny(text, "0123456789")
	return text[:i] + string([]byte{'0' + (text[i]-'0'+1)%10}) + text[i+1:]
}

// TestRebuildRefusesForgedManifests is about files that are each consistent and wrong together.
func TestRebuildRefusesForgedManifests(t *testing.T) {
	dir, want := storedCopy(t)
	out := t.TempDir()
	rebuild := func(cut string) error {
		return Rebuild(filepath.Join(dir, cut), filepath.Join(out, "p.csv"), filepath.Join(out, "c.csv"))
	}
	pins := must.Get(parseManifest(42, want["seq-42.sha256"]))(t)
	forge := func(seq uint64, edit func(*manifest)) {
		forged := *pins
		edit(&forged)
		write(t, filepath.Join(dir, manifestName(seq)), forged.text(seq))
	}
	add := func(name func(string) string, content string) string {
		write(t, filepath.Join(dir, name(sumOf([]byte(content)))), content)
		return sumOf([]byte(content))
	}
	other := map[string]func(*manifest){
		"other marks": func(m *manifest) {
			m.marks = add(marksName, strings.Replace(want[marksName(pins.marks)], "661000000",
				"661000001", 1))
		},
		"marks of another session": func(m *manifest) {
			m.marks = add(marksName, strings.Replace(want[marksName(pins.marks)], "2026-11-20",
				"2026-11-21", 1))
		},
		"another counterparty": func(m *manifest) {
			m.counterparties = add(counterpartiesName,
				strings.Replace(goldenCounterparties, "ELBE", "ELSE", 2))
		},
		"a counterparty less": func(m *manifest) {
			m.counterparties = add(counterpartiesName, counterpartiesHeader+"\n")
		},
		"malformed instruments": func(m *manifest) { m.instruments = add(instrumentsName, "x") },
		"another cut": func(m *manifest) {
			m.cut = sumOf([]byte(strings.Replace(want["seq-42.cut"], "\n2,ZULU,0,", "\n2,ZULU,1,", 1)))
		},
		"other positions": func(m *manifest) { m.positions = sumOf(nil) },
		"other contracts": func(m *manifest) { m.contracts = sumOf(nil) },
	}
	for name, edit := range other {
		forge(42, edit)
		if err := rebuild("seq-42.cut"); !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	forge(42, func(*manifest) {})
	must.OK(t, rebuild("seq-42.cut"))
	// A cut under another sequence, with a manifest of its own.
	write(t, filepath.Join(dir, "seq-43.cut"), want["seq-42.cut"])
	forge(43, func(*manifest) {})
	if err := rebuild("seq-43.cut"); !errors.Is(err, ErrMismatch) {
		t.Errorf("a cut of another sequence: %v", err)
	}
}

func TestRebuildNeedsItsFiles(t *testing.T) {
	dir, want := storedCopy(t)
	out := t.TempDir()
	p, c := filepath.Join(out, "p.csv"), filepath.Join(out, "c.csv")
	for name, content := range want {
		if strings.HasSuffix(name, "42.csv") || strings.HasSuffix(name, "contracts.csv") {
			continue
		}
		must.OK(t, os.Remove(filepath.Join(dir, name)))
		err := Rebuild(filepath.Join(dir, "seq-42.cut"), p, c)
		if err == nil || errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
		write(t, filepath.Join(dir, name), content)
	}
	for _, name := range []string{"seq-042.cut", "seq-42.csv", "42.cut", "seq-.cut", "seq-+42.cut",
		"seq--42.cut"} {
		if err := Rebuild(filepath.Join(dir, name), p, c); err == nil ||
			!strings.Contains(err.Error(), "seq-<N>.cut") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Rebuild(filepath.Join(dir, "seq-42.cut"), p, p); err == nil ||
		errors.Is(err, ErrMismatch) {
		t.Errorf("one file for both: %v", err)
	}
	if err := Rebuild(filepath.Join(dir, "seq-42.cut"), p,
		filepath.Join(out, "none", "c.csv")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such folder: %v", err)
	}
}

func TestRebuildReplacesNoFile(t *testing.T) {
	dir, want := storedCopy(t)
	out := t.TempDir()
	p, c := filepath.Join(out, "p.csv"), filepath.Join(out, "c.csv")
	write(t, c, "mine")
	if err := Rebuild(filepath.Join(dir, "seq-42.cut"), p, c); !errors.Is(err, ErrMismatch) {
		t.Errorf("over another file: %v", err)
	}
	if got := files(t, out); len(got) != 1 || got["c.csv"] != "mine" {
		t.Errorf("the folder is %q", got)
	}
	cut := filepath.Join(dir, "seq-42.cut")
	if err := Rebuild(cut, cut, c); !errors.Is(err, ErrMismatch) {
		t.Errorf("over the cut: %v", err)
	}
	if got := files(t, dir); got["seq-42.cut"] != want["seq-42.cut"] {
		t.Error("the cut was replaced")
	}
}
