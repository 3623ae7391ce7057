// Package lines turns the events of an engine into the lines of the regulatory report; package
// audit says what they hold. It knows no journal, so verifiers that have only events use it too, in
// a browser as well.
//
// A Printer belongs to one goroutine.
package lines
