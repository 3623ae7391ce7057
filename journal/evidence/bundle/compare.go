package bundle

import (
	"bytes"
	"fmt"

	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// decided compares what the engine has decided with the records. It is the outlet of the engine, so
// a difference waits in err until the batch has ended.
func (c *checker) decided(events []matcher.Event) {
	for i := range events {
		err := c.builder.Take(&events[i], func(seq uint64) []byte {
			return c.batch[seq-c.batch[0].InputSeq].id
		})
		if c.err == nil { // see may have met a difference
			c.err = err
		}
	}
	for _, t := range []*Tally{c.tally, c.report} {
		if t != nil && c.err == nil {
			c.err = t.Observe(events)
		}
	}
}

// see compares the records of a command: the builder gives the command's last. So the fills are
// collected in got, and both are compared when the command's own record comes.
func (c *checker) see(inputSeq, _ uint64, _ [verify.SaltBytes]byte, record []byte) {
	if record[0] == verify.KindFill {
		c.got.add(record)
		return
	}
	want := &c.batch[inputSeq-c.batch[0].InputSeq]
	where := fmt.Sprintf("sequence %d", inputSeq)
	if c.err == nil && !bytes.Equal(record, want.record) {
		c.err = refuse(where, "the engine decides %s, its record says %s", said(record),
			said(want.record))
	}
	if c.err == nil && !bytes.Equal(c.got, want.fills) {
		c.err = refuse(where, "the engine executes other fills than its records say")
	}
	c.got = c.got[:0]
}

// said is a record in words, for a refusal.
func said(record []byte) []byte {
	text, err := verify.Decoded(record)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// leaf compares a full leaf with the tree of the signed head. This is what binds every record
// before the last leaf to the signature.
func (c *checker) leaf(data []byte) error {
	return c.tiles.Leaf(verify.LeafOf(c.builder.Head()), data)
}

// finish compares the last leaf and the digests, and that the records end where the manifest says.
func (c *checker) finish() error {
	if c.records.next != nil {
		return refuse(fmt.Sprintf("sequence %d", c.m.To+1), "%s goes on behind the range", RecordsName)
	}
	if err := c.lastLeaf(); err != nil {
		return err
	}
	fills, blotter, report, err := c.tally.End()
	if err != nil {
		return err
	}
	for _, d := range []struct {
		name      string
		got, want Digest
	}{{"fills", fills, c.m.Fills}, {"blotter", blotter, c.m.Blotter}, {"report", report, c.m.Report}} {
		if d.got != d.want {
			return refuse(ManifestName, "%s: the range gives %d with SHA-256 %s, it says %d, %s", d.name,
				d.got.Count, d.got.SHA256, d.want.Count, d.want.SHA256)
		}
	}
	if c.report != nil {
		_, _, c.proven.Other, err = c.report.End()
	}
	return err
}

// lastLeaf compares the leaf in which the range ends, if it does not end with it.
//
// The hashes of the records behind the range are in the edges. They may be any: only with the right
// ones does the leaf lead to the tree, or to the open leaf of the head.
func (c *checker) lastLeaf() error {
	first, count := verify.LeafRange(verify.LeafOf(c.m.To))
	if c.m.To == first+count-1 {
		if len(c.edges.After) > 0 {
			return refuse(EdgesName, "no record shares the last leaf")
		}
		return nil
	}
	root := verify.Root(append(c.builder.Hashes(), c.edges.After...))
	index := verify.LeafOf(c.m.To)
	if index < c.head.Size {
		leaf := verify.Leaf{First: first, Count: count, Root: root}
		return c.tiles.Leaf(index, leaf.Append(nil))
	}
	if root != c.head.HeadRoot {
		return refuse(fmt.Sprintf("sequences %d to %d", first, c.head.Head),
			"their records lead to %x, the head is %x", root, c.head.HeadRoot)
	}
	return nil
}
