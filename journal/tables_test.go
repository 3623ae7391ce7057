package journal

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// A journal's tables are written once: compactions move them. What they rewrite would be written a
// second time, and the tables that it replaces would be erased beside the orders' log. The store
// has the sizes of the real one divided by 16, so that memory holds hundreds of its tables.
func TestTablesAreMovedNotRewritten(t *testing.T) {
	const smaller, commits = 16, 4000
	l := newLatch(func(err error) { t.Error(err) })
	o := storeOptions(vfs.NewMem(), l, discardLogger{})
	o.MemTableSize /= smaller
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] /= smaller
	}
	var moved, rewritten atomic.Uint64
	o.EventListener.CompactionEnd = func(c pebble.CompactionInfo) {
		to := &rewritten
		if c.Reason == "move" {
			to = &moved
		}
		for _, table := range c.Output.Tables {
			to.Add(table.Size)
		}
	}
	db := must.Get(pebble.Open("store", o))(t)
	random := rand.New(rand.NewPCG(1, 2))
	payload := make([]byte, 16<<10) // of blocks whose bytes do not repeat
	for i := 0; i < len(payload); i += 8 {
		binary.LittleEndian.PutUint64(payload[i:], random.Uint64())
	}
	written := uint64(0)
	for n := range uint64(commits) {
		b := db.NewBatch()
		for prefix, size := range map[byte]int{keyCommands: 12000, keyFills: 3000, keyIDs: 1000} {
			must.OK(t, b.Set(newKey(prefix, 100*n+1), payload[:size], nil))
			written += uint64(size)
		}
		if n%1000 == 0 { // what is set and deleted between blocks, and overlaps
			must.OK(t, b.Set(newKey(keySnapshot, 100*n+1), payload[:100], nil))
			if n >= 3000 {
				must.OK(t, b.Delete(newKey(keySnapshot, 100*(n-3000)+1), nil))
			}
		}
		must.OK(t, b.Commit(pebble.NoSync))
		if n%100 == 99 { // else several memtables would become one table each
			must.OK(t, db.Flush())
		}
	}
	until(t, "a compaction", func() bool { return moved.Load() > 0 || rewritten.Load() > written/5 })
	must.OK(t, db.Close())
	if rewritten.Load() > written/5 {
		t.Errorf("of %d MiB compactions rewrote %d MiB and moved %d MiB", written>>20,
			rewritten.Load()>>20, moved.Load()>>20)
	}
}
