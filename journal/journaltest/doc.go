// Package journaltest gives tests of other packages a disk below the journal and the
// consensus log that fails, or hangs, when a test says so. It is the real one otherwise.
package journaltest
