package journal

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// image is a journal's directory as bytes: file name to content.
type image map[string][]byte

// capture reads everything below dir.
func capture(t *testing.T, fs vfs.FS, dir string) image {
	t.Helper()
	im := image{}
	names := must.Get(fs.List(dir))(t)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info := must.Get(fs.Stat(path))(t)
		if info.IsDir() {
			for k, v := range capture(t, fs, path) {
				im[k] = v
			}
			continue
		}
		f := must.Get(fs.Open(path))(t)
		b := must.Get(io.ReadAll(f))(t)
		must.OK(t, f.Close())
		im[path] = b
	}
	return im
}

// files are the names with content, in order; the lock files hold nothing.
func (im image) files() []string {
	var names []string
	for name, b := range im {
		if len(b) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// restore writes the image into a new file system, but for changed, which gets other content.
func (im image) restore(t *testing.T, changed string, content []byte) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	for name, b := range im {
		if name == changed {
			if b = content; b == nil {
				continue
			}
		}
		must.OK(t, fs.MkdirAll(fs.PathDir(name), 0o755))
		f, err := fs.Create(name, writeCategory)
		must.OK(t, err)
		_, err = f.Write(slices.Clone(b))
		must.OK(t, err)
		must.OK(t, f.Close())
	}
	return fs
}

// damaged is a journal to damage: some history in tables, some in the log,
// snapshots, and an anchor.
type damaged struct {
	image
	flow flow
	head uint64
}

// wrecks makes the images that the damage tests start from: closed in good
// order, and killed; young has no tables yet.
func wrecks(t *testing.T) map[string]damaged {
	out := map[string]damaged{}
	for _, young := range []bool{true, false} {
		mem := vfs.NewCrashableMem()
		s := newScenario(mem, DurabilityFsync, 11)
		j := must.Get(s.open())(t)
		must.OK(t, j.Create(testGenesis))
		must.OK(t, s.commits(j, []int{1, 30, 2, 1}))
		if !young {
			must.OK(t, s.flush(j))
			must.Get(j.WriteSnapshot(j.Durable(), s.image("state"), s.image("views")))(t)
			must.OK(t, s.commits(j, []int{1, 9, 30, 5}))
			must.OK(t, s.flush(j))
		}
		must.OK(t, s.commits(j, []int{1, 12, 20, 3, 1, 2, 1}))
		name := map[bool]string{true: "young", false: "grown"}[young]
		head := s.acked.Load()
		out[name+" killed"] = damaged{capture(t, kill(mem), "j"), s.flow, head}
		must.OK(t, j.Close())
		out[name+" closed"] = damaged{capture(t, mem, "j"), s.flow, head}
	}
	return out
}

// outcome opens fs. It returns nil when everything is there, and errRefused when the journal
// refused it, at opening or when the history was read. Any other result is a failure of the
// journal.
func (d damaged) outcome(fs vfs.FS) (err error) {
	j, err := Open("j", Options{FS: fs, boot: "boot-1", Fatal: func(error) {}})
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if _, ok := j.Genesis(); !ok {
		return errors.Join(errors.New("opened as a new journal"), j.Close())
	}
	if head, _ := j.Head(); head != d.head {
		return errors.Join(fmt.Errorf("opened at %d, %d was acked", head, d.head), j.Close())
	}
	f := flow{seed: d.flow.seed, idsEvery: d.flow.idsEvery}
	err = errors.Join(compareHistory(j, &f, d.head), j.Close())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrCorrupt): // the store found the damage, also while compacting, or we did
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return fmt.Errorf("history is wrong: %w", err)
}

var errRefused = errors.New("refused")

// reasons are what a refusal of damage may be: each has a code, and a line in docs/operations.md.
var reasons = []error{
	ErrCorrupt, ErrShortened, ErrDiverged, ErrAnchorMissing, ErrAnchorDamaged, ErrCopied,
}

// survive damages one file and counts the outcome.
func (d damaged) survive(t *testing.T, file string, content []byte, what string,
	count map[string]int) {
	t.Helper()
	err := d.outcome(d.restore(t, file, content))
	switch {
	case err == nil:
		count["whole"]++
	case errors.Is(err, errRefused):
		count["refused"]++
		if len(err.Error()) < 40 || !slices.ContainsFunc(reasons,
			func(reason error) bool { return errors.Is(err, reason) }) {
			t.Errorf("%s: unclear: %v", what, err)
		}
	default:
		t.Errorf("%s: %v", what, err)
	}
}

func TestUndamagedImageOpens(t *testing.T) {
	for name, d := range wrecks(t) {
		if err := d.outcome(d.restore(t, "", nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFlippedBitsAreSurvivedOrRefused flips 200 bits in each of the four images.
func TestFlippedBitsAreSurvivedOrRefused(t *testing.T) {
	t.Logf("-args -faultseed=%d", *faultSeed)
	r := rand.New(rand.NewPCG(*faultSeed, 3))
	flips := 200
	if testing.Short() {
		flips /= 5
	}
	for name, d := range wrecks(t) {
		count := map[string]int{}
		files := d.files()
		for i := range flips {
			file := files[i%len(files)]
			b := slices.Clone(d.image[file])
			at, bit := r.IntN(len(b)), r.IntN(8)
			b[at] ^= 1 << bit
			d.survive(t, file, b, fmt.Sprintf("%s: bit %d of byte %d of %s flipped", name, bit, at, file),
				count)
		}
		t.Logf("%s: %v", name, count)
	}
}

func TestLostAndEmptyFilesAreSurvivedOrRefused(t *testing.T) {
	for name, d := range wrecks(t) {
		count := map[string]int{}
		for file := range d.image {
			d.survive(t, file, nil, name+": lost "+file, count)
			d.survive(t, file, []byte{}, name+": emptied "+file, count)
		}
		t.Logf("%s: %v", name, count)
	}
}

func TestZeroedPagesAreSurvivedOrRefused(t *testing.T) {
	for name, d := range wrecks(t) {
		count := map[string]int{}
		for file, content := range d.image {
			for at := 0; at < len(content); at += 4096 {
				b := slices.Clone(content)
				clear(b[at:min(at+4096, len(b))])
				d.survive(t, file, b, fmt.Sprintf("%s: %s zeroed from %d", name, file, at), count)
			}
		}
		t.Logf("%s: %v", name, count)
	}
}

// TestTornTailsAreRefused cuts the log at every byte of its last three commits, and zeroes it from
// there. Everything in it was acknowledged, so the journal refuses every loss.
func TestTornTailsAreRefused(t *testing.T) {
	for name, d := range wrecks(t) {
		log := ""
		for _, file := range d.files() {
			if isLog(file) {
				log = file // the last by name is the newest
			}
		}
		content := d.image[log]
		end := len(content)
		count := map[string]int{}
		step := 1
		if testing.Short() {
			step = 29
		} else if strings.HasSuffix(name, "closed") {
			step = 7
		}
		for at := end; at >= max(0, end-900); at -= step {
			d.survive(t, log, content[:at], fmt.Sprintf("%s: %s cut at %d of %d", name, log, at, end), count)
			if (end-at)%7 == 0 {
				b := slices.Clone(content)
				clear(b[at:])
				d.survive(t, log, b, fmt.Sprintf("%s: %s zeroed from %d of %d", name, log, at, end), count)
			}
		}
		if count["whole"] == 0 || count["whole"] > 60 { // nothing cut, or only the log's end mark
			t.Errorf("%s: %v", name, count)
		}
		t.Logf("%s: %v", name, count)
	}
}

// TestLostDirectoriesAreRefused removes the store, and the anchor together with the log.
func TestLostDirectoriesAreRefused(t *testing.T) {
	for name, d := range wrecks(t) {
		fs := d.restore(t, "", nil)
		must.OK(t, fs.RemoveAll(fs.PathJoin("j", storeName)))
		if err := d.outcome(fs); !errors.Is(err, errRefused) || !errors.Is(err, ErrShortened) {
			t.Errorf("%s: store removed: %v", name, err)
		}
		fs = d.restore(t, fs.PathJoin("j", anchorName), nil)
		err := d.outcome(fs)
		must.Be(t, err, ErrAnchorMissing)
		// The image is untouched by refusals: put the anchor back and all is well.
		f, err := fs.Create(fs.PathJoin("j", anchorName), writeCategory)
		must.OK(t, err)
		_, err = f.Write(slices.Clone(d.image[fs.PathJoin("j", anchorName)]))
		must.OK(t, errors.Join(err, f.Close()))
		must.OK(t, d.outcome(fs))
	}
}

// TestRefusedJournalIsLeftAsFound opens a journal with a log that has lost its end: the store alone
// would cut the log and continue.
func TestRefusedJournalIsLeftAsFound(t *testing.T) {
	d := wrecks(t)["grown killed"]
	var log string
	for _, file := range d.files() {
		if isLog(file) {
			log = file
		}
	}
	before := d.restore(t, log, d.image[log][:len(d.image[log])/2])
	for range 3 {
		_, err := Open("j", Options{FS: before, boot: "boot-1", Fatal: func(error) {}})
		must.Be(t, err, ErrShortened)
		for _, part := range []string{"last key=c/", "j/anchor", "inputSeq="} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
	}
	after := capture(t, before, "j")
	for name, b := range capture(t, d.restore(t, log, d.image[log][:len(d.image[log])/2]), "j") {
		if string(after[name]) != string(b) {
			t.Errorf("%s changed", name)
		}
	}
	if len(after) != len(d.image) {
		t.Errorf("%d files after refusals, %d before", len(after), len(d.image))
	}
}

// TestOtherHistoryIsRefused puts the anchor of one journal beside the store of another.
func TestOtherHistoryIsRefused(t *testing.T) {
	make := func(seed uint64, genesis string) image {
		fs := vfs.NewMem()
		j := must.Get(Open("j", strict(t, fs)))(t)
		must.OK(t, j.Create([]byte(genesis)))
		appendAll(t, j, &flow{seed: seed}, 5, 5)
		must.OK(t, j.Close())
		return capture(t, fs, "j")
	}
	one, two, three := make(1, "{}"), make(2, "{}"), make(1, "{ }")
	for name, other := range map[string]image{"other commands": two, "other genesis": three} {
		_, err := Open("j", strict(t, one.restore(t, "j/anchor", other["j/anchor"])))
		if !errors.Is(err, ErrDiverged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamageOfTheStoreIsCorruptAndNamesTheFile damages each file of a store that has tables. Every
// way to open the journal says which file it is.
func TestDamageOfTheStoreIsCorruptAndNamesTheFile(t *testing.T) {
	d := wrecks(t)["grown closed"]
	live := manifestOf(d.restore(t, "", nil), "j/store")
	for file, content := range d.image {
		table, options := isTable(file), strings.Contains(file, "OPTIONS")
		if !table && !options && file != live {
			continue
		}
		cut, flipped := content[:len(content)-9], slices.Clone(content)
		if table {
			flipped[len(content)-70] ^= 4 // in what the table's footer leads to
		} else if options {
			at := strings.Index(string(content), "pebble.concatenate")
			cut, flipped[at] = content[:at-3], 'P'
		}
		for how, content := range map[string][]byte{
			"lost": nil, "emptied": {}, "cut": cut, "flipped": flipped,
		} {
			if options && (how == "lost" || how == "emptied") {
				continue // nothing is lost
			}
			if file == live && (how == "cut" || how == "flipped") {
				continue // an older list of files: see explained
			}
			fs := d.restore(t, file, content)
			_, err := Open("j", Options{FS: fs, boot: "boot-1", Fatal: func(error) {}})
			_, readErr := Read("j", VerifyOptions{FS: fs, boot: "boot-1"})
			for _, err := range []error{err, readErr} {
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), file) ||
					file != live && strings.Contains(err.Error(), live) {
					t.Errorf("%s %s: %v", file, how, err)
				}
			}
		}
	}
}

// TestAnErrorOfTheDeviceIsNoDamage: a read that fails says nothing of the bytes.
func TestAnErrorOfTheDeviceIsNoDamage(t *testing.T) {
	d := wrecks(t)["grown closed"]
	for _, kind := range []errorfs.OpKind{errorfs.OpOpen, errorfs.OpFileReadAt} {
		fails := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind && strings.HasPrefix(op.Path, "j/store/0") {
				return syscall.EIO
			}
			return nil
		})
		fs := errorfs.Wrap(d.restore(t, "", nil), fails)
		_, err := Open("j", Options{FS: fs, boot: "boot-1", Fatal: func(error) {}})
		if !errors.Is(err, syscall.EIO) || Damaging(err) {
			t.Errorf("operation %d fails: %v", kind, err)
		}
	}
}
