package engine

import (
	"sync"

	"posttrade/matcher"
)

// seenMarkers are the extract markers among the commands that a member has been given since its
// start. Without them a reader would have to search the journal, which costs a tenth of what the
// member does, only to find that there is no marker. The zero value has seen nothing.
//
// The producer is ClusterHost.Apply, the reader the loop of the risk extracts. Markers are rare:
// the producer takes the lock only for a marker.
type seenMarkers struct {
	mu   sync.Mutex
	all  bool     // every command behind from has passed
	from uint64   // constant once all is set
	seqs []uint64 // ascending; writer: the goroutine that hands agreed commands to the matcher
}

// Begin notes that every command behind a sequence is going to pass.
//
// It is called before the node is attached, with the head of the journal: commands up to from are
// in the journal already and will not pass.
func (s *seenMarkers) Begin(from uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.from, s.seqs = true, from, nil
}

// Pass notes the markers among commands; the first command has the sequence first. It is called
// before the matcher gets the commands.
//
// Before, and not after: a reader that asks for what is durable would otherwise find no marker
// that is in the journal already.
func (s *seenMarkers) Pass(first uint64, commands []matcher.Command) {
	for i := range commands {
		if commands[i].TemplateID == matcher.TemplateRiskExtract {
			s.mu.Lock()
			s.seqs = append(s.seqs, first+uint64(i))
			s.mu.Unlock()
		}
	}
}

// Split says where there are markers between two sequences, both included. Up to seen it does not
// know: the caller has to read the journal. Behind seen the markers are those in seqs.
//
// from is at least 1. The caller reads from..seen, if that is not empty, and then each of seqs,
// which are ascending. Without a Begin, seen is to: a single node notes no markers.
func (s *seenMarkers) Split(from, to uint64) (seen uint64, seqs []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.all {
		return to, nil
	}
	for _, seq := range s.seqs {
		if seq >= from && seq <= to {
			seqs = append(seqs, seq)
		}
	}
	return min(s.from, to), seqs
}
