package journal

import (
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// weigher reads on and measures the live heap at intervals.
type weigher struct {
	r       io.Reader
	read    int64
	weighed int64
	most    uint64
}

func (w *weigher) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if w.read += int64(n); w.read >= w.weighed {
		w.weighed = w.read + 8<<20
		w.most = max(w.most, heap())
	}
	return n, err
}

// heap is how many bytes are in use right now.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestAMillionCommandsAreCopiedInFlatMemory copies a journal with a stream several times as large
// as what sending and receiving may hold at any moment, however slow the disk is. The shorter copy
// is only a comparison: it would fit.
func TestAMillionCommandsAreCopiedInFlatMemory(t *testing.T) {
	commands := 1_000_000
	if testing.Short() {
		commands /= 16
	}
	root, f := t.TempDir(), flow{seed: 1, idsEvery: 10}
	o := strict(t, vfs.Default).WithCodec(CodecNone)
	j, made := openNew(t, root+"/j", o), f
	var b Block
	var last *Commit
	for int(made.inputSeq) < commands {
		var err error
		last, err = j.Append(made.block(&b, min(DefaultBlockCommands, commands-int(made.inputSeq))))
		must.OK(t, err)
	}
	must.OK(t, last.Wait())
	flushed(t, j)

	start, before := time.Now(), heap()
	tr, err := j.Transfer()
	must.OK(t, err)
	opened := time.Since(start)
	w := &weigher{r: tr}
	got, err := Receive(root+"/copy", w, o)
	must.OK(t, errors.Join(err, tr.Close()))
	if got.InputSeq != made.inputSeq || got.TradeSeq != made.tradeSeq || w.read != tr.Size() {
		t.Fatalf("received %d, %d in %d bytes of %d", got.InputSeq, got.TradeSeq, w.read, tr.Size())
	}
	t.Logf("%d bytes in %v, opened in %v; %d bytes of heap at most, %d before",
		w.read, time.Since(start), opened, w.most, before)
	// and batches, frames, tables being written
	const bound = receiveMemTables*receiveMemTable + cacheBytes + 8<<20
	if !testing.Short() && (w.most > before+bound || w.read < 2*bound) {
		t.Errorf("%d bytes of heap above what there was, for a stream of %d, want at most %d",
			w.most-before, w.read, bound)
	}
	must.OK(t, j.Close())
	c, err := Open(root+"/copy", o)
	must.OK(t, err)
	must.OK(t, errors.Join(compareHistory(c, &f, uint64(commands)), c.Close()))
}

// BenchmarkTransfer copies a journal of a million commands from disk to disk.
func BenchmarkTransfer(b *testing.B) {
	root := b.TempDir()
	o := strict(b, vfs.Default)
	j, made := openNew(b, root+"/j", o), flow{seed: 1, idsEvery: 10}
	for range 1_000_000 / DefaultBlockCommands {
		appendAll(b, j, &made, DefaultBlockCommands)
	}
	flushed(b, j)
	b.Run("op=send", func(b *testing.B) {
		for b.Loop() {
			tr, err := j.Transfer()
			must.OK(b, err)
			n, err := io.Copy(io.Discard, tr)
			must.OK(b, errors.Join(err, tr.Close()))
			b.SetBytes(n)
		}
		b.ReportMetric(float64(made.inputSeq)*float64(b.N)/b.Elapsed().Seconds(), "commands/s")
	})
	b.Run("op=copy", func(b *testing.B) {
		for b.Loop() {
			tr, err := j.Transfer()
			must.OK(b, err)
			_, err = Receive(root+"/copy", tr, o)
			must.OK(b, errors.Join(err, tr.Close(), o.FS.RemoveAll(root+"/copy")))
			b.SetBytes(tr.Size())
		}
		b.ReportMetric(float64(made.inputSeq)*float64(b.N)/b.Elapsed().Seconds(), "commands/s")
	})
	must.OK(b, j.Close())
}
