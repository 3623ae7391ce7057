package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Recovered is the state at the journal's head. Engine and Views are the caller's, which closes
// them.
type Recovered struct {
	Engine   Engine
	Views    Views
	Snapshot uint64 // the snapshot it starts from, 0 = genesis
	Replayed uint64 // commands applied after that
}

// Recover brings an engine and its views to the journal's head, as a start needs them: from the
// newest snapshot that holds, or from genesis, and the commands after it. report gets the error of
// every snapshot that is passed over; a damaged snapshot costs time and is no reason to refuse.
//
// Cost: it reads a snapshot, and replays what came after it. It may run between Prepare and Begin:
// it changes nothing.
func Recover(ctx context.Context, j *Journal, rebuild Rebuild,
	report func(error)) (Recovered, error) {
	sh, base, err := newShadow(j, rebuild, newest, report)
	if err != nil {
		return Recovered{}, err
	}
	return sh.toHead(ctx, base.InputSeq)
}

// toHead replays what follows base and hands engine and views over. After an error it closes them.
// A replay that does not end at the head is ErrCorrupt.
func (sh *Shadow) toHead(ctx context.Context, base uint64) (_ Recovered, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, sh.Close())
		}
	}()
	head, _ := sh.j.Head()
	if sh.views != nil && head-base >= readAhead {
		err = sh.followApart(ctx, head)
	} else {
		err = sh.Follow(ctx, head, nil)
	}
	if err != nil {
		return Recovered{}, err
	}
	if at := sh.engine.AppliedSeq(); at != head {
		return Recovered{}, fmt.Errorf("journal: the history ends at inputSeq=%d, its replay at %d: %w",
			head, at, ErrCorrupt)
	}
	return Recovered{sh.engine, sh.views, base, head - base}, nil
}

// RecoverFrom is Recover from one particular snapshot, nil for genesis: it shows that every way
// leads to the same state. A snapshot that does not hold is an error.
func RecoverFrom(ctx context.Context, j *Journal, rebuild Rebuild,
	from *Snapshot) (_ Recovered, err error) {
	sh := shadowOf(j)
	start := func(_ Snapshot, state, image io.Reader) error {
		return sh.restore(rebuild, state, image)
	}
	var base uint64
	if from == nil {
		err = start(Snapshot{}, nil, nil)
	} else {
		base = from.InputSeq
		var damaged error
		err = j.offer(*from, func(err error) { damaged = err }, start)
		if err == nil {
			err = damaged
		}
	}
	if err != nil {
		return Recovered{}, err
	}
	return sh.toHead(ctx, base)
}
