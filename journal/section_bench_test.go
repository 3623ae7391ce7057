package journal

import (
	"bytes"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// BenchmarkBackup is the two sides of a backup: reading the stream of a journal on the disk, and
// checking it. The time of a run is that of one stream of about 64 MiB.
func BenchmarkBackup(b *testing.B) {
	j := openNew(b, b.TempDir()+"/j", strict(b, vfs.Default))
	f := flow{seed: 1, idsEvery: 3}
	for range 320 {
		appendAll(b, j, &f, 8192)
	}
	must.OK(b, j.db.Flush())
	stream, _, _ := streamOf(b, j)
	b.Run("op=read", func(b *testing.B) {
		b.SetBytes(int64(len(stream)))
		for b.Loop() {
			t := must.Get(j.Transfer())(b)
			must.OK(b, second(io.CopyBuffer(struct{ io.Writer }{io.Discard}, t, make([]byte, 256<<10))))
			must.OK(b, t.Close())
		}
	})
	b.Run("op=check", func(b *testing.B) {
		b.SetBytes(int64(len(stream)))
		for b.Loop() {
			must.OK(b, second(CheckStream(bytes.NewReader(stream), j.Seed(), Point{})))
		}
	})
	must.OK(b, j.Close())
}
