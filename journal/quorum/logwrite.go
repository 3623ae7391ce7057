package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// StoreLog stores one entry.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs appends entries as one batch with one sync.
//
//   - Shape: indexes ascend by one. The first is last+1 or above it. It is above when the library
//     continues behind a snapshot that it has installed: the snapshot covers what lies before the
//     gap, which the same batch deletes. The data belongs to the store from then on.
//   - Errors: ErrLogOrder, nothing is written; anything else poisons.
//   - Cost: one fsync, and no copy except into the batch. A leader's commands cost neither here
//     (logahead.go).
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return s.usable()
	}
	s.write <- struct{}{}
	defer func() { <-s.write }()
	if err := s.usable(); err != nil {
		return err
	}
	span := s.span
	if err := inOrder(logs, span.last); err != nil {
		return err
	}
	gap := span.last != 0 && logs[0].Index != span.last+1
	end := logs[len(logs)-1]
	if span.last == 0 || gap {
		span.first = logs[0].Index
	}
	span.last, span.lastTerm = end.Index, end.Term
	if !gap && s.mayWait(logs) {
		return s.storeAhead(logs, span)
	}
	if err := s.ahead.drain(); err != nil {
		return err
	}
	if err := s.sync(logs, gap, span); err != nil {
		return err
	}
	s.tail.Append(logs...)
	s.setSpan(span)
	return nil
}

// sync writes entries, after which the log is span, as one batch with one sync, and records them in
// the anchor. Only then are they counted as being on disk. A failure poisons. The caller holds
// write, or is the goroutine that syncs what was stored ahead.
func (s *logStore) sync(logs []*raft.Log, gap bool, span logSpan) error {
	s.times.Begin(time.Now())
	defer s.times.End()
	batch := s.db.NewBatchWithSize(batchSize(logs))
	err := s.put(batch, logs, gap)
	if err == nil {
		err = s.commit(batch, pebble.Sync)
	}
	if err == nil {
		err = s.anchor.Raise(span.last, span.lastTerm)
	}
	if err != nil {
		return s.stop.Poison(fmt.Errorf("quorum: write log index=%d..%d: %w", logs[0].Index, span.last,
			err))
	}
	s.ahead.reach(span)
	return nil
}

// commit applies the batch and gives it back. The error may be an earlier failure of the log.
func (s *logStore) commit(batch *pebble.Batch, sync *pebble.WriteOptions) error {
	return s.stop.Write(func() error {
		if err := s.db.Apply(batch, sync); err != nil {
			return err
		}
		return batch.Close()
	})
}

// inOrder checks that the entries follow each other and come behind last, possibly with a gap
// before the first. ErrLogOrder.
func inOrder(logs []*raft.Log, last uint64) error {
	for i, l := range logs {
		if i == 0 && l.Index > last || i > 0 && l.Index == last+1 {
			last = l.Index
			continue
		}
		return fmt.Errorf("quorum: write log index=%d after %d: %w", l.Index, last, ErrLogOrder)
	}
	return nil
}

// batchSize is about how many bytes the batch of these entries takes.
func batchSize(logs []*raft.Log) int {
	n := 64
	for _, l := range logs {
		n += logKeyBytes + 16 + logValueSize(l)
	}
	return n
}

// put fills the batch. With a gap it deletes all entries first: the snapshot that caused the gap
// covers them. Entries are encoded in the batch's own memory.
func (s *logStore) put(batch *pebble.Batch, logs []*raft.Log, gap bool) error {
	if gap {
		if err := deleteLogs(batch, s.span.first, s.span.last); err != nil {
			return err
		}
	}
	for _, l := range logs {
		op := batch.SetDeferred(logKeyBytes, logValueSize(l))
		putLogKey(op.Key, l.Index)
		putLogValue(op.Value, l)
		if err := op.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// deleteLogs adds the deletion of lo..hi to the batch.
func deleteLogs(batch *pebble.Batch, lo, hi uint64) error {
	op := batch.DeleteRangeDeferred(logKeyBytes, logKeyBytes)
	putLogKey(op.Key, lo)
	putLogKey(op.Value, hi+1)
	return op.Finish()
}

// DeleteRange deletes the entries lo..hi: the oldest, which a snapshot covers, the newest, which
// another leader has replaced, or all.
//
//   - Errors: ErrLogMiddle when a hole would be left, nothing is deleted; anything else poisons.
//   - Cost: at the front no sync, because the snapshot still covers what comes back after a power
//     cut. At the back one sync, and before any deletion one of the anchor.
func (s *logStore) DeleteRange(lo, hi uint64) error {
	s.write <- struct{}{}
	defer func() { <-s.write }()
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.ahead.drain(); err != nil {
		return err
	}
	span := s.span
	lo, hi = max(lo, span.first), min(hi, s.continued(lo, hi), span.last)
	if span.last == 0 || lo > hi {
		return nil
	}
	var err error
	switch {
	case hi == span.last:
		err = s.deleteBack(lo, &span)
	case lo == span.first:
		err = s.deleteSpan(lo, hi, pebble.NoSync)
		span.first = hi + 1
	default:
		return fmt.Errorf("quorum: delete log index=%d..%d of %d..%d: %w", lo, hi, span.first, span.last,
			ErrLogMiddle)
	}
	if err != nil {
		return s.stop.Poison(fmt.Errorf("quorum: delete log index=%d..%d: %w", lo, hi, err))
	}
	s.setSpan(span)
	s.tail.Delete(lo, hi)
	return nil
}

// deleteBack deletes from lo to the end, after it has lowered the anchor: an anchor that vouches
// for deleted entries would make the next start refuse the log. *span becomes the log that is left.
func (s *logStore) deleteBack(lo uint64, span *logSpan) error {
	hi, rest := span.last, logSpan{}
	if lo > span.first {
		var l raft.Log
		if err := s.GetLog(lo-1, &l); err != nil {
			return err
		}
		rest = logSpan{first: span.first, last: lo - 1, lastTerm: l.Term}
	}
	*span = rest
	if err := s.lowerAnchor(rest); err != nil {
		return err
	}
	return s.deleteSpan(lo, hi, pebble.Sync)
}

func (s *logStore) deleteSpan(lo, hi uint64, sync *pebble.WriteOptions) error {
	batch := s.db.NewBatch()
	if err := deleteLogs(batch, lo, hi); err != nil {
		return err
	}
	return s.commit(batch, sync)
}

// setSpan makes span what readers see. The caller holds write.
func (s *logStore) setSpan(span logSpan) {
	s.mu.Lock()
	s.span = span
	s.mu.Unlock()
}

// lowerAnchor lowers the anchor to the end of span, durably. The caller deletes what lies behind it
// afterwards, and holds write.
func (s *logStore) lowerAnchor(span logSpan) error {
	s.anchorMu.Lock()
	defer s.anchorMu.Unlock()
	// The ticker must not raise the anchor again before the deletion.
	s.setSpan(span)
	s.ahead.reach(span)
	s.anchored = span
	return s.anchor.Lower(span.last, span.lastTerm)
}

// anchorLoop syncs the anchor so that it survives the machine, a little behind the log. It ends at
// Close, or with the first failure.
func (s *logStore) anchorLoop() {
	t := time.NewTicker(logAnchorEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := s.syncAnchor(); err != nil {
				return
			}
		case <-s.stopAnchor:
			return
		}
	}
}

// syncAnchor syncs the anchor at the end of the log, if it has moved. It takes the log as it is on
// disk: entries that are only stored ahead do not count.
func (s *logStore) syncAnchor() error {
	s.anchorMu.Lock()
	defer s.anchorMu.Unlock()
	if err := s.stop.Err(); err != nil {
		return err
	}
	span := s.ahead.synced()
	if span.last == s.anchored.last && span.lastTerm == s.anchored.lastTerm {
		return nil
	}
	if err := s.anchor.Sync(span.last, span.lastTerm); err != nil {
		return s.stop.Poison(fmt.Errorf("quorum: anchor log index=%d: %w", span.last, err))
	}
	s.anchored = span
	return nil
}

// Set stores a value of the library's, its term or its vote, synced. A failure poisons: a vote that
// may or may not be on disk must not be given.
func (s *logStore) Set(key, value []byte) error {
	s.write <- struct{}{} // a close waits for it
	defer func() { <-s.write }()
	if err := s.usable(); err != nil {
		return err
	}
	err := s.stop.Write(func() error { return s.db.Set(stableKey(key), value, pebble.Sync) })
	if err != nil {
		return s.stop.Poison(fmt.Errorf("quorum: write key=%q: %w", key, err))
	}
	return nil
}

// Get returns a value that Set has stored, or an error with the text "not found".
func (s *logStore) Get(key []byte) (value []byte, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	err = s.stop.Read(func() error {
		v, closer, err := s.db.Get(stableKey(key))
		if err != nil {
			return err
		}
		value = append([]byte{}, v...)
		return closer.Close()
	})
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, errNoStableKey
	}
	if err != nil {
		return nil, fmt.Errorf("quorum: read key=%q: %w", key, err)
	}
	return value, nil
}

// SetUint64 stores a number, synced.
func (s *logStore) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 returns a number that SetUint64 has stored, or an error with the text "not found".
func (s *logStore) GetUint64(key []byte) (uint64, error) {
	v, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("quorum: read key=%q: %d bytes, want 8: %w", key, len(v), ErrLogDamaged)
	}
	return binary.BigEndian.Uint64(v), nil
}

// stableKey is the store's key of a value of the library's.
func stableKey(key []byte) []byte { return append([]byte{logStableKey}, key...) }
