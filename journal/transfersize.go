package journal

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"posttrade/journal/transfer"
)

// TransferSize is about the size of a Transfer that is opened now, in bytes: it reads no snapshot,
// and takes the newest one's size from its manifest. Cost: that of counting, a search for each
// table. Errors are those of Transfer, so nil says that all of the history can be read from here.
func (j *Journal) TransferSize() (uint64, error) {
	if err := j.share(); err != nil {
		return 0, err
	}
	defer j.reading.RUnlock()
	t := &Transfer{j: j}
	j.mu.Lock()
	t.head = j.safe
	j.mu.Unlock()
	list, _, err := listSnapshots(j.db)
	if err != nil {
		return 0, err
	}
	if len(list) > 0 {
		t.parts = append(t.parts, snapshotFrame{length: list[0].State.Bytes})
		if list[0].Views != nil {
			t.parts = append(t.parts, snapshotFrame{length: list[0].Views.Bytes})
		}
	}
	err = t.measure()
	return uint64(t.size), err
}

// measure counts the bytes of the stream. Everything that is in it exists by now, and none of it
// changes, so the count is exact; end compares it with what was made.
func (t *Transfer) measure() error {
	size := int64(t.w.Len()) + transfer.EndBytes
	for _, p := range t.parts {
		size += transfer.FrameBytes + int64(len(p.body)) + p.length
	}
	for _, kind := range []byte{keyCommands, keyFills, keyIDs} {
		before, last := t.base.inputSeq, t.head.inputSeq
		if kind == keyFills {
			before, last = t.base.tradeSeq, t.head.tradeSeq
		}
		x, err := measureBlocks(t.j.db, kind, before+1, last)
		if err != nil {
			return err
		}
		size += int64(x.blocks*transfer.FrameBytes + x.bytes)
	}
	t.size = size
	return nil
}

// extent is a number of blocks, and the number of bytes of their values.
type extent struct{ blocks, bytes uint64 }

func (x *extent) add(y extent) {
	x.blocks += y.blocks
	x.bytes += y.bytes
}

// measureBlocks counts the blocks of a kind from the one that begins with sequence first up to the
// one that holds sequence last, archive by archive and then in the store. The tables know how much
// they hold. Only the keys between the tables that are wholly in the range, and behind those
// tables, are read one by one.
func measureBlocks(db *blockStore, kind byte, first, last uint64) (all extent, err error) {
	for first <= last {
		from, end, archive, err := db.of(kind, first)
		if err != nil {
			return all, err
		}
		to := last
		if archive {
			if to = min(to, end.inputSeq); kind == keyFills {
				to = min(last, end.tradeSeq)
			}
		}
		x, err := measureIn(from, kind, first, to)
		if err != nil {
			return all, err
		}
		all.add(x)
		first = to + 1
	}
	return all, nil
}

// measureIn is measureBlocks of one store. Cost: a search for each table, and the keys outside
// them; no value is read.
func measureIn(db *blockStore, kind byte, first, last uint64) (extent, error) {
	lower, upper := newKey(kind, first), newKey(kind, last+1)
	tables, err := tablesIn(db, lower, upper)
	if err != nil {
		return extent{}, err
	}
	var all extent
	for _, table := range tables {
		between, err := countBlocks(db, lower, table.Smallest.UserKey)
		if err != nil {
			return all, err
		}
		all.add(between)
		all.add(extent{table.Properties.NumEntries, table.Properties.RawValueSize})
		lower = append(bytes.Clone(table.Largest.UserKey), 0) // right behind it
	}
	rest, err := countBlocks(db, lower, upper)
	all.add(rest)
	return all, err
}

// tablesIn returns the tables that lie wholly in [lower, upper), in order. A table with deletions,
// or one that shares its file, does not know what it holds, and is left out. When tables overlap,
// which those of blocks do not, there are none to rely on.
func tablesIn(db *blockStore, lower, upper []byte) ([]pebble.SSTableInfo, error) {
	if bytes.Compare(lower, upper) >= 0 {
		return nil, nil
	}
	var levels [][]pebble.SSTableInfo
	err := guard(func() (err error) {
		levels, err = db.SSTables(pebble.WithKeyRangeFilter(lower, upper), pebble.WithProperties())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("journal: count tables from key=%s: %w", keyName(lower), err)
	}
	all := slices.Concat(levels...)
	slices.SortFunc(all, func(a, b pebble.SSTableInfo) int {
		return bytes.Compare(a.Smallest.UserKey, b.Smallest.UserKey)
	})
	var within []pebble.SSTableInfo
	for i, t := range all {
		if i > 0 && bytes.Compare(t.Smallest.UserKey, all[i-1].Largest.UserKey) <= 0 {
			return nil, nil
		}
		if bytes.Compare(t.Smallest.UserKey, lower) >= 0 && bytes.Compare(t.Largest.UserKey, upper) < 0 &&
			!t.Virtual && t.Properties.NumDeletions == 0 && t.Properties.NumRangeKeys() == 0 {
			within = append(within, t)
		}
	}
	return within, nil
}

// countBlocks counts what is in [lower, upper) key by key. It needs the values' lengths only.
func countBlocks(db *blockStore, lower, upper []byte) (x extent, err error) {
	if bytes.Compare(lower, upper) >= 0 {
		return x, nil
	}
	err = iterate(db, lower, upper, func(it *pebble.Iterator) error {
		for ok := it.First(); ok; ok = it.Next() {
			v := it.LazyValue()
			x.add(extent{1, uint64(v.Len())})
		}
		return nil
	})
	return x, err
}
