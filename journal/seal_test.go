package journal

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// linked.stream is a Transfer that a build wrote whose blocks had version 1: the flow of seed 21
// with every third client id, in commits of 5, 1, 40 and 14.
//
//go:embed testdata/linked.stream
var linkedFiles embed.FS

// The end of that stream: commands, and the chain in hex, as that build gave them.
const (
	linkedCommands = 60
	linkedChain    = "b5f16224b1977c121eb231299717bafddb31908fd4b5e3d3d6fc09b1c9159fe1"
)

func linkedFlow() flow { return flow{seed: 21, idsEvery: 3} }

// TestAJournalOfLinkedBlocksGoesOnWithSealedOnes: what an older build has written keeps its bytes
// and its chain, and the next commit hangs on it.
func TestAJournalOfLinkedBlocksGoesOnWithSealedOnes(t *testing.T) {
	stream := must.Get(linkedFiles.ReadFile("testdata/linked.stream"))(t)
	fs, f := vfs.NewMem(), linkedFlow()
	_, err := Receive("j", bytes.NewReader(stream), strict(t, fs))
	must.OK(t, err)
	j := must.Get(Open("j", strict(t, fs)))(t)
	expectHistory(t, j, &f, linkedCommands)
	if got := hex.EncodeToString(j.tip.chain[:]); got != linkedChain {
		t.Errorf("chain %s, want %s", got, linkedChain)
	}
	old := stored(t, j, j.tip.inputSeq, j.tip.tradeSeq)
	for key, value := range old {
		if value[0] != envelopeLinked {
			t.Errorf("key %x has version %d", key, value[0])
		}
	}

	f.inputSeq, f.tradeSeq = j.tip.inputSeq, j.tip.tradeSeq
	appendAll(t, j, &f, 1, 30)
	expectHistory(t, j, &f, linkedCommands+31)
	sealed := 0
	for key, value := range stored(t, j, j.tip.inputSeq, j.tip.tradeSeq) {
		switch before, was := old[key]; {
		case was && before != value:
			t.Errorf("key %x has changed", key)
		case !was && value[0] != envelopeSealed:
			t.Errorf("key %x has version %d", key, value[0])
		case !was:
			sealed++
		}
	}
	if sealed < 3 {
		t.Errorf("%d blocks were added, want commands, fills and client ids", sealed)
	}
	again, _, _ := streamOf(t, j)
	must.OK(t, j.Close())
	report := must.Get(Verify(context.Background(), "j", verifying(fs, linkedFlow())))(t)
	if report.InputSeq != linkedCommands+31 {
		t.Errorf("verified up to %d", report.InputSeq)
	}
	_, err = Receive("copy", bytes.NewReader(again), strict(t, fs))
	must.OK(t, err)
}

// TestTheChainCoversEveryByteOfABlock changes each byte of each block of a journal that has both
// versions, with the checksum made right. The chain of a linked block leaves its envelope out, and
// the way its payload is packed: there a change may pass, but not into a record or a client id.
func TestTheChainCoversEveryByteOfABlock(t *testing.T) {
	stream := must.Get(linkedFiles.ReadFile("testdata/linked.stream"))(t)
	fs, f := vfs.NewMem(), linkedFlow()
	_, err := Receive("j", bytes.NewReader(stream), strict(t, fs))
	must.OK(t, err)
	j := must.Get(Open("j", strict(t, fs)))(t)
	f.inputSeq, f.tradeSeq = j.tip.inputSeq, j.tip.tradeSeq
	appendAll(t, j, &f, 3, 12)
	want := must.Get(contentOf(j))(t)
	passed, step := 0, 1
	if testing.Short() {
		step = 7
	}
	for key, value := range stored(t, j, j.tip.inputSeq, j.tip.tradeSeq) {
		changed := []byte(value)
		for at := 0; at < len(changed); at += step {
			if at >= crcOffset && at < envelopeBytes {
				continue
			}
			changed[at] ^= 0x10
			binary.LittleEndian.PutUint32(changed[crcOffset:], checksum(changed))
			must.OK(t, j.db.Set([]byte(key), changed, pebble.NoSync))
			got, err := contentOf(j)
			switch {
			case errors.Is(err, ErrCorrupt), errors.Is(err, pebble.ErrNotFound):
			case err != nil:
				t.Fatalf("key %x byte %d: %v", key, at, err)
			case value[0] == envelopeSealed:
				t.Fatalf("byte %d of key %x, a sealed block, may be changed", at, key)
			case !bytes.Equal(got, want):
				t.Fatalf("byte %d of key %x changes what is read", at, key)
			default:
				passed++
			}
			changed[at] ^= 0x10
		}
		must.OK(t, j.db.Set([]byte(key), []byte(value), pebble.NoSync))
	}
	t.Logf("%d changes of linked blocks were without effect", passed)
	if passed == 0 {
		t.Error("no change passed: the linked blocks were not reached")
	}
}

// contentOf is every command, fill and client id that a walk from the first commit gives.
func contentOf(j *Journal) (content []byte, err error) {
	w := newWalker(j.db, j.seed)
	defer w.close()
	err = w.walk(0, func(d *decoded) error {
		content = append(content, recordsOf(d.commands)...)
		content = append(content, fillBytesOf(d.fills)...)
		content = append(content, d.ids.raw...)
		return nil
	})
	return content, err
}
