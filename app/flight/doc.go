// Package flight saves the last second of the execution trace when a stage of the path was
// slow: a flight recorder.
//
// One goroutine runs a Recorder. It looks at sequences and at the commit histogram, which
// their owners keep anyway, so the path does nothing for it and its times are lower bounds.
// At most one file a minute is written, and the newest ten are kept.
//
// ProfileContention turns the mutex and block profiles on and off.
package flight
