package evidence

import (
	"time"
)

// State is how far a log has come. It is a copy: nothing in it changes later. Metrics and /readyz
// show it.
type State struct {
	Size     uint64 // leaves of the tree
	Head     uint64 // the last command in the tree or the open leaf
	Signed   uint64 // the last command that a published head covers
	Cosigned uint64 // the last that a published head with its cosignatures covers
	// Behind is since when stable commands wait that no published head covers; zero: none do.
	Behind time.Time
	// Checked: the whole history has been compared with the files since the start.
	Checked bool
	// Differs names members with another tree or snapshot, and where they differ.
	Differs []string
	// Err is why the log has stopped, for good; nil: it has not.
	Err error
	// Divergences counts the contradictions found in files, and members with another history.
	Divergences uint64
	Failed      error // the last failure that is being tried again; nil: none
}

// late notes that nothing is signed from now on. Of several calls in a row the first one counts.
func (s *State) late() {
	if s.Behind.IsZero() {
		s.Behind = time.Now()
	}
}

// onTime notes that all there is to sign is signed. A log that has stopped stays late: its recheck
// may stop it while the loop signs.
func (s *State) onTime() {
	if s.Err == nil {
		s.Behind = time.Time{}
	}
}

// State is how far the log has come.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// change changes the state under mu. f must not block or call the Log.
func (l *Log) change(f func(*State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.state)
}
