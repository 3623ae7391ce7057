package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestTransposeIsItsOwnStory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 7, 8, 9, 63, 64, 65, 71, 72, 200, 1024} {
		src := make([]byte, n*recordBytes)
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		planes, back := make([]byte, len(src)), make([]byte, len(src))
		transpose(planes, src, n)
		for i := range n { // the definition, byte by byte
			for p := range recordBytes {
				if planes[p*n+i] != src[i*recordBytes+p] {
					t.Fatalf("%d records: plane %d record %d", n, p, i)
				}
			}
		}
		untranspose(back, planes, n)
		if !bytes.Equal(back, src) {
			t.Fatalf("%d records do not come back", n)
		}
	}
}

func TestGroupKeepsEveryRecordButItsSequence(t *testing.T) {
	f := &flow{seed: 6}
	b := f.block(&Block{}, 333)
	n := b.Commands()
	rows, types, back := make([]byte, n*recordBytes), make([]byte, n), make([]byte, n*recordBytes)
	group(rows, types, b.records, n)
	for i := 1; i < n; i++ {
		if rows[i*recordBytes+typeOffset] < rows[(i-1)*recordBytes+typeOffset] {
			t.Fatalf("row %d is out of order", i)
		}
	}
	ungroup(back, types, rows, n, b.first)
	if !bytes.Equal(back, b.records) {
		t.Fatal("records do not come back")
	}
}

func TestBlockFormat(t *testing.T) {
	// The envelope's layout is a file format: these bytes may only be extended.
	e := envelope{
		version: envelopeSealed, kind: keyCommands, codec: CodecNone, count: 1, first: 2, firstTime: 3,
		lastTime: 4, raw: 64, packed: 64, fills: 5, ids: 6, link: 7,
	}
	for i := range e.chain {
		e.chain[i] = byte(i)
	}
	b := make([]byte, envelopeBytes)
	e.put(b)
	want := slices.Concat(
		[]byte{2, 0, 'c', 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0},
		[]byte{3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0}, e.chain[:],
		[]byte{64, 0, 0, 0, 64, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0},
		[]byte{7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	if !bytes.Equal(b[:crcOffset], want) {
		t.Errorf("envelope\n got %v\nwant %v", b[:crcOffset], want)
	}
}

func TestEveryFlippedBitOfABlockIsSeen(t *testing.T) {
	for _, codec := range []Codec{CodecNone, CodecS2, CodecZstd} {
		p := must.Get(newPacker(codec))(t)
		b := (&flow{seed: 8}).block(&Block{}, 20)
		e := envelope{kind: keyCommands, count: 20, first: 1}
		p.pack(&e, b.records)
		value := slices.Clone(p.seal(&e, &e.chain))
		for at := range value {
			for bit := range 8 {
				value[at] ^= 1 << bit
				if _, _, err := parseEnvelope(value, keyCommands); !errors.Is(err, ErrCorrupt) {
					t.Fatalf("codec %d byte %d bit %d: %v", codec, at, bit, err)
				}
				value[at] ^= 1 << bit
			}
		}
		for n := range value {
			if _, _, err := parseEnvelope(value[:n], keyCommands); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("codec %d cut to %d: %v", codec, n, err)
			}
		}
	}
}

// TestWellFormedNonsenseIsRefused gives the reader wrong envelopes with right checksums.
func TestWellFormedNonsenseIsRefused(t *testing.T) {
	p := must.Get(newPacker(CodecS2))(t)
	b := (&flow{seed: 8}).block(&Block{}, 200)
	tests := []struct {
		name   string
		change func(e *envelope)
	}{
		{"kind", func(e *envelope) { e.kind = keyFills }},
		{"codec", func(e *envelope) { e.codec = 3 }},
		{"no records", func(e *envelope) { e.count = 0 }},
		{"too many records", func(e *envelope) { e.count, e.raw = 1<<20, 1<<26 }},
		{"raw size", func(e *envelope) { e.raw += 64 }},
		{"raw size and count", func(e *envelope) { e.raw += 64; e.count++ }},
		{"packed size", func(e *envelope) { e.packed-- }},
		{"first", func(e *envelope) { e.first = 0 }},
		{"plain", func(e *envelope) { e.codec = CodecNone }},
		{"other packing", func(e *envelope) { e.codec = CodecZstd }},
		{"flags", func(e *envelope) { e.flags |= 2 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := envelope{kind: keyCommands, count: 200, first: 1}
			p.pack(&e, b.records)
			tt.change(&e)
			value := p.seal(&e, &e.chain)
			value = value[:envelopeBytes+min(int(e.packed)+1, len(value)-envelopeBytes)]
			e.put(value)
			binary.LittleEndian.PutUint32(value[crcOffset:], checksum(value))
			got, payload, err := parseEnvelope(value, keyCommands)
			if err == nil {
				err = newUnpacker().unpack(make([]byte, got.raw), &got, payload)
			}
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFullBlockFits(t *testing.T) {
	if got, want := len((&flow{}).block(&Block{}, MaxBlockCommands).records),
		MaxBlockCommands*matcher.CommandBytes; got != want {
		t.Fatalf("%d bytes, want %d", got, want)
	}
}

// TestRealisticFlowPacksTight holds the size target: commands, fills and
// envelopes together, half of the commands with a random 8-byte key.
func TestRealisticFlowPacksTight(t *testing.T) {
	j := openNew(t, t.TempDir(), Options{Fatal: func(err error) { t.Error(err) }})
	f := &flow{seed: 42}
	appendAll(t, j, f, 8192, 8192, 8192, 8192)
	m := j.Metrics()
	perCommand := float64(m.CommitBytes) / float64(m.Durable)
	t.Logf("%.2f bytes a command", perCommand)
	if perCommand > 15 {
		t.Errorf("%.2f bytes a command, want at most 15", perCommand)
	}
	must.OK(t, j.Close())
}

func FuzzBlockDecode(f *testing.F) {
	for _, codec := range []Codec{CodecNone, CodecS2, CodecZstd} {
		p := must.Get(newPacker(codec))(f)
		b := (&flow{seed: 8, idsEvery: 2}).block(&Block{}, 9)
		for kind, raw := range map[byte][]byte{keyCommands: b.records, keyFills: b.records,
			keyIDs: b.ids} {
			e := envelope{kind: kind, count: 9, first: 1, ids: b.idCount}
			if kind == keyIDs {
				e.count = b.idCount
			}
			p.pack(&e, raw)
			f.Add(kind, slices.Clone(p.seal(&e, &e.chain)))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, value []byte) {
		// With its checksum made right, so that the rest of the reader is reached.
		if len(value) >= envelopeBytes {
			value = slices.Clone(value)
			binary.LittleEndian.PutUint32(value[crcOffset:], checksum(value))
		}
		e, payload, err := parseEnvelope(value, kind)
		if err == nil && e.raw <= 1<<20 {
			raw := make([]byte, e.raw)
			err = newUnpacker().unpack(raw, &e, payload)
			if err == nil && kind == keyIDs {
				ids := ClientIDs{first: e.first, raw: raw}
				if err = ids.check(e.first+100, e.count); err == nil {
					n := uint32(0)
					for _, id, ok := ids.Next(); ok; _, id, ok = ids.Next() {
						if n++; len(id) == 0 || len(id) > MaxClientID {
							t.Fatalf("client id of %d bytes", len(id))
						}
					}
					if n != e.count {
						t.Fatalf("%d client ids, want %d", n, e.count)
					}
				}
			}
		}
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// A block writes a fill straight from its event, into memory that held others.
func TestBlockWritesTheFillThatAnEventStates(t *testing.T) {
	const seed = 17
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var want, got Block
	for range 3 {
		want.Reset()
		got.Reset()
		for i := range got.fills[:cap(got.fills)] {
			got.fills[:cap(got.fills)][i] = 0xff
		}
		for range 100 {
			var ev matcher.Event
			for _, line := range []*matcher.Command{(*matcher.Command)(unsafe.Pointer(&ev)), ev.Cmd()} {
				for i := range line.Bytes() {
					line.Bytes()[i] = byte(rng.Uint32())
				}
			}
			fill := ev.Fill()
			want.Fill(&fill)
			got.executed(&ev)
		}
		if !bytes.Equal(got.fills, want.fills) || got.fillCount != want.fillCount {
			t.Fatal("the fills differ from what their events state")
		}
	}
}
