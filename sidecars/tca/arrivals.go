package tca

import "fmt"

// arrival is the market at the moment when an order was accepted: the price in force, 0 for none,
// and the event time.
type arrival struct {
	px     int64
	millis int64
}

// execution is the stored part of a fill: its order's arrival, and a fingerprint. By the
// fingerprint a row with other content is distinguished from the fill's own row.
//
// The zero arrival stands for a fill without a price in force when its order arrived.
type execution struct {
	arrival
	print uint64
}

const (
	executionWords  = 3
	blockExecutions = (blockBytes - headBytes) / (8 * executionWords) // 169
)

// executions has one entry per fill, ascending by tradeSeq without a hole. Full blocks are in the
// file, the other entries are here.
//
// The place of an entry follows from its tradeSeq, so finding one costs no search.
type executions struct {
	file   *blockFile
	recent []execution // fewer than blockExecutions
}

// count is the last tradeSeq known.
//
// It is the number of entries too, because trade sequences begin at 1.
func (x *executions) count() uint64 {
	return x.file.blocks*blockExecutions + uint64(len(x.recent))
}

// add appends the fill tradeSeq, which must be the next one.
//
// It writes a block each time that blockExecutions entries have come. ErrDamaged for another
// sequence: the events are not those that follow the index.
func (x *executions) add(tradeSeq uint64, e execution) error {
	if want := x.count() + 1; tradeSeq != want {
		return fmt.Errorf("tca: tradeSeq=%d, want %d: %w", tradeSeq, want, ErrDamaged)
	}
	x.recent = append(x.recent, e)
	if len(x.recent) < blockExecutions {
		return nil
	}
	b := &x.file.spare
	b.begin(0, len(x.recent), 0, x.file.blocks*blockExecutions)
	for i, e := range x.recent {
		at := i * executionWords
		b.setWord(at, uint64(e.px))
		b.setWord(at+1, uint64(e.millis))
		b.setWord(at+2, e.print)
	}
	if _, err := x.file.append(); err != nil {
		return err
	}
	x.recent = x.recent[:0]
	return nil
}

// at returns the entry of a fill; false when the index does not have it.
//
// Cost: a read of one block, from the cache if it is there; nothing for the newest entries.
func (x *executions) at(tradeSeq uint64) (e execution, found bool, err error) {
	if tradeSeq == 0 || tradeSeq > x.count() {
		return execution{}, false, nil
	}
	number, i := (tradeSeq-1)/blockExecutions, int((tradeSeq-1)%blockExecutions)
	if number == x.file.blocks {
		return x.recent[i], true, nil
	}
	b, err := x.file.read(number)
	if err != nil {
		return execution{}, false, err
	}
	at := i * executionWords
	return execution{arrival{int64(b.word(at)), int64(b.word(at + 1))}, b.word(at + 2)}, true, nil
}

// fingerprint is a hash of the values that a fill and its row share. It detects an edit by hand,
// not a deliberate collision.
//
// It is part of the files' format: another function needs another checkpointMagic.
func fingerprint(account, security uint32, side uint8, qty, px, millis int64) uint64 {
	h := uint64(side)
	for _, word := range [...]uint64{uint64(account)<<32 | uint64(security), uint64(qty), uint64(px),
		uint64(millis)} {
		h = (h ^ word) * 0x9e3779b97f4a7c15
		h ^= h >> 32
		h *= 0xd6e8feb86659fd93
		h ^= h >> 29
	}
	return h
}
