package journal

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// benchBlocks makes count blocks of n commands that continue each other when
// renumbered; the content repeats after count blocks.
func benchBlocks(count, n int) []*Block {
	f := &flow{seed: 42}
	blocks := make([]*Block, count)
	for i := range blocks {
		blocks[i] = f.block(&Block{}, n)
	}
	return blocks
}

// renumber moves a block to the given place in the history.
func renumber(b *Block, inputSeq, tradeSeq uint64) {
	b.first = inputSeq + 1
	for i := 0; i < len(b.records); i += recordBytes {
		inputSeq++
		putLE64(b.records[i+8:], inputSeq)
	}
	for i := 0; i < len(b.fills); i += recordBytes {
		tradeSeq++
		putLE64(b.fills[i:], tradeSeq)
	}
}

func BenchmarkBlock(b *testing.B) {
	for _, codec := range []Codec{CodecNone, CodecS2, CodecZstd} {
		for _, n := range []int{1, 64, 1024, 8192} {
			blocks := benchBlocks(16, n)
			b.Run(fmt.Sprintf("op=pack/codec=%d/batch=%d", codec, n), func(b *testing.B) {
				p := must.Get(newPacker(codec))(b)
				var e envelope
				bytes, i := 0, 0
				b.ReportAllocs()
				for b.Loop() {
					e = envelope{kind: keyCommands, count: uint32(n)}
					p.pack(&e, blocks[i%16].records)
					bytes += len(p.seal(&e, &e.chain))
					i++
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i*n), "ns/command")
				b.ReportMetric(float64(bytes)/float64(i*n), "B/command")
			})
			b.Run(fmt.Sprintf("op=unpack/codec=%d/batch=%d", codec, n), func(b *testing.B) {
				p := must.Get(newPacker(codec))(b)
				e := envelope{kind: keyCommands, count: uint32(n), first: 1}
				p.pack(&e, blocks[0].records)
				value := slices.Clone(p.seal(&e, &e.chain))
				u, dst := newUnpacker(), make([]byte, n*recordBytes)
				var zero [chainBytes]byte
				i := 0
				for b.Loop() {
					e, payload, err := parseEnvelope(value, keyCommands)
					if err == nil {
						err = u.unpack(dst, &e, payload)
					}
					if err != nil {
						b.Fatal(err)
					}
					u.follows(&e, &zero, value, dst)
					i++
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i*n), "ns/command")
			})
		}
	}
}

func BenchmarkJournal(b *testing.B) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		for _, n := range []int{256, 1024, 8192} {
			b.Run(fmt.Sprintf("op=append/mode=%s/batch=%d", mode, n), func(b *testing.B) {
				j, err := Open(b.TempDir(), Options{Durability: mode})
				must.OK(b, err)
				must.OK(b, j.Create(testGenesis))
				blocks := benchBlocks(16, n)
				var last *Commit
				i := 0
				for b.Loop() {
					block := blocks[i%16]
					renumber(block, j.tip.inputSeq, j.tip.tradeSeq)
					last, err = j.Append(block)
					must.OK(b, err)
					i++
				}
				must.OK(b, last.Wait())
				m := j.Metrics()
				b.ReportMetric(float64(m.Durable)/b.Elapsed().Seconds()/1e6, "Mcommands/s")
				b.ReportMetric(float64(m.CommitBytes)/float64(m.Durable), "B/command")
				b.ReportMetric(float64(m.MaxCommit.Microseconds()), "max-commit-us")
				start := time.Now()
				must.OK(b, j.Replay(context.Background(), 1,
					func([]matcher.Command, ClientIDs) error { return nil }))
				b.ReportMetric(float64(m.Durable)/time.Since(start).Seconds()/1e6, "Mreplay/s")
				must.OK(b, j.Close())
			})
		}
		for _, tail := range []bool{false, true} {
			b.Run(fmt.Sprintf("op=commit-one/mode=%s/tail=%v", mode, tail), func(b *testing.B) {
				commitOne(b, Options{Durability: mode, Tail: tail})
			})
		}
	}
}

// commitOne is the time from one command to its answer, one after the other.
func commitOne(b *testing.B, o Options) {
	j := must.Get(Open(b.TempDir(), o))(b)
	must.OK(b, j.Create(testGenesis))
	answered := make(chan struct{}, 1)
	j.OnDurable(func(uint64) { answered <- struct{}{} }, nil)
	f, block := &flow{seed: 1}, &Block{}
	var took []time.Duration
	for b.Loop() {
		f.grow(block, 1)
		start := time.Now()
		if o.Tail {
			must.Get(j.publish(block))(b)
			if j.Room(1) {
				must.OK(b, j.hand(block, newCommit(j.latch)))
			}
		} else {
			must.Get(j.Append(block))(b)
			block.Reset()
		}
		<-answered
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
	must.OK(b, j.Close())
}
