package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
)

// CompareSnapshots replays the journal from its first command and from every snapshot, and compares
// state hash and views.
//
// It opens the journal for reading only, also while a server has it open, and is what posttrade
// journal verify runs last.
//
//   - hash is the state hash at the head, from the replay of everything; compared is the number of
//     snapshots that lead to it.
//   - Errors: that of an unreadable journal or snapshot, or one that names a snapshot whose replay
//     ends in another state. The command reports a mismatch then.
//   - Cost: one replay of the whole journal and one from each snapshot. One engine is in memory at
//     a time. It blocks; ctx ends it.
func CompareSnapshots(ctx context.Context, dir, archives string) (hash [32]byte, compared int,
	err error) {
	j, err := journal.Read(dir, journal.VerifyOptions{ArchiveDir: archives})
	if err != nil {
		return hash, 0, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	text, _ := j.Genesis()
	g, err := matcher.ParseGenesis(text)
	if err != nil {
		return hash, 0, err
	}
	head, _ := j.Head()
	whole, err := replayed(ctx, j, g, nil)
	if err != nil {
		return hash, 0, err
	}
	list, err := j.Snapshots()
	if err != nil {
		return hash, 0, err
	}
	for _, s := range list {
		state, err := replayed(ctx, j, g, &s)
		if errors.Is(err, fs.ErrNotExist) && journal.InUse(dir) > 0 {
			continue // newer snapshots have replaced it meanwhile
		}
		if err != nil {
			return hash, compared, fmt.Errorf("from the snapshot at sequence %d: %w", s.InputSeq, err)
		}
		if state != whole {
			return hash, compared,
				fmt.Errorf("state at sequence %d is %x from the snapshot at %d, and %x from the first command",
					head, state, s.InputSeq, whole)
		}
		compared++
	}
	return whole, compared, nil
}

// replayed is the state hash at the head, from a snapshot or from the first command.
//
// It also checks that the views agree with the engine. Their images are in the snapshots, and a
// start trusts them.
func replayed(ctx context.Context, j *journal.Journal, g *matcher.Genesis,
	s *journal.Snapshot) ([32]byte, error) {
	r, err := journal.RecoverFrom(ctx, j, RebuildFrom(g), s)
	if err != nil {
		return [32]byte{}, err
	}
	engine, views := r.Engine.(*matcher.Engine), r.Views.(asof.Image).Views
	defer engine.Close()
	defer views.Close()
	if err := views.Check(engine); err != nil {
		return [32]byte{}, err
	}
	return engine.StateHash(), nil
}
