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
type follower struct {
	l      *Log
	shadow *journal.Shadow
	leaf   leaf.Builder
	tree   verify.Tree
	kept   *kept  // the published heads that have not been compared
	due    bool   // kept stands at one
	last   uint64 // the tree size of the last published head
}

// newFollower stands at the beginning, without an engine.
func (l *Log) newFollower(put func(level int, n uint64, w int, data []byte) error) (*follower,
	error) {
	f := &follower{l: l, tree: verify.Tree{Put: put}, last: l.published().Size}
	f.leaf.Key = l.key
	f.leaf.Full = f.tree.Add
	var err error
	if f.kept, err = openKept(l.dir); err != nil {
		return nil, err
	}
	f.due, err = f.kept.next()
	return f, err
}

func (f *follower) close() error {
	f.kept.close()
	if f.shadow == nil {
		return nil
	}
	return f.shadow.Close()
}

// genesis adds leaf 0.
func (f *follower) genesis() error {
	if err := f.tree.Add(leaf.Genesis(&f.leaf.Key, f.l.genesis)); err != nil {
		return err
	}
	return f.compareRoot()
}

// behind is the last command that the full leaves of the tree cover.
func (f *follower) behind() uint64 { return (f.tree.Size - 1) * verify.LeafCommands }

// begin makes the shadow, at the last command of the full leaves.
func (f *follower) begin(ctx context.Context) (err error) {
	at := f.behind()
	f.shadow, err = journal.NewShadow(f.l.j, f.l.o.Engine, at)
	if err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	f.leaf.StartAt(at)
	return f.shadow.Follow(ctx, at, nil)
}

// follow goes on to a command.
func (f *follower) follow(ctx context.Context, to uint64) error {
	return f.shadow.Follow(ctx, to, func(events []matcher.Event) error {
		for i := range events {
			if err := f.leaf.Take(&events[i], f.shadow.ClientID); err != nil {
				return err
			}
			if f.due && events[i].Flags&matcher.EventLast != 0 && events[i].InputSeq >= f.kept.at.Head {
				if err := f.compare(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// compare compares the published heads at the last command with the tree.
func (f *follower) compare() error {
	for f.due && f.kept.at.Head <= f.leaf.Head() {
		k := f.kept
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
	if !f.due || f.kept.at.Size != f.tree.Size {
		return nil
	}
	if root := f.tree.Root(); f.kept.at.Root != root {
		return f.kept.contradicts(fmt.Sprintf("root of %d leaves", f.tree.Size),
			fmt.Sprintf("%x", f.kept.at.Root), fmt.Sprintf("%x", root))
	}
	return f.tree.Partials(func(level int, n uint64, w int, data []byte) error {
		if n != f.last>>(verify.TileBits*(max(level, 0)+1)) {
			return nil // a full tile has taken its place
		}
		return f.tree.Put(level, n, w, data)
	})
}

func (f *follower) nextKept() (err error) {
	f.due, err = f.kept.next()
	return err
}

// put writes a tile. A full one replaces its partial ones.
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
