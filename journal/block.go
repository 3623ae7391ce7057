package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"posttrade/matcher"
)

// Key prefixes of the store. Keys are the prefix and a big-endian sequence.
//
// A commit in the store, all of it in one batch:
//
//	c + first inputSeq    envelope | commands: grouped, transposed, packed
//	f + first tradeSeq    envelope | fills: transposed, packed                if it has fills
//	i + first inputSeq    envelope | client ids: packed                       if it has client ids
const (
	keyGenesis  = 'g'
	keyCommands = 'c'
	keyFills    = 'f'
	keyIDs      = 'i'
	keySnapshot = 's'
)

// Codec says how a block's payload is packed. The store holds the number.
type Codec uint8

// The codecs. S2 and Zstd of command and fill blocks work on the records
// transposed byte by byte; client ids are packed as they are.
const (
	CodecNone Codec = 0
	CodecS2   Codec = 1
	CodecZstd Codec = 2
)

// MaxBlockCommands is the most commands that one block holds. maxRaw is the most bytes of their
// payload, or of that of their client ids, before packing; maxFillsRaw that of their fills, which
// are more: one order can execute against everything that rests, and its fills are in one block.
const (
	MaxBlockCommands = 16384
	maxRaw           = 64 << 20
	maxFillsRaw      = 1<<32 - recordBytes
)

// maxRawOf is the most bytes of a payload of a kind before packing.
func maxRawOf(kind byte) uint64 {
	if kind == keyFills {
		return maxFillsRaw
	}
	return maxRaw
}

const (
	// The versions of an envelope. They differ in what the chain is over: the raw payload, or the
	// envelope and the payload as it is stored. New blocks are sealed; linked blocks are read.
	envelopeLinked = 1
	envelopeSealed = 2

	// The envelope stands before every payload; its checksum is its last field, and covers the payload
	// too.
	envelopeBytes = 96
	chainBytes    = sha256.Size
	chainOffset   = 32
	crcOffset     = 92
)

// Errors of a block. All of them wrap ErrCorrupt.
var (
	// ErrCorrupt reports bytes that cannot be what was written. Never retry it.
	ErrCorrupt = errors.New("corrupt")

	errShort    = fmt.Errorf("block shorter than its envelope: %w", ErrCorrupt)
	errVersion  = fmt.Errorf("unknown block version: %w", ErrCorrupt)
	errKind     = fmt.Errorf("block of another kind: %w", ErrCorrupt)
	errChecksum = fmt.Errorf("checksum mismatch: %w", ErrCorrupt)
	errSizes    = fmt.Errorf("block sizes disagree: %w", ErrCorrupt)
	errCodec    = fmt.Errorf("unknown codec: %w", ErrCorrupt)
	errUnpack   = fmt.Errorf("payload does not unpack: %w", ErrCorrupt)
)

// castagnoli is the CRC-32C table: a constant of the format.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// flagGrouped: the command records are sorted by type, see group.
const flagGrouped = 1

// envelope is what stands before every payload, 96 bytes little endian. FORMAT.md, section 2, has
// the offsets.
type envelope struct {
	version byte // parseEnvelope and seal set it
	kind    byte
	codec   Codec
	count   uint32 // records: commands, fills or client ids
	first   uint64 // input sequence of the first command, or trade sequence of the first fill
	// Event times of the first and the last command of the commit that have one, in milliseconds; 0:
	// none has.
	firstTime int64
	lastTime  int64
	// SHA-256 over the chain before it and what the version says (FORMAT.md, section 3).
	chain  [chainBytes]byte
	raw    uint32 // payload bytes before packing
	packed uint32 // payload bytes as stored
	fills  uint32 // command block: fills of the same commit
	ids    uint32 // command block: client ids of the same commit
	// command block: the trade sequence that its first fill has or would have; others: the first input
	// sequence of the commit
	link  uint64
	flags uint32
}

// last is the sequence of the last record of a command or fill block.
func (e *envelope) last() uint64 { return e.first + uint64(e.count) - 1 }

// lastTrade is the last trade sequence issued up to the end of a command block.
func (e *envelope) lastTrade() uint64 { return e.link + uint64(e.fills) - 1 }

// put writes the envelope without its checksum into b, which has at least envelopeBytes.
func (e *envelope) put(b []byte) {
	b[0], b[1], b[2], b[3] = e.version, byte(e.codec), e.kind, 0
	binary.LittleEndian.PutUint32(b[4:], e.count)
	binary.LittleEndian.PutUint64(b[8:], e.first)
	binary.LittleEndian.PutUint64(b[16:], uint64(e.firstTime))
	binary.LittleEndian.PutUint64(b[24:], uint64(e.lastTime))
	copy(b[chainOffset:], e.chain[:])
	binary.LittleEndian.PutUint32(b[64:], e.raw)
	binary.LittleEndian.PutUint32(b[68:], e.packed)
	binary.LittleEndian.PutUint32(b[72:], e.fills)
	binary.LittleEndian.PutUint32(b[76:], e.ids)
	binary.LittleEndian.PutUint64(b[80:], e.link)
	binary.LittleEndian.PutUint32(b[88:], e.flags)
}

// checksum is the CRC-32C of a block as it is stored, without the field that holds it.
func checksum(block []byte) uint32 {
	crc := crc32.Update(0, castagnoli, block[:crcOffset])
	return crc32.Update(crc, castagnoli, block[envelopeBytes:])
}

// parseEnvelope reads and checks an envelope of the given kind and returns its payload, a part of
// b. It accepts only what put can have written: sizes that agree, a known codec and flags, counts
// within the limits, so a reader can allocate by them. The chain is the caller's to check. Errors
// are ErrCorrupt.
func parseEnvelope(b []byte, kind byte) (e envelope, payload []byte, err error) {
	if len(b) < envelopeBytes {
		return e, nil, errShort
	}
	if b[0] != envelopeLinked && b[0] != envelopeSealed {
		return e, nil, fmt.Errorf("version %d: %w", b[0], errVersion)
	}
	payload = b[envelopeBytes:]
	if crc, want := checksum(b), binary.LittleEndian.Uint32(b[crcOffset:]); crc != want {
		return e, nil, fmt.Errorf("crc %08x, want %08x: %w", crc, want, errChecksum)
	}
	e = envelope{
		version: b[0], kind: b[2], codec: Codec(b[1]),
		count:     binary.LittleEndian.Uint32(b[4:]),
		first:     binary.LittleEndian.Uint64(b[8:]),
		firstTime: int64(binary.LittleEndian.Uint64(b[16:])),
		lastTime:  int64(binary.LittleEndian.Uint64(b[24:])),
		raw:       binary.LittleEndian.Uint32(b[64:]),
		packed:    binary.LittleEndian.Uint32(b[68:]),
		fills:     binary.LittleEndian.Uint32(b[72:]),
		ids:       binary.LittleEndian.Uint32(b[76:]),
		link:      binary.LittleEndian.Uint64(b[80:]),
		flags:     binary.LittleEndian.Uint32(b[88:]),
	}
	copy(e.chain[:], b[chainOffset:])
	if e.kind != kind {
		return e, nil, fmt.Errorf("kind %q, want %q: %w", e.kind, kind, errKind)
	}
	if e.codec > CodecZstd {
		return e, nil, fmt.Errorf("codec %d: %w", e.codec, errCodec)
	}
	fixed := kind == keyCommands || kind == keyFills
	switch {
	case int(e.packed) != len(payload), e.count == 0, uint64(e.raw) > maxRawOf(kind), e.first == 0,
		fixed && uint64(e.raw) != uint64(e.count)*recordBytes,
		e.codec == CodecNone && e.raw != e.packed,
		kind == keyCommands && e.count > MaxBlockCommands,
		e.first > 1<<62, b[3] != 0,
		e.flags&^flagGrouped != 0, e.flags != 0 && (kind != keyCommands || e.codec == CodecNone):
		return e, nil, fmt.Errorf("count %d raw %d packed %d of %d bytes: %w",
			e.count, e.raw, e.packed, len(payload), errSizes)
	}
	return e, payload, nil
}

// packer packs payloads. One goroutine; its buffers are reused, so that a block in steady state
// allocates nothing. They keep the size of the largest block.
type packer struct {
	codec Codec
	// Command records sorted by type (group).
	rows []byte
	// Records transposed.
	planes []byte
	// The commands' types in their original order.
	types []byte
	// Room for the envelope, then the payload as it is stored.
	out []byte
	// Set for CodecZstd only.
	zenc *zstd.Encoder
	sum  hash.Hash
}

// newPacker returns a packer for one codec. The codec must be one of the three.
func newPacker(codec Codec) (*packer, error) {
	p := &packer{codec: codec, sum: sha256.New()}
	if codec == CodecZstd {
		var err error
		p.zenc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			return nil, fmt.Errorf("journal: zstd: %w", err)
		}
	}
	return p, nil
}

// pack packs raw into p's buffer behind room for the envelope, and sets codec, flags, raw and
// packed of e, whose kind is set. Records that do not shrink are stored plain. Client ids are
// neither grouped nor transposed. Seal follows.
func (p *packer) pack(e *envelope, raw []byte) {
	limit := envelopeBytes + max(s2.MaxEncodedLen(len(raw)), len(raw))
	p.out = slices.Grow(p.out[:0], limit)[:limit]
	body, flags := raw, uint32(0)
	if p.codec != CodecNone && e.kind != keyIDs {
		n := len(raw) / recordBytes
		p.planes = slices.Grow(p.planes[:0], len(raw))[:len(raw)]
		rows := raw
		if e.kind == keyCommands {
			flags = flagGrouped
			p.rows = slices.Grow(p.rows[:0], len(raw))[:len(raw)]
			p.types = slices.Grow(p.types[:0], n)[:n]
			group(p.rows, p.types, raw, n)
			rows = p.rows
		}
		transpose(p.planes, rows, n)
		if flags != 0 {
			copy(p.planes[typeOffset*n:], p.types)
		}
		body = p.planes
	}
	var packed []byte
	switch p.codec {
	case CodecS2:
		packed = s2.Encode(p.out[envelopeBytes:], body)
	case CodecZstd:
		packed = p.zenc.EncodeAll(body, p.out[envelopeBytes:envelopeBytes])
	}
	e.codec, e.flags, e.raw, e.packed = p.codec, flags, uint32(len(raw)), uint32(len(packed))
	if p.codec == CodecNone || len(packed) >= len(raw) {
		e.codec, e.flags, e.packed = CodecNone, 0, uint32(len(raw))
		copy(p.out[envelopeBytes:], raw)
	}
}

// unpacker is the inverse of packer, for blocks of any codec. One goroutine; its buffers keep the
// size of the largest block.
type unpacker struct {
	planes []byte
	rows   []byte
	zdec   *zstd.Decoder
	sum    hash.Hash
	chain  [chainBytes]byte // what follows has computed
}

func newUnpacker() *unpacker { return &unpacker{sum: sha256.New()} }

// close frees what the zstd decoder holds. The unpacker can be used again.
func (u *unpacker) close() {
	if u.zdec != nil {
		u.zdec.Close()
		u.zdec = nil
	}
}

// unpack writes the payload's raw bytes into dst, which must have e.raw bytes. e is one that
// parseEnvelope has accepted. After an error, which is ErrCorrupt, dst has any bytes.
func (u *unpacker) unpack(dst []byte, e *envelope, payload []byte) error {
	if e.codec == CodecNone {
		copy(dst, payload)
		return nil
	}
	body := dst
	if e.kind != keyIDs {
		u.planes = slices.Grow(u.planes[:0], int(e.raw))[:e.raw]
		body = u.planes
	}
	switch e.codec {
	case CodecS2:
		if n, err := s2.DecodedLen(payload); err != nil || n != int(e.raw) {
			return fmt.Errorf("s2: %d bytes, want %d: %w", n, e.raw, errUnpack)
		}
		got, err := s2.Decode(body, payload)
		if err != nil || len(got) != int(e.raw) {
			return fmt.Errorf("s2: %v: %w", err, errUnpack)
		}
	case CodecZstd:
		if u.zdec == nil {
			var err error
			u.zdec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
				zstd.WithDecoderMaxMemory(maxFillsRaw), zstd.WithDecodeAllCapLimit(true))
			if err != nil {
				return fmt.Errorf("zstd: %v: %w", err, errUnpack)
			}
		}
		got, err := u.zdec.DecodeAll(payload, body[:0:e.raw])
		if err != nil || len(got) != int(e.raw) {
			return fmt.Errorf("zstd: %d bytes, want %d: %v: %w", len(got), e.raw, err, errUnpack)
		}
		copy(body, got)
	}
	n := int(e.count)
	switch {
	case e.kind == keyIDs:
	case e.flags&flagGrouped != 0:
		u.rows = slices.Grow(u.rows[:0], int(e.raw))[:e.raw]
		untranspose(u.rows, body, n)
		ungroup(dst, body[typeOffset*n:], u.rows, n, e.first)
	default:
		untranspose(dst, body, n)
	}
	return nil
}

// follows reports whether e.chain is that of a block behind prev. block is the block as it is
// stored, raw its payload unpacked.
func (u *unpacker) follows(e *envelope, prev *[chainBytes]byte, block, raw []byte) bool {
	if e.version == envelopeLinked {
		link(u.sum, &u.chain, prev, raw)
	} else {
		linkStored(u.sum, &u.chain, prev, block)
	}
	return e.chain == u.chain
}

// Block is what one commit holds: commands in sequence, the fills they caused, and the client ids
// of the commands that have one. One goroutine fills it and hands it to Append, and may fill it
// again when Append has returned. Append does not reset it.
//
// The zero value is an empty block. Nothing is checked while it is filled: Append refuses what does
// not continue the history.
type Block struct {
	// 64 bytes a command and a fill, in the bytes of the wire; client ids as in the payload of an i
	// block.
	records []byte
	fills   []byte
	ids     []byte

	first   uint64 // input sequence of the first command
	idCount uint32
	// The command of the last client id, at first the block's first: the next distance counts from it.
	lastIDSeq uint64
	fillCount uint32

	inTail tailCopied // the part of it that is in the tail
}

// tailCopied counts what of a block has been copied into the tail, with its answers released.
type tailCopied struct {
	records, fills, ids int // bytes
	idCount             uint32
	idSeq               uint64 // the sequence that the next client id's distance is counted from
}

// Reset empties the block and keeps its memory.
func (b *Block) Reset() {
	b.records, b.fills, b.ids = b.records[:0], b.fills[:0], b.ids[:0]
	b.first, b.idCount, b.lastIDSeq, b.fillCount = 0, 0, 0, 0
	b.inTail = tailCopied{}
}

// Commands is the number of commands in the block.
func (b *Block) Commands() int { return len(b.records) / recordBytes }

// Command appends a sequenced command. It copies.
func (b *Block) Command(c *matcher.Command) {
	if len(b.records) == 0 {
		b.first, b.lastIDSeq = c.InputSeq, c.InputSeq
	}
	b.records = append(b.records, c.Bytes()[:]...)
}

// Fill appends a fill that the block's commands caused. It copies.
func (b *Block) Fill(f *matcher.Fill) {
	b.fills = append(b.fills, f.Bytes()[:]...)
	b.fillCount++
}

// executed is Fill of ev.Fill(), written where it belongs: one copy fewer for every fill on the
// recorder's path.
func (b *Block) executed(ev *matcher.Event) {
	at := len(b.fills)
	b.fills = slices.Grow(b.fills, matcher.FillBytes)[:at+matcher.FillBytes]
	f := (*matcher.Fill)(unsafe.Pointer(&b.fills[at]))
	*f = matcher.Fill{} // its reserved bytes too
	f.TradeSeq, f.InputSeq, f.TimeMillis, f.Px = ev.TradeSeq, ev.InputSeq, ev.TimeMillis, ev.Px
	f.OrderRef, f.AccountID, f.SecurityID, f.Qty = ev.OrderRef, ev.AccountID, ev.SecurityID, ev.Qty
	f.CounterRef, f.Side, f.Flags = ev.Detail().CounterRef, ev.Side, ev.Flags&matcher.FillFlags
	f.Era, f.CounterEra = ev.Era, ev.Detail().CounterEra
	b.fillCount++
}

// MaxClientID is the longest client id, in bytes.
const MaxClientID = 64

// ClientID appends the client id (1 to MaxClientID bytes) of a command that is
// already in the block. Calls are in ascending order of inputSeq.
func (b *Block) ClientID(inputSeq uint64, id []byte) {
	b.ids = binary.AppendUvarint(b.ids, inputSeq-b.lastIDSeq)
	b.ids = append(b.ids, byte(len(id)))
	b.ids = append(b.ids, id...)
	b.lastIDSeq = inputSeq
	b.idCount++
}
