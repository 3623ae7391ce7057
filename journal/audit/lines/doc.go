// Package lines turns the events of an engine into the lines of the regulatory report; package
// audit says what they hold. It knows no journal, so verifiers that have only events use it too, in
// a browser as well.
//
//	events of whole commands ─► Printer ─► pages of at most ChunkBytes ─► the caller
//	                               └─► number of records, SHA-256 over all lines
//
// What holds: the lines are a function of the events and of the names of the securities that are
// registered before the first one (Know), byte for byte the same on every machine. A page ends at
// the end of a line. A Printer that starts in the middle of a history prints what one that started
// at the genesis prints from there on.
//
// The only error is the one of the caller's chunk, which ends the report. A Printer belongs to one
// goroutine.
package lines
