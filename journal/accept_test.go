package journal

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// unaccepted is a journal that only AcceptHistory opens, and the history that it then has.
type unaccepted struct {
	image
	flow flow
	head uint64
	tail string // where its tail is afterwards
}

// unacceptedJournals: one whose tail is none, and one whose anchor is lost and whose tail goes on.
func unacceptedJournals(t *testing.T) map[string]unaccepted {
	d := wrecks(t)["grown killed"]
	foreign := d.restore(t, "j/anchor", nil)
	must.OK(t, putFile(foreign, "j/tail", []byte("not a tail")))
	l := leave(t, withLog)
	lost := l.with(t, l.tail)
	must.OK(t, lost.Remove("j/anchor"))
	return map[string]unaccepted{
		"a tail that is none": {capture(t, foreign, "j"), d.flow, d.head, "j/tail.refused"},
		"a tail that goes on": {capture(t, lost, "j"), *l.flow, leftStored + leftAhead, "j/tail"},
	}
}

// into writes the journal, with durable names; and, with put=putFile, durable bytes.
func (u *unaccepted) into(t *testing.T, fs vfs.FS, put func(vfs.FS, string, []byte) error) {
	for name, b := range u.image {
		must.OK(t, fs.MkdirAll(fs.PathDir(name), 0o755))
		must.OK(t, put(fs, name, b))
	}
	for _, dir := range []string{"j/store", "j/snapshots", "j", ""} {
		if _, err := fs.Stat(dir); err == nil {
			must.OK(t, syncDir(fs, dir))
		}
	}
}

// kept checks that nothing of the journal has been lost: what is missing or different is only the
// anchor and a tail that was set aside, and a copy has them.
func (u *unaccepted) kept(fs vfs.FS) error {
	for name, want := range u.image {
		got, err := readWhole(fs, name)
		if err == nil && string(got) == string(want) {
			continue
		}
		copied, err2 := readWhole(fs, "j/accepted-1/"+strings.TrimPrefix(name, "j/"))
		if name != "j/anchor" && name != "j/tail" || err2 != nil || string(copied) != string(want) {
			return fmt.Errorf("%s is not as it was (%v), and no copy has it (%v)", name, err, err2)
		}
	}
	return nil
}

// again accepts what a failure or a crash has left, and opens it.
func (u *unaccepted) again(t *testing.T, left vfs.FS) error {
	if err := u.kept(left); err != nil {
		return err
	}
	if err := accepted(t, left); err != nil {
		return fmt.Errorf("accept again: %w", err)
	}
	if _, err := left.Stat(u.tail); err != nil {
		return err
	}
	f := u.flow
	_, err := recovered(left, "boot-1", *f.begin(), u.head, u.head)
	return err
}

// accepted calls AcceptHistory.
func accepted(t *testing.T, fs vfs.FS) error {
	_, err := AcceptHistory(t.Context(), "j", VerifyOptions{FS: fs, boot: "boot-1"})
	return err
}

// TestAcceptFailsWithTheDisk: whichever operation fails, once or from then on, nothing is lost, and
// AcceptHistory can be called again, at once and after a power cut.
func TestAcceptFailsWithTheDisk(t *testing.T) {
	for name, u := range unacceptedJournals(t) {
		for _, sticky := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " sticky ", sticky), func(t *testing.T) {
				everyFailure(t, func(fs vfs.FS) { u.into(t, fs, putFile) }, sticky,
					func(fs vfs.FS, counts *errorfs.Toggle) error {
						counts.On()
						defer counts.Off()
						return accepted(t, fs)
					}, func(mem *vfs.MemFS, err error) error {
						if err != nil && !errors.Is(err, syscall.EIO) {
							return err
						}
						if err != nil && u.image.same(capture(t, mem, "j")) == nil {
							return nil // it has changed nothing
						}
						left := mem.CrashClone(vfs.CrashCloneCfg{})
						if err := u.again(t, left); err != nil {
							return fmt.Errorf("after a power cut: %w", err)
						}
						return u.again(t, mem)
					})
			})
		}
	}
}

// TestAcceptSurvivesACrashAnywhere: after a power cut at any moment AcceptHistory can be called
// again.
func TestAcceptSurvivesACrashAnywhere(t *testing.T) {
	for name, u := range unacceptedJournals(t) {
		t.Run(name, func(t *testing.T) {
			everyCrash(t, func(fs vfs.FS) { u.into(t, fs, putFile) }, func(fs vfs.FS) {
				must.OK(t, accepted(t, fs))
			}, func(left *vfs.MemFS) error { return u.again(t, left) })
		})
	}
}

// TestWhatIsAcceptedIsDurable: the store's bytes were in the system's memory alone when they were
// read, and a power cut follows the answer.
func TestWhatIsAcceptedIsDurable(t *testing.T) {
	d := wrecks(t)["grown killed"]
	lost := d.restore(t, "j/anchor", nil)
	u := unaccepted{image: capture(t, lost, "j"), flow: d.flow, head: d.head}
	mem := vfs.NewCrashableMem()
	u.into(t, mem, func(fs vfs.FS, name string, b []byte) error {
		f, err := fs.Create(name, writeCategory)
		if err == nil {
			_, err = f.Write(b)
			err = errors.Join(err, f.Close())
		}
		return err
	})
	must.OK(t, accepted(t, mem))
	f := u.flow
	_, err := recovered(mem.CrashClone(vfs.CrashCloneCfg{}), "boot-2", *f.begin(), u.head, u.head)
	must.OK(t, err)
}
