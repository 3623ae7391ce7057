package matcher

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"posttrade/ring/must"
)

// draft writes snapshots without WriteSnapshot, so that the tests of the format do not depend on
// the code that writes it.
type draft struct{ bytes.Buffer }

func (d *draft) words(values ...int64) *draft {
	for _, v := range values {
		binary.Write(&d.Buffer, binary.LittleEndian, v)
	}
	return d
}

func (d *draft) record(kind int32, columns ...int64) *draft {
	binary.Write(&d.Buffer, binary.LittleEndian, kind)
	return d.words(columns...)
}

func (d *draft) header(format int32, nextRef, highest, applied, trades int64, levels int32,
	tick int64) *draft {
	binary.Write(&d.Buffer, binary.LittleEndian, []int32{recordHeader, format})
	d.words(nextRef, highest, applied, trades)
	binary.Write(&d.Buffer, binary.LittleEndian, levels)
	return d.words(tick)
}

func (d *draft) symbol(id int32, ticker string) *draft {
	binary.Write(&d.Buffer, binary.LittleEndian, []int32{recordSymbol, id, int32(len(ticker))})
	d.WriteString(ticker)
	return d
}

// small is a genesis record of one account and one security.
func small() *Genesis {
	g := testGenesis()
	g.Accounts, g.Securities = g.Accounts[:2], g.Securities[:1]
	g.Limits.MaxAccounts, g.Limits.MaxSecurities, g.Limits.MaxContracts = 3, 2, 3
	g.Limits.MaxOpenOrders, g.Limits.RetainedOrders, g.Limits.IdempotencyCapacity = 4, 2, 3
	return g
}

// piece is a named part of a snapshot that the tests below replace.
type piece struct {
	name  string
	write func(*draft)
}

// whole is a valid snapshot of small in any of the three formats, in pieces. It is what
// WriteSnapshot writes, but made by draft.
func whole(format int32) []piece {
	contract := func(id, account int64, option ...int64) func(*draft) {
		return func(d *draft) {
			if format > 4 {
				d.record(recordContract, id, account, 1, 1_000_000, -25_000, 2, 20_000, 21_000)
			}
			if format > 5 {
				d.words(option...)
			}
		}
	}
	second := []int64{1, 19_990, 2}
	if format == 5 {
		second = nil
	}
	return []piece{
		{"header", func(d *draft) { d.header(format, 9, 8, 40, 6, 0, 1000) }},
		{"policy", func(d *draft) { d.record(recordPolicy, 3, 0, 1_000_000, 5e15) }},
		{"account 1", func(d *draft) { d.record(recordAccount, 1, 1, 500*unit) }},
		{"account 2", func(d *draft) { d.record(recordAccount, 2, 0, -500*unit) }},
		{"security", func(d *draft) { d.record(recordSecurity, 1, 1, 0, 100*unit, noon, 1) }},
		{"symbol", func(d *draft) { d.symbol(1, "AAA") }},
		{"key 1", func(d *draft) { d.record(recordIdempotency, -5, 1, 0) }},
		{"key 2", func(d *draft) { d.record(recordIdempotency, 7, 12, 0x100|int64(PriceStale)) }},
		{"key 3", func(d *draft) { d.record(recordIdempotency, 7, 30, 0x200) }},
		{"contract 1", contract(30, 1, 0, 0, 0)},
		{"contract 2", contract(31, 2, second...)},
		{"position 1", func(d *draft) { d.record(recordPosition, 2, 1, -5, 100*unit) }},
		{"position 2", func(d *draft) { d.record(recordPosition, 1, 1, 5, 100*unit) }},
		{"price", func(d *draft) { d.record(recordPrice, 1, 100*unit) }},
		{"book", func(d *draft) { d.record(recordBook, 1, 0) }},
		// Order 3 precedes order 2: a replace has sent 2 to the back of the queue.
		{"order 3", func(d *draft) {
			d.record(recordOrder, 3, 2, 1, 0, 9, 9, 99*unit, 0, 0, 0, noon, noon, 0, 9*99*unit, 9)
		}},
		{"order 2", func(d *draft) {
			d.record(recordOrder, 2, 1, 1, 0, 9, 4, 99*unit, 1, 100*unit, 5, noon, noon+1, 0, 4*99*unit, 4)
		}},
		{"order 6", func(d *draft) {
			d.record(recordOrder, 6, 1, 1, 1, 3, 3, 101*unit, 0, 0, 0, noon, noon, 0, 3*101*unit, 3)
		}},
		{"order 5", func(d *draft) {
			d.record(recordOrder, 5, 77, 12, 1, -4, -4, 0, 4, 0, 0, noon, noon, int64(UnknownAccount), 0, 0)
		}},
		{"order 4", func(d *draft) {
			d.record(recordOrder, 4, 2, 1, 1, 8, 3, 0, 3, 100*unit, 5, noon, noon, int64(Accepted), 0, 0)
		}},
		{"end", func(d *draft) { d.record(recordEnd) }},
	}
}

func assemble(pieces []piece) []byte {
	d := &draft{}
	for _, p := range pieces {
		p.write(d)
	}
	return d.Bytes()
}

func restore(t *testing.T, b []byte) *Engine {
	t.Helper()
	e := must.Get(ReadSnapshot(small(), bytes.NewReader(b)))(t)
	t.Cleanup(func() { e.Close() })
	must.OK(t, e.check())
	return e
}

func index(pieces []piece, name string) int {
	return slices.IndexFunc(pieces, func(p piece) bool { return p.name == name })
}

func only(names ...string) func([]piece) []piece {
	return func(p []piece) []piece {
		return slices.DeleteFunc(p, func(x piece) bool { return !slices.Contains(names, x.name) })
	}
}

func without(name string) func([]piece) []piece {
	return func(p []piece) []piece { return slices.Delete(p, index(p, name), index(p, name)+1) }
}

func after(name string, write func(*draft)) func([]piece) []piece {
	return func(p []piece) []piece { return slices.Insert(p, index(p, name)+1, piece{"added", write}) }
}

func again(name string) func([]piece) []piece {
	return func(p []piece) []piece { return after(name, p[index(p, name)].write)(p) }
}

func instead(name string, write func(*draft)) func([]piece) []piece {
	return func(p []piece) []piece { p[index(p, name)].write = write; return p }
}

func header(format int32, nextRef, highest, applied, trades int64, levels int32,
	tick int64) func([]piece) []piece {
	return instead("header", func(d *draft) {
		d.header(format, nextRef, highest, applied, trades, levels, tick)
	})
}

// edited overwrites one column of a piece.
func edited(name string, offset int, value int64) func([]piece) []piece {
	return func(p []piece) []piece {
		d := &draft{}
		p[index(p, name)].write(d)
		binary.LittleEndian.PutUint64(d.Bytes()[offset:], uint64(value))
		return instead(name, func(to *draft) { to.Write(d.Bytes()) })(p)
	}
}

func edits(all ...func([]piece) []piece) func([]piece) []piece {
	return func(p []piece) []piece {
		for _, f := range all {
			p = f(p)
		}
		return p
	}
}
