package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Measured is one comparator's result: what the same machine does, in the same run, without the
// journal. The journal's own figures are read beside it, because machines and disks differ.
type Measured struct {
	Name string
	// Records of 64 bytes that were durable within Seconds.
	Records uint64
	Seconds float64
	P50     time.Duration // of one commit or write, issue to durable
	P99     time.Duration
	Max     time.Duration
}

// PerSecond is the rate of records.
func (m Measured) PerSecond() float64 { return float64(m.Records) / m.Seconds }

// compareInFlight is how many commits a comparator pipelines; the bench that the targets were set
// with had as many. Its writer waits when so many have not been synced.
const compareInFlight = 64

// CompareKeyPerRecord writes durable 64-byte records to a bare Pebble store in dir (which must not
// exist), one key a record, in batches of 1,024, pipelined, for d. The store stays in dir, for the
// caller to remove.
func CompareKeyPerRecord(ctx context.Context, dir string, d time.Duration) (Measured, error) {
	const perBatch = 1024
	r := rand.New(rand.NewPCG(1, 2))
	var value [recordBytes]byte
	seq := uint64(0)
	return comparePebble(ctx, "pebble key per record, batches of 1024, pipelined", dir, d, perBatch,
		func(b *pebble.Batch) error {
			for range perBatch {
				plainRecord(value[:], seq, r)
				if err := b.Set(binary.BigEndian.AppendUint64(nil, seq), value[:], nil); err != nil {
					return err
				}
				seq++
			}
			return nil
		})
}

// CompareBlockAsValue does the same with one key per n records, stored as they are: what the
// journal would be without packing.
func CompareBlockAsValue(ctx context.Context, dir string, d time.Duration,
	n int) (Measured, error) {
	r := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, n*recordBytes)
	for i := range n {
		plainRecord(value[i*recordBytes:], uint64(i), r)
	}
	seq := uint64(0)
	return comparePebble(ctx, fmt.Sprintf("pebble block of %d as value, pipelined", n), dir, d, n,
		func(b *pebble.Batch) error {
			binary.LittleEndian.PutUint64(value, seq)
			err := b.Set(binary.BigEndian.AppendUint64(nil, seq), value, nil)
			seq += uint64(n)
			return err
		})
}

// CompareBlockPacked does the same with the records transposed and s2-packed: the journal's store
// without chain, anchor and answers.
func CompareBlockPacked(ctx context.Context, dir string, d time.Duration, n int) (Measured, error) {
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, n*recordBytes)
	for i := range n {
		plainRecord(raw[i*recordBytes:], uint64(i), r)
	}
	p, err := newPacker(CodecS2)
	if err != nil {
		return Measured{}, err
	}
	seq := uint64(0)
	return comparePebble(ctx, fmt.Sprintf("pebble transposed + s2 block of %d, pipelined", n),
		dir, d, n,
		func(b *pebble.Batch) error {
			binary.LittleEndian.PutUint64(raw, seq)
			// of fills: transposed, not grouped
			e := envelope{kind: keyFills, count: uint32(n), first: seq + 1}
			p.pack(&e, raw)
			err := b.Set(binary.BigEndian.AppendUint64(nil, seq), p.unchained(&e), nil)
			seq += uint64(n)
			return err
		})
}

// unchained is seal without the chain.
func (p *packer) unchained(e *envelope) []byte {
	out := p.out[:envelopeBytes+int(e.packed)]
	e.put(out)
	binary.LittleEndian.PutUint32(out[crcOffset:], checksum(out))
	return out
}

// plainRecord is a record like those of the bench behind the targets: a sequence, times and
// references that rise, prices and quantities from small ranges. What it holds decides how well a
// block packs.
func plainRecord(b []byte, seq uint64, r *rand.Rand) {
	binary.LittleEndian.PutUint64(b[0:], seq)
	binary.LittleEndian.PutUint64(b[8:], 1700000000000000000+seq*1731)
	binary.LittleEndian.PutUint64(b[16:], seq*3+uint64(r.IntN(3)))
	binary.LittleEndian.PutUint64(b[24:], seq-uint64(r.IntN(5000)))
	binary.LittleEndian.PutUint32(b[32:], uint32(32768+r.IntN(300)))
	binary.LittleEndian.PutUint32(b[36:], uint32(1+r.IntN(100)))
	binary.LittleEndian.PutUint16(b[40:], uint16(r.IntN(32)))
	b[42], b[43] = byte(r.IntN(2)), byte(r.IntN(3))
	binary.LittleEndian.PutUint32(b[44:], uint32(r.IntN(5000)))
	binary.LittleEndian.PutUint64(b[48:], 0)
	binary.LittleEndian.PutUint64(b[56:], uint64(r.IntN(5000)))
}

// comparePebble fills and applies batches for d and waits for all of them. One goroutine applies, a
// second waits for the syncs in order. A time is counted from before the filling of a batch.
func comparePebble(ctx context.Context, name, dir string, d time.Duration, perBatch int,
	fill func(*pebble.Batch) error) (m Measured, err error) {
	m.Name = name
	failed := newLatch(func(error) {})
	db, err := openStore(dir, &pebble.Options{
		FS: watch(vfs.Default, failed), Logger: storeLog{discardLogger{}, failed}, MemTableSize: 64 << 20,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4, L0StopWritesThreshold: 1000, BytesPerSync: 1 << 20,
	}, failed)
	if err != nil {
		return m, err
	}
	defer func() {
		if failed.Err() == nil {
			err = errors.Join(err, closeStore(db, failed))
		}
	}()
	type flight struct {
		batch *pebble.Batch
		start time.Time
	}
	flights := make(chan flight, compareInFlight)
	var took []time.Duration
	done := make(chan error, 1)
	go func() {
		var err error
		for f := range flights {
			err = errors.Join(err, f.batch.SyncWait())
			took = append(took, time.Since(f.start))
			err = errors.Join(err, f.batch.Close())
		}
		done <- err
	}()
	start := time.Now()
	for err == nil && ctx.Err() == nil && time.Since(start) < d {
		b := db.NewBatchWithSize(perBatch * 90)
		f := flight{b, time.Now()}
		if err = fill(b); err == nil {
			err = guard(func() error { return db.ApplyNoSyncWait(b, pebble.Sync) })
		}
		if err == nil {
			flights <- f
			m.Records += uint64(perBatch)
		}
	}
	close(flights)
	err = errors.Join(err, <-done, failed.Err(), ctx.Err())
	m.Seconds = time.Since(start).Seconds()
	m.spread(took)
	return m, err
}

// CompareRawWrites writes size bytes and syncs, over and over, into a file in dir that was written
// in full before: the floor of a commit. No write makes the file longer, so a sync need not write
// its size. The file is removed.
func CompareRawWrites(ctx context.Context, dir string, d time.Duration,
	size int) (m Measured, err error) {
	const fileBytes = 64 << 20
	m.Name = fmt.Sprintf("raw preallocated write of %d bytes + fdatasync", size)
	f, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		return m, fmt.Errorf("journal: compare: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := io.CopyN(f, zeros{}, fileBytes); err != nil {
		return m, fmt.Errorf("journal: compare: %w", err)
	}
	if err := f.Sync(); err != nil {
		return m, fmt.Errorf("journal: compare: %w", err)
	}
	r, buf := rand.New(rand.NewPCG(3, 4)), make([]byte, size)
	for i := range buf {
		buf[i] = byte(r.Uint32())
	}
	var took []time.Duration
	start := time.Now()
	for at := int64(0); ctx.Err() == nil && time.Since(start) < d; at += int64(size) {
		if at+int64(size) > fileBytes {
			at = 0
		}
		t := time.Now()
		if _, err := f.WriteAt(buf, at); err != nil {
			return m, fmt.Errorf("journal: compare: %w", err)
		}
		if err := syncData(f); err != nil {
			return m, fmt.Errorf("journal: compare: %w", err)
		}
		took = append(took, time.Since(t))
	}
	m.Records, m.Seconds = uint64(len(took)*size/recordBytes), time.Since(start).Seconds()
	m.spread(took)
	return m, ctx.Err()
}

// spread sets the quantiles. It sorts took.
func (m *Measured) spread(took []time.Duration) {
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	m.P50, m.P99, m.Max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
}
