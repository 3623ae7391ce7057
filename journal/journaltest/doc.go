// Package journaltest gives tests of other packages a disk below the journal and the
// consensus log that fails, or hangs, when a test says so. It is the real one otherwise.
//
// Disk calls the test's function before each operation; what it returns is the operation's error. A
// function that blocks is a disk that hangs.
package journaltest
