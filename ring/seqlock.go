//perf:hot

package ring

import "sync/atomic"

// SeqLock lets one goroutine rewrite a row of flat memory while others read it
// without ever blocking the writer. The zero SeqLock is ready for use; it may
// lie inside the row or beside it.
//
//	writer: l.Begin(); CopyIn(row, src); l.End()
//	reader: stamp, ok := l.Read(); if ok { CopyOut(dst, row) }; if ok && !l.Retry(stamp) { use dst }
//
// Rows are moved by CopyIn and CopyOut only, and a reader uses its copy only after Retry has
// returned false.
type SeqLock struct {
	v atomic.Int64 // writer: the row's writer. Odd while the row changes
}

// Begin announces that the row changes. Writer only.
func (l *SeqLock) Begin() {
	storeRelease(word(&l.v), l.v.Load()+1)
	storeFence() // odd before the first change
}

// End publishes the changed row. Writer only.
func (l *SeqLock) End() { storeRelease(word(&l.v), l.v.Load()+1) }

// Read returns the stamp of the row, and false while the row changes.
func (l *SeqLock) Read() (stamp uint64, ok bool) {
	v := l.v.Load()
	return uint64(v), v&1 == 0
}

// Retry reports that the row changed after Read returned stamp: the copy is torn.
func (l *SeqLock) Retry(stamp uint64) bool {
	loadFence() // the copy before the second look
	return uint64(l.v.Load()) != stamp
}

// CopyIn copies src into a row that others may be reading; CopyOut copies a row
// that its writer may be changing. Both move min(len(dst), len(src)) words.
func CopyIn(dst, src []uint64) { storeWords(dst, src) }

// CopyOut is the reader's half of CopyIn.
func CopyOut(dst, src []uint64) { loadWords(dst, src) }
