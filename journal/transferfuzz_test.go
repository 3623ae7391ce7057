package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/journal/transfer"
	"posttrade/ring/must"
)

// FuzzReceive gives any bytes to Receive. Receive refuses them and leaves nothing, or they are a
// journal that opens, verifies and can be sent on. Half of them get right checksums first, so that
// the code behind the checksums is reached too.
func FuzzReceive(f *testing.F) {
	stream, _ := smallStream(f)
	for _, sign := range []bool{false, true} {
		f.Add(stream, sign)
		f.Add(stream[:len(stream)/2], sign)
		f.Add(signed(framesOf(stream)[:1]), sign)
	}
	f.Fuzz(func(t *testing.T, stream []byte, sign bool) {
		if sign {
			stream = resigned(stream)
		}
		fs := vfs.NewMem()
		o := strict(t, fs)
		got, err := Receive("copy", bytes.NewReader(stream), o)
		if err != nil {
			must.Be(t, err, transfer.ErrNotWhole)
			expectNothing(t, fs, "copy")
			return
		}
		report, err := Verify(t.Context(), "copy", VerifyOptions{FS: fs, boot: "boot-1"})
		must.OK(t, err)
		c, err := Open("copy", o)
		must.OK(t, err)
		again, inputSeq, tradeSeq := streamOf(t, c)
		must.OK(t, c.Close())
		if got.InputSeq != inputSeq || got.TradeSeq != tradeSeq || report.InputSeq != inputSeq {
			t.Fatalf("received %d, %d; opened %d, %d", got.InputSeq, got.TradeSeq, inputSeq, tradeSeq)
		}
		_, err = Receive("again", bytes.NewReader(again), o)
		must.OK(t, err)
	})
}

// resigned cuts a stream into frames as far as it goes, gives each a checksum
// that fits, and ends it properly.
func resigned(stream []byte) []byte {
	if len(stream) < streamHeader {
		return stream
	}
	all := framesOf(slices.Clone(stream))
	for _, f := range all {
		recheck(f.kind, f.body)
	}
	return signed(all)
}

// recheck puts right checksums into what would be a body of its kind.
func recheck(kind byte, body []byte) {
	switch {
	case kind == keyGenesis && len(body) >= genesisHeader:
		sum := sha256.Sum256(body[genesisHeader:])
		copy(body[8:], sum[:])
		binary.LittleEndian.PutUint32(body[4:], crc32.Checksum(body[8:], castagnoli))
	case kind == keySnapshot && len(body) >= snapshotHeader:
		binary.LittleEndian.PutUint32(body[4:], crc32.Checksum(body[snapshotHeader:], castagnoli))
	case (kind == keyCommands || kind == keyFills || kind == keyIDs) && len(body) >= envelopeBytes:
		crc := crc32.Update(0, castagnoli, body[:crcOffset])
		binary.LittleEndian.PutUint32(body[crcOffset:],
			crc32.Update(crc, castagnoli, body[envelopeBytes:]))
	}
}

func TestResigningKeepsAGoodStream(t *testing.T) {
	stream, _ := smallStream(t)
	if !bytes.Equal(resigned(stream), stream) {
		t.Error("another stream")
	}
	if _, err := Receive("copy", bytes.NewReader(resigned(nil)),
		strict(t, vfs.NewMem())); !errors.Is(err, transfer.ErrNotWhole) {
		t.Errorf("nothing at all: %v", err)
	}
}
