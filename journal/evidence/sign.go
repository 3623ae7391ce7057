package evidence

import (
	"encoding/hex"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"posttrade/journal/evidence/verify"
)

// sign publishes a new head if there was progress since the last one, or the key is a new one.
// Run's goroutine only.
//
// The partial tiles of the head are written before the head is: a reader that has the head finds
// every tile that it needs. A member that does not lead signs nothing, and has the same tree.
func (l *Log) sign(f *follower) error {
	if l.o.Leads != nil && !l.o.Leads() {
		return nil
	}
	last := l.published()
	head := f.leaf.Head()
	if l.Checkpoint() != nil && (head < last.Head || head == last.Head && !l.foreign) {
		l.change((*State).onTime)
		l.offerAgain()
		return nil
	}
	c := verify.Checkpoint{Origin: l.o.Origin, Size: f.tree.Size, Root: f.tree.Root(),
		Head: head, HeadRoot: f.leaf.Root()}
	if err := l.addSnapshot(&c); err != nil {
		return err
	}
	if err := f.tree.Partials(l.put); err != nil {
		return err
	}
	text, err := note.Sign(&note.Note{Text: c.Text()}, l.signer)
	if err != nil {
		return fmt.Errorf("evidence: sign: %w", err)
	}
	l.foreign = false
	if l.candidates == nil {
		_, err = l.publish(text, c)
		return err
	}
	l.submit(candidate{text, c})
	return nil
}

// publish keeps a head, then shows it, and reports whether it did. A head from before the published
// one comes too late.
//
// A head goes into the file checkpoints, which cannot be made again, with a sync; then into
// checkpoint, then to readers. The same head may be published again, with cosignatures.
func (l *Log) publish(text []byte, c verify.Checkpoint) (bool, error) {
	l.publishing.Lock()
	defer l.publishing.Unlock()
	if c.Head < l.published().Head {
		return false, nil
	}
	if err := keep(l.dir, text); err != nil {
		return false, err
	}
	if err := l.dir.write(checkpointName, text, false); err != nil {
		return false, err
	}
	l.show(text, c)
	l.change((*State).onTime)
	return true, nil
}

// addSnapshot names the newest snapshot at or before the head.
//
// So the head attests the state too: an export may start from that snapshot. No snapshot is no
// error.
func (l *Log) addSnapshot(c *verify.Checkpoint) error {
	list, err := l.j.Snapshots()
	if err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	for _, s := range list {
		if s.InputSeq > c.Head || s.InputSeq == 0 {
			continue
		}
		sum, err := hex.DecodeString(s.State.SHA256)
		if err != nil || len(sum) != verify.HashBytes {
			return fmt.Errorf("evidence: snapshot at sequence %d has the hash %q", s.InputSeq,
				s.State.SHA256)
		}
		c.Snapshot, c.SnapshotSHA256 = s.InputSeq, verify.Hash(sum)
		return nil
	}
	return nil
}
