package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// onDisk are options with the system's disk and a real file.
func onDisk(t testing.TB, durability string) Options {
	return Options{Durability: durability, Tail: true, Fatal: func(err error) { t.Error(err) }}
}

// TestTailOnDisk opens copies of a directory with a journal in use.
func TestTailOnDisk(t *testing.T) {
	for _, durability := range []string{DurabilityOS, DurabilityFsync} {
		t.Run(durability, func(t *testing.T) { copiesOfOpenJournal(t, durability) })
	}
}

func copiesOfOpenJournal(t *testing.T, durability string) {
	dir := t.TempDir()
	j := openNew(t, filepath.Join(dir, "j"), onDisk(t, durability))
	f := &flow{seed: 4, idsEvery: 2}
	for i := range 5 {
		b := &Block{}
		publishAll(t, j, f, b, 100)
		j.told(t, f.inputSeq)
		if i%2 == 1 {
			must.Get(j.Append(b))(t)
			j.Head()
		} else {
			must.Get(j.Append(b))(t)
		}
		to := filepath.Join(dir, fmt.Sprint("copy-", i))
		for _, name := range []string{"tail", "anchor"} { // what comes first may be older
			b := must.Get(os.ReadFile(filepath.Join(dir, "j", name)))(t)
			must.OK(t, os.MkdirAll(to, 0o755))
			must.OK(t, os.WriteFile(filepath.Join(to, name), b, 0o644))
		}
		must.OK(t, os.CopyFS(filepath.Join(to, "store"), os.DirFS(filepath.Join(dir, "j", "store"))))
		c := must.Get(Open(to, onDisk(t, durability)))(t)
		expectHistory(t, c, f, f.inputSeq)
		must.OK(t, c.Close())
	}
	must.OK(t, j.Close())
	if _, err := mapTail(vfs.Default, filepath.Join(dir, "none", "tail"), 4096,
		durability == DurabilityFsync); err == nil {
		t.Error("a file in no directory is mapped")
	}
}

// FuzzTailIsReadWithoutHarm changes a tail and makes its checksums right. The tail is read to some
// end or refused, and what is read is what a tail may hold.
func FuzzTailIsReadWithoutHarm(f *testing.F) {
	l := leave(f, withTail)
	base := must.Get(parseTail(l.tail, "tail"))(f)
	f.Add(uint16(0), uint16(40), uint32(7), true)
	f.Add(uint16(3), uint16(52), uint32(1<<30), true)
	f.Add(uint16(5), uint16(24), uint32(1), true)
	f.Add(uint16(1), uint16(64), uint32(9), false)
	f.Fuzz(func(t *testing.T, which, at uint16, value uint32, sealed bool) {
		tail := bytes.Clone(l.tail)
		p := &base.frames[int(which)%len(base.frames)]
		size := tailFrame + len(p.records) + len(p.fills) + len(p.ids.raw)
		frame := tail[p.offset : p.offset+size]
		binary.LittleEndian.PutUint32(frame[int(at)%(size-4):], value)
		if sealed {
			binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:], castagnoli))
		}
		image, err := parseTail(tail, "tail")
		if err != nil {
			return
		}
		head := point{inputSeq: leftStored, tradeSeq: base.frames[0].link}
		for i := range image.frames {
			if image.frames[i].last() == leftStored {
				head.tradeSeq = image.frames[i].lastTrade()
			}
		}
		if _, err := image.reach(head, "boot-2"); err != nil {
			return
		}
		next := head.inputSeq
		must.OK(t, image.commits(head, func(d *decoded) error {
			if d.first != next+1 || d.link != head.tradeSeq+1 {
				return fmt.Errorf("commit %d after %d", d.first, next)
			}
			next, head.tradeSeq = d.last(), d.lastTrade()
			return d.ids.check(d.last(), d.envelope.ids)
		}))
		if next != image.end(leftStored) {
			t.Fatalf("ends at %d, want %d", next, image.end(leftStored))
		}
	})
}

// TestALogNeedsPagesOfItsOwn: where marks and writes would share a page, answers wait for the
// store.
func TestALogNeedsPagesOfItsOwn(t *testing.T) {
	for page, want := range map[int]bool{
		4 << 10: true, 8 << 10: true, 16 << 10: false, 64 << 10: false,
	} {
		if got := tailFits(DurabilityFsync, page); got != (want && hasTail) {
			t.Errorf("fsync, pages of %d bytes: %v", page, got)
		}
		if tailFits(DurabilityOS, page) != hasTail {
			t.Errorf("os, pages of %d bytes", page)
		}
	}
}
