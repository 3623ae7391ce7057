// Package timing counts durations for monitoring.
//
// A [Latency] is written by any goroutine of the path of an order, at the cost of two atomic adds.
// A scrape reads it as a [Distribution], which has two forms of the same counts: a native histogram
// of four buckets to an octave, and the classic buckets of [Bounds], the same in every histogram of
// the process, for monitoring systems that do not take native ones. Both are exact: a native bucket
// in which a classic bound lies is counted in two parts.
package timing
