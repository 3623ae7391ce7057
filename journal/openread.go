package journal

import (
	"context"
	"errors"

	"posttrade/matcher"
)

// Read opens an existing journal for reading only, without a lock and without the right to write.
// While a server has the journal open, Read gives the history up to some moment after the call;
// Head says up to which sequence. The commands in the tail are part of it. Errors: ErrNoGenesis,
// and whatever Open refuses.
//
// The journal that it returns can be replayed and exported, by any number of goroutines, until
// Close. Whatever would write returns ErrReading. It keeps the store's tables open, so what a
// server removes meanwhile stays readable, and takes its room until Close.
func Read(dir string, o VerifyOptions) (*Journal, error) {
	s, err := openView(dir, &o)
	if err != nil {
		return nil, withCopied(err, o.FS, dir)
	}
	j := newJournal(dir, Options{FS: s.view, Logger: discardLogger{}, boot: o.boot,
		Fatal: func(error) {}})
	j.latch = s.latch
	j.found = finding{
		store: true, created: true, db: s.db, genesis: s.genesis, seed: hashOf(s.genesis), tail: s.tail,
	}
	j.db = s.db
	err = s.follows(j.found.seed)
	if err == nil {
		j.found.head, err = checkTail(s.db, j.found.seed, s.anchor, s.view.PathJoin(dir, anchorName))
	}
	if err == nil && s.tail != nil {
		err = s.tail.compare(s.db, j.found.seed, j.found.head, o.boot)
	}
	if err != nil {
		return nil, withCopied(errors.Join(s.explained(err), j.Close()), o.FS, dir)
	}
	j.copied = copied(o.FS, dir)
	j.show()
	return j, nil
}

// behindStore gives the part of [from, to] that only the tail has, while the journal is open for
// reading only. Commits are made from the tail's frames in memory; they have no chain.
func (j *Journal) behindStore(ctx context.Context, from, to uint64, fn func(*decoded) error) error {
	return j.found.tail.commits(j.found.head, func(d *decoded) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if d.last() < from || d.first > to {
			return nil
		}
		d.cut(from, to)
		return fn(d)
	})
}

// fillsBehindStore is behindStore for fills.
func (j *Journal) fillsBehindStore(from uint64, fn func([]matcher.Fill) error) error {
	return j.found.tail.commits(j.found.head, func(d *decoded) error {
		fills := d.fills
		if len(fills) == 0 || fills[len(fills)-1].TradeSeq < from {
			return nil
		}
		if first := fills[0].TradeSeq; first < from {
			fills = fills[from-first:]
		}
		return fn(fills)
	})
}

// storeHead limits a head to what the store has. That is less than Head only before Begin, and in a
// journal that Read has opened: what the tail alone has is then given from memory.
func (j *Journal) storeHead(inputSeq, tradeSeq uint64) (uint64, uint64) {
	if j.found.tail == nil {
		return inputSeq, tradeSeq
	}
	return min(inputSeq, j.found.head.inputSeq), min(tradeSeq, j.found.head.tradeSeq)
}
