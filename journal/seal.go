package journal

import (
	"encoding/binary"
	"hash"

	"posttrade/matcher"
)

// sealer makes the blocks of a commit. One goroutine; its buffers are reused as a packer's are.
type sealer struct {
	packer               *packer
	commands, fills, ids envelope
}

// seal packs the block's commands, then its fills and its client ids if it has any, as they follow
// prev, and gives each, as it is stored, to put, which must copy it. It returns the end of the
// commit. An error is put's.
func (s *sealer) seal(b *Block, prev *point,
	put func(kind byte, seq uint64, block []byte) error) (end point, err error) {
	s.begin(b, prev.tradeSeq+1)
	s.packer.pack(&s.commands, b.records)
	err = put(keyCommands, b.first, s.packer.seal(&s.commands, &prev.chain))
	if err == nil && b.fillCount > 0 {
		s.packer.pack(&s.fills, b.fills)
		err = put(keyFills, s.fills.first, s.packer.seal(&s.fills, &s.commands.chain))
	}
	if err == nil && b.idCount > 0 {
		s.packer.pack(&s.ids, b.ids)
		err = put(keyIDs, b.first, s.packer.seal(&s.ids, &s.commands.chain))
	}
	return point{
		inputSeq: s.commands.last(), tradeSeq: s.commands.lastTrade(), chain: s.commands.chain,
	}, err
}

// begin fills in the fields that pack and packer.seal do not set. nextTrade is the tradeSeq of the
// block's first fill, or of the next one to come when it has none.
func (s *sealer) begin(b *Block, nextTrade uint64) {
	first, last := b.timeSpan()
	s.commands = envelope{
		kind: keyCommands, count: uint32(b.Commands()), first: b.first, firstTime: first, lastTime: last,
		fills: b.fillCount, ids: b.idCount, link: nextTrade,
	}
	s.fills = envelope{
		kind: keyFills, count: b.fillCount, first: nextTrade, firstTime: first, lastTime: last,
		link: b.first,
	}
	s.ids = envelope{
		kind: keyIDs, count: b.idCount, first: b.first, firstTime: first, lastTime: last, link: b.first,
	}
}

// timeSpan is the event time of the first and the last command that has one, in milliseconds; 0 and
// 0 when none has.
func (b *Block) timeSpan() (first, last int64) {
	n := b.Commands()
	for i := 0; i < n; i++ {
		if t, ok := b.time(i); ok {
			first = t
			break
		}
	}
	for i := n - 1; i >= 0; i-- {
		if t, ok := b.time(i); ok {
			last = t
			break
		}
	}
	return first, last
}

// time is the event time of command i, in milliseconds; false for a record that is no command of
// the matcher's and has none.
func (b *Block) time(i int) (int64, bool) {
	r := b.records[i*recordBytes:]
	return int64(binary.LittleEndian.Uint64(r[16:])),
		binary.LittleEndian.Uint16(r[2:]) == matcher.TemplateCommand
}

// seal writes the envelope before what pack packed, with the chain behind prev, which it also sets
// in e. It returns the block, valid until the next pack.
func (p *packer) seal(e *envelope, prev *[chainBytes]byte) []byte {
	out := p.out[:envelopeBytes+int(e.packed)]
	e.version = envelopeSealed
	e.put(out)
	linkStored(p.sum, &e.chain, prev, out)
	copy(out[chainOffset:], e.chain[:])
	binary.LittleEndian.PutUint32(out[crcOffset:], checksum(out))
	return out
}

// link sets chain to SHA-256 over prev and parts. It resets sum, whose memory it uses. chain may be
// where prev is.
func link(sum hash.Hash, chain, prev *[chainBytes]byte, parts ...[]byte) {
	sum.Reset()
	sum.Write(prev[:])
	for _, part := range parts {
		sum.Write(part)
	}
	sum.Sum(chain[:0])
}

// linkStored sets chain to that of a block as it is stored, behind prev: over the envelope without
// chain and checksum, and the payload. A packed payload has an eighth of the bytes of its records.
func linkStored(sum hash.Hash, chain, prev *[chainBytes]byte, block []byte) {
	link(sum, chain, prev, block[:chainOffset], block[chainOffset+chainBytes:crcOffset],
		block[envelopeBytes:])
}
