package evidence

import (
	"context"
	"fmt"

	"posttrade/journal/asof"
	"posttrade/journal/evidence/verify"
)

// Service is a running log as its readers see it. Any goroutine may use it.
type Service struct {
	*Log
	*Prover
	// keys are those of the log itself, for the check of a proof before it is handed out.
	keys verify.Keys
}

// Service returns what readers of the log need. past is the history of its journal.
func (l *Log) Service(past *asof.History) (*Service, error) {
	p, err := NewProver(past, l.o.Dir)
	if err != nil {
		return nil, err
	}
	keys, err := verify.ParseKeys([]string{l.signer.VKey}, nil)
	return &Service{Log: l, Prover: p, keys: keys}, err
}

// Tile reads the tile of a path below /log/.
func (s *Service) Tile(path string) (data []byte, full bool, err error) {
	return Tile(s.Log.dir.dir, path)
}

// Proof waits until a published head covers the record, and makes its proof. A proof that does not
// prove anything is not handed out: it says that the journal is not what was signed, and stops the
// log.
//
// Errors: ErrNotYet when ctx ends first or the log has stopped; ErrBusy; ErrUnknown;
// ErrContradiction. Cost: the replay of one leaf, and of the way to it from the nearest snapshot.
func (s *Service) Proof(ctx context.Context, at Place) ([]byte, error) {
	note, err := s.await(ctx, at.InputSeq)
	if err != nil {
		return nil, err
	}
	proof, err := s.Prove(ctx, at, note)
	if err == nil && s.ours(note) {
		if _, wrong := s.keys.Check(proof); wrong != nil {
			err = fmt.Errorf("evidence: %w: %w", wrong, ErrContradiction)
		}
	}
	if isContradiction(err) {
		s.Stop(err)
	}
	if err != nil {
		return nil, err
	}
	return proof.Append(nil), nil
}

// ours reports a head that is signed with the key in use. After a change of keys the newest head
// may still be the old one's.
func (s *Service) ours(note []byte) bool {
	_, _, err := s.keys.Open(note)
	return err == nil
}

// await waits for a published head that covers a command.
//
// A log that has stopped still gives the heads that it has published.
func (l *Log) await(ctx context.Context, inputSeq uint64) ([]byte, error) {
	for {
		l.mu.Lock()
		note, head, moved, stopped := l.note, l.head.Head, l.moved, l.state.Err
		l.mu.Unlock()
		switch {
		case note != nil && inputSeq <= head:
			return note, nil
		case stopped != nil:
			return nil, fmt.Errorf("evidence: the log has stopped: %w: %w", ErrNotYet, stopped)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, fmt.Errorf("evidence: sequence %d: %w", inputSeq, ErrNotYet)
		}
	}
}
