package evidence

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"posttrade/journal/evidence/verify"
	"posttrade/ring/must"
)

// folderOf is the files of a log as a verifier reads them.
func folderOf(files map[string]string) (names []string, read verify.Read) {
	for name := range files {
		if strings.HasPrefix(name, "tile/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
}

// notesOf are the heads that a log has published.
func notesOf(files map[string]string) (notes []string) {
	for _, text := range strings.SplitAfter(files[checkpointsName], "=\n\n") {
		if text != "" {
			notes = append(notes, strings.TrimSuffix(text, "\n"))
		}
	}
	return notes
}

// wantBlame requires a Refusal that blames something.
func wantBlame(t *testing.T, what string, err error, blames string) {
	t.Helper()
	var r *verify.Refusal
	if !errors.As(err, &r) || r.Blames != blames {
		t.Errorf("%s: %v, want a refusal that blames %s", what, err, blames)
	}
}

// TestEveryKeptHeadIsAPrefix compares every published head with the log, and every one with every
// later one.
func TestEveryKeptHeadIsAPrefix(t *testing.T) {
	v := bigVenue(t, 10)
	files := v.files()
	names, read := folderOf(files)
	l := v.log()
	keys := v.keys(l)
	notes := notesOf(files)
	if len(notes) < 7 {
		t.Fatalf("%d heads", len(notes))
	}
	for i, old := range notes {
		if _, err := keys.Folder([]byte(old), names, read); err != nil {
			t.Errorf("head %d: %v", i, err)
		}
		for k, newer := range notes {
			x, err := keys.Extends([]byte(old), []byte(newer), read)
			switch {
			case k >= i && err != nil:
				t.Errorf("heads %d and %d: %v", i, k, err)
			case k >= i && (x.Upto > x.Old.Head || x.Old.Head-x.Upto > 255):
				t.Errorf("heads %d and %d: %+v", i, k, x)
			case k < i:
				wantBlame(t, "a cut tail", err, verify.BlameLog)
			}
		}
	}
}

// TestEveryFlippedByteOfALogIsFound flips a bit in bytes of every tile and of the head.
func TestEveryFlippedByteOfALogIsFound(t *testing.T) {
	v := bigVenue(t, 11)
	files := v.files()
	l := v.log()
	keys := v.keys(l)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != checkpointName && !strings.HasPrefix(name, "tile/") {
			continue
		}
		for i := 0; i < len(files[name]); i += 1 + len(files[name])/40 {
			changed := maps.Clone(files)
			bad := []byte(files[name])
			bad[i] ^= 1 << (i % 8)
			changed[name] = string(bad)
			names, read := folderOf(changed)
			_, err := keys.Folder(nil, names, read)
			var r *verify.Refusal
			if !errors.As(err, &r) {
				t.Errorf("%s byte %d: %v", name, i, err)
			}
		}
		changed := maps.Clone(files)
		delete(changed, name)
		names, read := folderOf(changed)
		if _, err := keys.Folder(nil, names, read); err == nil && !strings.Contains(name, ".p/") {
			t.Errorf("%s is missing, and all is proven", name)
		}
	}
}

// TestTwoHistoriesOfOneKeyAreFound: a log that was rewritten and signed again with the same key
// contradicts every head that a reader has kept.
func TestTwoHistoriesOfOneKeyAreFound(t *testing.T) {
	v := newVenue(t, 12)
	v.trade(3000)
	v.keep(v.log())
	w := v.rewritten(100)
	must.OK(t, removeAllBut(w.logDir(), keyName))
	w.trade(500)
	w.keep(w.log())
	l := v.log()
	keys := v.keys(l)
	old := v.files()[checkpointName]
	names, read := folderOf(w.files())
	_, err := keys.Folder([]byte(old), names, read)
	wantBlame(t, "the folder", err, verify.BlameLog)
	_, err = keys.Extends([]byte(old), []byte(w.files()[checkpointName]), read)
	wantBlame(t, "the heads", err, verify.BlameLog)
	if !bytes.Contains([]byte(fmt.Sprint(err)), []byte("rewritten")) {
		t.Error(err)
	}
}

// TestRootUpToACommand: what an archive keeps of the tree is the root over the leaves before it.
func TestRootUpToACommand(t *testing.T) {
	v := newVenue(t, 16)
	v.trade(1500)
	if root, err := RootUpTo(v.logDir(), 1); root != "" || err != nil {
		t.Errorf("without a log: %q, %v", root, err)
	}
	l := v.log()
	v.keep(l)
	head, _ := v.j.Head()
	for _, seq := range []uint64{1, 255, 256, 511, 700, head} {
		said := must.Get(l.MemberTree(1 + seq/verify.LeafCommands))(t)
		want := must.Get(base64.StdEncoding.DecodeString(said.Root))(t)
		if got, err := RootUpTo(v.logDir(), seq); err != nil || got != hex.EncodeToString(want) {
			t.Errorf("up to %d: %s, %v; want %x", seq, got, err, want)
		}
	}
	if root, err := RootUpTo(v.logDir(), head+verify.LeafCommands); root != "" || err != nil {
		t.Errorf("beyond the newest head: %q, %v", root, err)
	}
	must.OK(t, os.Truncate(l.dir.path(verify.TilePath(0, 0, int(l.State().Size))), 32))
	if root, err := RootUpTo(v.logDir(), 700); err == nil {
		t.Errorf("a cut tile gives %s", root)
	}
}

// TestTheRestOfAWiderTileIsNamed: a copy of a running log has tiles that go on behind its head, and
// nothing leads to what is behind it.
func TestTheRestOfAWiderTileIsNamed(t *testing.T) {
	v := newVenue(t, 44)
	v.trade(1000)
	v.keep(v.log())
	files, keys := v.files(), v.keys(v.log())
	var wide []string
	for _, name := range []string{"tile/0/000.p/", "tile/entries/000.p/"} {
		unit := len(files[name+"4"]) / 4
		files[name+"9"] = files[name+"4"] + strings.Repeat("x", 5*unit)
		wide = append(wide, name+"9")
	}
	names, read := folderOf(files)
	x, err := keys.Folder(nil, names, read)
	if err != nil || !slices.Equal(x.Behind, wide) {
		t.Errorf("%q %v, want %q", x.Behind, err, wide)
	}
	files[wide[0]] = "x" + files[wide[0]][1:]
	_, err = keys.Folder(nil, names, read)
	wantBlame(t, "the part that is covered", err, verify.BlameTiles)
}

// TestAHeadThatIsHalfWrittenIsTakenBack: the disk is full in the middle of a note. The next one
// follows the last whole one.
func TestAHeadThatIsHalfWrittenIsTakenBack(t *testing.T) {
	v := newVenue(t, 43)
	v.trade(10)
	v.keep(v.log())
	dir := folder{dir: v.logDir()}
	note := must.Get(os.ReadFile(dir.path(checkpointName)))(t)
	before := must.Get(os.ReadFile(dir.path(checkpointsName)))(t)
	full := true
	dir.step = func() error {
		if full {
			full = false
			return syscall.ENOSPC
		}
		return nil
	}
	if err := keep(dir, note); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if got := must.Get(os.ReadFile(dir.path(checkpointsName)))(t); !bytes.Equal(got, before) {
		t.Errorf("%d bytes are left, %d before", len(got), len(before))
	}
	must.OK(t, keep(dir, note))
	if got := must.Get(os.ReadFile(dir.path(checkpointsName)))(t); !bytes.Equal(got,
		append(append(before, note...), '\n')) {
		t.Error("the next note does not follow the last whole one")
	}
}
