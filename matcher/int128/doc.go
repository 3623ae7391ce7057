// Package int128 is exact arithmetic beyond 64 bits: money in millionths times a quantity, a price
// times a time, and sums of them. Any goroutine may call it.
package int128
