package quorum

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"posttrade/ring/must"
)

// BenchmarkLogStore appends batches to a log on the disk, and reads what was
// appended last.
func BenchmarkLogStore(b *testing.B) {
	for _, batch := range []uint64{1, 16} {
		for _, size := range []int{64, 4096, 65536} {
			b.Run(fmt.Sprintf("op=append/batch=%d/size=%d", batch, size), func(b *testing.B) {
				s := benchLog(b)
				data, next := make([]byte, size), uint64(1)
				b.SetBytes(int64(batch) * int64(size))
				b.ReportAllocs()
				for b.Loop() {
					logs := make([]*raft.Log, batch)
					for i := range logs {
						logs[i] = &raft.Log{Index: next, Term: 1, Data: data}
						next++
					}
					must.OK(b, s.StoreLogs(logs))
					if next%1024 < batch { // compaction, at the pace of the appends
						must.OK(b, s.DeleteRange(1, next-min(next, 512)))
					}
				}
			})
		}
	}
	b.Run("op=read/tail", func(b *testing.B) {
		s := benchLog(b)
		must.OK(b, s.StoreLogs(logEntries(1, 1000, 1)))
		var l raft.Log
		for i := uint64(0); b.Loop(); i++ {
			must.OK(b, s.GetLog(1+i%1000, &l))
		}
	})
	b.Run("op=read/store", func(b *testing.B) {
		s := benchLog(b)
		must.OK(b, s.StoreLogs(logEntries(1, 1000, 1)))
		s.tail = newLogTail(1, 1)
		var l raft.Log
		for i := uint64(0); b.Loop(); i++ {
			must.OK(b, s.GetLog(1+i%1000, &l))
		}
	})
}

func benchLog(b *testing.B) *logStore {
	s := must.Get(openLogStore(b.TempDir(), logStoreOptions{}))(b)
	b.Cleanup(func() { must.OK(b, s.Close()) })
	return s
}
