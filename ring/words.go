//perf:hot

//go:build !race

package ring

// Plain copies: whether a copy is whole is decided afterwards, by a stamp or a cursor.

func storeWords(dst, src []uint64) { copy(dst, src) }
func loadWords(dst, src []uint64)  { copy(dst, src) }
func copyWords(dst, src []uint64)  { copy(dst, src) }
