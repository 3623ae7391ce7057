package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/journal/transfer"
	"posttrade/ring/must"
)

// replaceable are pairs of directories: in one folder, and in two.
var replaceable = []struct{ dir, incoming string }{
	{"data/journal", "data/incoming"},
	{"data/journal", "received/incoming"},
}

// beside makes a journal of seed 2 in dir, unless old is 0, and receives the stream into incoming.
func beside(t testing.TB, fs vfs.FS, dir, incoming string, old int, stream []byte) {
	t.Helper()
	for _, d := range []string{fs.PathDir(dir), fs.PathDir(incoming)} {
		must.OK(t, errors.Join(fs.MkdirAll(d, 0o755), syncDir(fs, ".")))
	}
	if old > 0 {
		j, made := openNew(t, dir, strict(t, fs)), flow{seed: 2}
		appendAll(t, j, &made, old)
		must.OK(t, j.Close())
	}
	must.Get(Receive(incoming, bytes.NewReader(stream), strict(t, fs)))(t)
}

// replaced checks that dir holds the stream's journal and that nothing else is left.
func replaced(fs vfs.FS, dir, incoming string, f flow) error {
	j, err := Open(dir, Options{FS: fs, boot: "boot-2", Fatal: func(error) {}})
	if err != nil {
		return err
	}
	err = errors.Join(compareHistory(j, &f, 18), j.Close())
	for _, name := range []string{dir + transfer.ReplacedSuffix, incoming} {
		if _, statErr := fs.Stat(name); !notExist(statErr) {
			err = errors.Join(err, fmt.Errorf("%s is left: %v", name, statErr))
		}
	}
	return err
}

func TestReplaceSurvivesEveryCrash(t *testing.T) {
	stream, f := smallStream(t)
	for _, d := range replaceable {
		for _, old := range []int{0, 40} {
			t.Run(fmt.Sprint(d.incoming, " over ", old, " commands"), func(t *testing.T) {
				everyCrash(t, func(fs vfs.FS) { beside(t, fs, d.dir, d.incoming, old, stream) },
					func(fs vfs.FS) {
						must.OK(t, Replace(d.dir, d.incoming, fs))
					}, func(left *vfs.MemFS) error {
						for range 2 { // and once more, as every start does
							if err := Replace(d.dir, d.incoming, left); err != nil {
								return err
							}
						}
						return replaced(left, d.dir, d.incoming, f)
					})
			})
		}
	}
}

func TestReplaceFailsWithTheDisk(t *testing.T) {
	stream, f := smallStream(t)
	for _, sticky := range []bool{false, true} {
		for _, d := range replaceable {
			t.Run(fmt.Sprint(d.incoming, " sticky ", sticky), func(t *testing.T) {
				everyFailure(t, func(fs vfs.FS) { beside(t, fs, d.dir, d.incoming, 40, stream) }, sticky,
					func(fs vfs.FS, counts *errorfs.Toggle) error {
						counts.On()
						return Replace(d.dir, d.incoming, fs)
					}, func(mem *vfs.MemFS, err error) error {
						if err != nil && !errors.Is(err, syscall.EIO) {
							return err
						}
						if _, gone := mem.Stat(d.dir); gone != nil {
							if _, err := mem.Stat(d.dir + transfer.ReplacedSuffix); err != nil {
								return fmt.Errorf("neither journal is left: %w", err)
							}
						}
						for _, percent := range []int{0, 50, 100} {
							left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
								RNG: rand.New(rand.NewPCG(1, 1))})
							if err := errors.Join(Replace(d.dir, d.incoming, left),
								replaced(left, d.dir, d.incoming, f)); err != nil {
								return err
							}
						}
						return nil
					})
			})
		}
	}
}

func TestReplaceOnTheRealDisk(t *testing.T) {
	stream, f := smallStream(t)
	root := t.TempDir()
	dir, incoming := root+"/journal", root+"/incoming"
	beside(t, vfs.Default, dir, incoming, 40, stream)
	must.OK(t, Replace(dir, incoming, nil))
	must.OK(t, Replace(dir, incoming, nil))
	must.OK(t, replaced(vfs.Default, dir, incoming, f))
}

func TestReplaceWithNothingToDo(t *testing.T) {
	stream, _ := smallStream(t)
	for _, tt := range []struct {
		name string
		make func(fs vfs.FS) error
	}{
		{"no incoming", func(fs vfs.FS) error { return fs.RemoveAll("data/incoming") }},
		{"an empty incoming", func(fs vfs.FS) error {
			return errors.Join(fs.RemoveAll("data/incoming"), fs.MkdirAll("data/incoming", 0o755))
		}},
		{"an unfinished incoming", func(fs vfs.FS) error {
			f, err := fs.Create("data/incoming/"+receivingName, writeCategory)
			return errors.Join(err, f.Close())
		}},
		{"an incoming without its anchor", func(fs vfs.FS) error {
			return fs.Remove("data/incoming/" + anchorName)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			beside(t, fs, "data/journal", "data/incoming", 40, stream)
			must.OK(t, tt.make(fs))
			before := must.Get(fs.List("data"))(t)
			must.OK(t, Replace("data/journal", "data/incoming", fs))
			after := must.Get(fs.List("data"))(t)
			if len(before) != len(after) {
				t.Errorf("there was %v, now there is %v", before, after)
			}
			j := must.Get(Open("data/journal", strict(t, fs)))(t)
			must.OK(t, errors.Join(compareHistory(j, &flow{seed: 2}, 40), j.Close()))
		})
	}
}

func TestReplaceRefuses(t *testing.T) {
	stream, f := smallStream(t)
	fs := vfs.NewMem()
	dir, incoming := "data/journal", "data/incoming"
	beside(t, fs, dir, incoming, 40, stream)

	for _, name := range []string{dir, incoming} {
		j := must.Get(Open(name, strict(t, fs)))(t)
		must.Be(t, Replace(dir, incoming, fs), ErrLocked)
		must.OK(t, j.Close())
	}
	aside := dir + transfer.ReplacedSuffix
	for _, name := range []string{dir, dir + "/incoming", "data", ".", aside + "/in", aside} {
		must.Be(t, Replace(dir, name, fs), transfer.ErrReplace)
	}
	must.OK(t, errors.Join(fs.Rename(dir, aside), fs.Rename(incoming, "elsewhere")))
	err := Replace(dir, incoming, fs)
	must.Be(t, err, transfer.ErrReplace)
	if !strings.Contains(err.Error(), aside) {
		t.Errorf("the error does not name what is left: %v", err)
	}
	must.OK(t, errors.Join(fs.Rename("elsewhere", incoming), Replace(dir, incoming, fs),
		replaced(fs, dir, incoming, f)))
}
