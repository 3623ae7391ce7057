// Package scenariotest plays scenario files. A file is a script that a trader can read, a line of
// dashes, and what the script must give.
//
//	order buy 10 @ 101
//	----
//	accepted ord-1
//
// A package that has scenarios says what its lines mean and hands in a player; each file is a test
// of its own, named after the file. Lines that begin with # are remarks.
package scenariotest
