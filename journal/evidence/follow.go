package evidence

import (
	"context"
	"fmt"
	"os"

	"posttrade/journal"
	"posttrade/journal/evidence/leaf"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// follower builds the tree of a journal with a shadow engine, and compares everything that is on
// the disk already. One goroutine owns it.
//
// Its parts go on together: the shadow decides a command, the leaf takes its events, the tree takes
// the leaf when it is full, and each head in kept is compared when the leaf has come to its
// command.
type follower struct {
	l *Log
	// shadow is without views; nil until begin.
	shadow *journal.Shadow
	// leaf has the records of the open leaf, tree the full leaves.
	leaf leaf.Builder
	tree verify.Tree
	// kept has the published heads that have not been compared yet.
	published *headFile
	// due: kept stands at one.
	due bool
	// last is the tree size of the last published head: partial tiles are needed only for that one.
	last uint64
}

// newFollower stands at the beginning, without an engine. put is given every tile when it is full,
// and partial ones when a head needs them.
func (l *Log) newFollower(put func(level int, n uint64, w int, data []byte) error) (*follower,
	error) {
	f := &follower{l: l, tree: verify.Tree{Put: put}, last: l.published().Size}
	f.leaf.Key = l.key
	f.leaf.Full = f.tree.Add
	var err error
	if f.published, err = openHeadFile(l.dir); err != nil {
		return nil, err
	}
	f.due, err = f.published.next()
	return f, err
}

// close frees the shadow and the file of heads. Nothing that was published depends on either.
func (f *follower) close() error {
	f.published.close()
	if f.shadow == nil {
		return nil
	}
	return f.shadow.Close()
}

// genesis adds leaf 0. A tree that was fed from the entries has it already.
func (f *follower) genesis() error {
	if err := f.tree.Add(leaf.Genesis(&f.leaf.Key, f.l.genesis)); err != nil {
		return err
	}
	return f.compareRoot()
}

// behind is the last command that the full leaves of the tree cover.
func (f *follower) behind() uint64 { return (f.tree.Size - 1) * verify.LeafCommands }

// begin makes the shadow, at the last command of the full leaves.
//
// The open leaf, at most 255 commands, is replayed by the next follow: it is in no file.
func (f *follower) begin(ctx context.Context) (err error) {
	at := f.behind()
	f.shadow, err = journal.NewShadow(f.l.j, f.l.o.Engine, at)
	if err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	f.leaf.StartAt(at)
	return f.shadow.Follow(ctx, at, nil)
}

// follow goes on to a command. Heads are compared at the last event of the command that they cover,
// because the open leaf has the root of the head only then.
func (f *follower) follow(ctx context.Context, to uint64) error {
	return f.shadow.Follow(ctx, to, func(events []matcher.Event) error {
		for i := range events {
			if err := f.leaf.Take(&events[i], f.shadow.ClientID); err != nil {
				return err
			}
			if f.due && events[i].Flags&matcher.EventLast != 0 && events[i].InputSeq >= f.published.at.Head {
				if err := f.compare(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// compare compares the published heads at the last command with the tree.
//
// A head of an earlier command is passed over.
func (f *follower) compare() error {
	for f.due && f.published.at.Head <= f.leaf.Head() {
		k := f.published
		if k.at.Origin != f.l.o.Origin {
			return k.contradicts("origin", k.at.Origin, f.l.o.Origin)
		}
		if k.at.Head == f.leaf.Head() {
			if root := f.leaf.Root(); k.at.HeadRoot != root {
				return k.contradicts("head", fmt.Sprintf("%x", k.at.HeadRoot), fmt.Sprintf("%x", root))
			}
			if err := f.compareRoot(); err != nil {
				return err
			}
		}
		if err := f.nextKept(); err != nil {
			return err
		}
	}
	return nil
}

// compareRoot compares the root of a published head of this size, and makes its partial tiles.
func (f *follower) compareRoot() error {
	if !f.due || f.published.at.Size != f.tree.Size {
		return nil
	}
	if root := f.tree.Root(); f.published.at.Root != root {
		return f.published.contradicts(fmt.Sprintf("root of %d leaves", f.tree.Size),
			fmt.Sprintf("%x", f.published.at.Root), fmt.Sprintf("%x", root))
	}
	return f.tree.Partials(func(level int, n uint64, w int, data []byte) error {
		if n != f.last>>(verify.TileBits*(max(level, 0)+1)) {
			return nil // a full tile has taken its place
		}
		return f.tree.Put(level, n, w, data)
	})
}

// nextKept goes on to the next published head.
func (f *follower) nextKept() (err error) {
	f.due, err = f.published.next()
	return err
}

// put writes a tile. A full one replaces its partial ones, which no reader of a newer head asks
// for.
func (l *Log) put(level int, n uint64, w int, data []byte) error {
	name := verify.TilePath(level, n, w)
	if err := l.dir.put(name, data); err != nil {
		return err
	}
	if w < verify.TileHashes {
		return nil
	}
	if err := l.dir.before(); err != nil {
		return err
	}
	if err := os.RemoveAll(l.dir.path(name + ".p")); err != nil {
		return fmt.Errorf("evidence: remove: %w", err)
	}
	return nil
}
