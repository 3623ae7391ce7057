package matcher

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"posttrade/ring/must"
)

func TestSnapshotFormat6IsRestoredAndWrittenByteForByte(t *testing.T) {
	want := assemble(whole(6))
	e := restore(t, want)
	if got := snapshotOf(t, e); !bytes.Equal(got, want) {
		t.Errorf("written\n%s\nrestored from\n%s", hex.Dump(got), hex.Dump(want))
	}
	if e.AppliedSeq() != 40 || e.TradeSeq() != 6 {
		t.Errorf("applied %d, trades %d", e.AppliedSeq(), e.TradeSeq())
	}
	if got, want := fmt.Sprintf("%+v", e.contracts.rows[:2]),
		"[{id:30 notional:1000000 fixedRate:-25000 account:1 "+
			"convention:2 effective:20000 maturity:21000 expiry:0 payFixed:1 product:0 style:0 _:[0 0 0 "+
			"0 0 0 0]} "+
			"{id:31 notional:1000000 fixedRate:-25000 account:2 convention:2 effective:20000 "+
			"maturity:21000 "+
			"expiry:19990 payFixed:1 product:1 style:2 _:[0 0 0 0 0 0 0]}]"; got != want {
		t.Errorf("contracts\n got %s\nwant %s", got, want)
	}
}

// The records that older formats lack are empty, and the next snapshot is of format 6.
func TestSnapshotOlderFormatsRestore(t *testing.T) {
	for _, tt := range []struct {
		format    int32
		contracts int
	}{{4, 0}, {5, 2}} {
		t.Run(fmt.Sprint("format ", tt.format), func(t *testing.T) {
			d := &draft{}
			// their book had bands, and their tick meant something else
			d.header(tt.format, 9, 3, 40, 6, 4096, 5)
			rest := whole(tt.format)[1:]
			b := append(d.Bytes(), assemble(rest)...)
			e := restore(t, b)
			pieces := whole(6)
			pieces = slices.DeleteFunc(pieces, func(p piece) bool {
				return tt.format == 4 && strings.HasPrefix(p.name, "contract")
			})
			for i := range pieces {
				if pieces[i].name == "contract 2" {
					pieces[i].write = func(d *draft) {
						d.record(recordContract, 31, 2, 1, 1_000_000, -25_000, 2, 20_000, 21_000, 0, 0, 0)
					}
				}
			}
			if got := snapshotOf(t, e); !bytes.Equal(got, assemble(pieces)) {
				t.Errorf("written\n%s\nwant\n%s", hex.Dump(got), hex.Dump(assemble(pieces)))
			}
			if e.contracts.count != tt.contracts {
				t.Errorf("%d contracts, want %d", e.contracts.count, tt.contracts)
			}
		})
	}
}

// The sizes of the records are the format's.
func TestSnapshotRecordSizes(t *testing.T) {
	sizes := map[string]int{}
	for _, format := range []int32{5, 6} {
		for _, p := range whole(format) {
			d := &draft{}
			p.write(d)
			sizes[fmt.Sprint(p.name, "/", format)] = d.Len()
		}
	}
	for name, want := range map[string]int{
		"header/6": 52, "contract 1/5": 68, "contract 1/6": 92, "symbol/6": 15, "order 2/6": 124,
		"end/6": 4,
	} {
		if sizes[name] != want {
			t.Errorf("%s has %d bytes, want %d", name, sizes[name], want)
		}
	}
}

// The queue of a level has the order of the file, not the order of references.
func TestSnapshotKeepsPriority(t *testing.T) {
	e := restore(t, assemble(whole(6)))
	r := &rig{t: t, e: e, now: noon}
	r.out = NewOutlet(8, func(events []Event) { r.said = append(r.said, events...) })
	r.must(control(AccountControl, 3, 0, 1))
	var met []uint32
	for _, ev := range r.do(flags(sell(3, 13, 99), FlagIOC)) {
		if ev.Kind == EventFilled && ev.Flags&EventAggressor == 0 {
			met = append(met, ev.OrderRef)
		}
	}
	if !slices.Equal(met, []uint32{3, 2}) {
		t.Errorf("met orders %v, want 3 before 2", met)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	order := func(name string, column int, value int64) func([]piece) []piece {
		return edited(name, 4+8*column, value)
	}
	tests := []struct {
		name string
		edit func([]piece) []piece
		want error
	}{
		{"empty", only(), ErrSnapshotHeader},
		{"newer format", header(7, 9, 8, 40, 6, 0, 1000), ErrSnapshotNewer},
		{"much newer format", header(-1, 9, 8, 40, 6, 0, 1000), ErrSnapshotNewer},
		{"older format", header(3, 9, 8, 40, 6, 0, 1000), ErrSnapshotOlder},
		{"format 0", header(0, 9, 8, 40, 6, 0, 1000), ErrSnapshotOlder},
		{"no header", without("header"), ErrSnapshotHeader},
		{"nextOrderRef 0", header(6, 0, 0, 40, 6, 0, 1000), ErrSnapshotValue},
		{"nextOrderRef beyond 48 bits", header(6, 1<<48+1, 1<<48, 40, 6, 0, 1000), ErrSnapshotValue},
		{"highestIssuedRef", header(6, 9, 9, 40, 6, 0, 1000), ErrSnapshotValue},
		{"highestIssuedRef too low", header(6, 9, 7, 40, 6, 0, 1000), ErrSnapshotValue},
		{"appliedSeq", header(6, 9, 8, -1, 6, 0, 1000), ErrSnapshotValue},
		{"tradeCounter", header(6, 9, 8, 40, -6, 0, 1000), ErrSnapshotValue},
		{"a banded book", header(6, 9, 8, 40, 6, 4096, 1000), ErrSnapshotValue},
		{"another tick", header(6, 9, 8, 40, 6, 0, 10), ErrSnapshotGenesis},
		{"two headers", after("header", func(d *draft) { d.header(6, 9, 8, 40, 6, 0, 1000) }),
			ErrSnapshotSequence},
		{"no policy", without("policy"), ErrSnapshotSequence},
		{"two policies", again("policy"), ErrSnapshotSequence},
		{"kill 2", order("policy", 1, 2), ErrSnapshotValue},
		{"maxPosition", order("policy", 2, 0), ErrSnapshotValue},
		{"maxConcentration", order("policy", 3, -1), ErrSnapshotValue},
		{"unknown type", after("policy", func(d *draft) { d.record(99) }), ErrSnapshotRecord},
		{"type 0", after("policy", func(d *draft) { d.record(0) }), ErrSnapshotRecord},
		{"huge type", after("policy", func(d *draft) { d.record(-1) }), ErrSnapshotRecord},
		{"out of order", after("price", func(d *draft) { d.record(recordAccount, 3, 1, 0) }),
			ErrSnapshotSequence},
		{"account id", order("account 2", 0, 1<<32), ErrSnapshotValue},
		{"negative account id", order("account 2", 0, -1), ErrSnapshotValue},
		{"account's flag", order("account 2", 1, 2), ErrSnapshotValue},
		{"account's cash", order("account 2", 2, minInt64), ErrSnapshotValue},
		{"account twice", again("account 2"), ErrSnapshotTwice},
		{"another account", order("account 2", 0, 3), ErrSnapshotGenesis},
		{"an account less", without("account 2"), ErrSnapshotGenesis},
		{"too many accounts", after("account 2", func(d *draft) {
			d.record(recordAccount, 3, 1, 0).record(recordAccount, 4, 1, 0)
		}), ErrSnapshotCapacity},
		{"security id 0", order("security", 0, 0), ErrSnapshotValue},
		{"security id beyond", order("security", 0, 3), ErrSnapshotValue},
		{"security twice", again("security"), ErrSnapshotTwice},
		{"security's flags", order("security", 1, 4), ErrSnapshotValue},
		{"restricted 2", order("security", 2, 2), ErrSnapshotValue},
		{"lastPx", order("security", 3, -1), ErrSnapshotValue},
		{"a time without a price", order("security", 3, 0), ErrSnapshotValue},
		{"multiplier 0", order("security", 5, 0), ErrSnapshotValue},
		{"multiplier", order("security", 5, 1<<32), ErrSnapshotValue},
		{"security without a symbol", after("security", func(d *draft) {
			d.record(recordSecurity, 2, 1, 0, 0, 0, 1)
		}), ErrSnapshotValue},
		{"no symbol", without("symbol"), ErrSnapshotGenesis},
		{"another symbol", instead("symbol", func(d *draft) { d.symbol(1, "AAB") }), ErrSnapshotGenesis},
		{"symbol twice", after("symbol", func(d *draft) { d.symbol(2, "AAA") }), ErrSnapshotTwice},
		{"symbol id", instead("symbol", func(d *draft) { d.symbol(2, "AAA") }), ErrSnapshotValue},
		{"negative symbol id", instead("symbol", func(d *draft) { d.symbol(-1, "AAA") }),
			ErrSnapshotValue},
		{"symbol of no length", instead("symbol", func(d *draft) { d.symbol(1, "") }), ErrSnapshotValue},
		{"symbol of 33", instead("symbol", func(d *draft) { d.symbol(1, strings.Repeat("A", 33)) }),
			ErrSnapshotValue},
		{"symbol of 2 GB", instead("symbol", func(d *draft) {
			binary.Write(&d.Buffer, binary.LittleEndian, []int32{recordSymbol, 1, 1<<31 - 1})
		}), ErrSnapshotValue},
		{"symbol with a blank", after("symbol", func(d *draft) { d.symbol(2, "A B") }), ErrTicker},
		{"too many symbols", after("symbol", func(d *draft) { d.symbol(2, "B").symbol(3, "C") }),
			ErrSnapshotCapacity},
		{"key 0", order("key 1", 0, 0), ErrSnapshotValue},
		{"key's order", order("key 1", 1, 9), ErrSnapshotValue},
		{"key's order 0", order("key 1", 1, 0), ErrSnapshotValue},
		{"key's trade", order("key 2", 1, 41), ErrSnapshotValue},
		{"key's contract", order("key 3", 1, 0), ErrSnapshotValue},
		{"key's reason", order("key 1", 2, int64(ReasonCount)), ErrSnapshotValue},
		{"key's reason is no decision", order("key 1", 2, int64(Duplicate)), ErrSnapshotValue},
		{"key's kind", order("key 1", 2, 0x300), ErrSnapshotValue},
		{"key's decision", order("key 1", 2, -1), ErrSnapshotValue},
		{"key twice", order("key 2", 0, -5), ErrSnapshotTwice},
		{"too many keys", after("key 3", func(d *draft) { d.record(recordIdempotency, 8, 1, 0) }),
			ErrSnapshotCapacity},
		{"contract above appliedSeq", order("contract 2", 0, 41), ErrSnapshotContract},
		{"contract 0", order("contract 1", 0, 0), ErrSnapshotContract},
		{"contracts not ascending", order("contract 2", 0, 29), ErrSnapshotContract},
		{"contract twice", order("contract 2", 0, 30), ErrSnapshotContract},
		{"contract's account", order("contract 2", 1, 5), ErrSnapshotValue},
		{"contract's huge account", order("contract 2", 1, 1<<32+1), ErrSnapshotValue},
		{"contract's side", order("contract 2", 2, 2), ErrSnapshotValue},
		{"contract's notional", order("contract 2", 3, 0), ErrSnapshotValue},
		{"contract's convention", order("contract 2", 5, -1), ErrSnapshotValue},
		{"contract's effective day", order("contract 2", 6, 1<<16), ErrSnapshotValue},
		{"contract's maturity day", order("contract 2", 7, -1), ErrSnapshotValue},
		{"contract's product", order("contract 2", 8, 2), ErrSnapshotValue},
		{"contract's expiry", order("contract 2", 9, 1<<16), ErrSnapshotValue},
		{"contract's style", order("contract 2", 10, 256), ErrSnapshotValue},
		{"a swap's expiry", order("contract 1", 9, 1), ErrSnapshotValue},
		{"a swap's style", order("contract 1", 10, 1), ErrSnapshotValue},
		{"too many contracts", after("contract 2", func(d *draft) {
			for id := int64(32); id < 34; id++ {
				d.record(recordContract, id, 1, 0, 1, 1, 0, 1, 2, 0, 0, 0)
			}
		}), ErrSnapshotCapacity},
		{"position's account", order("position 1", 0, 3), ErrSnapshotValue},
		{"position's negative account", order("position 1", 0, -1), ErrSnapshotValue},
		{"position's security", order("position 1", 1, 2), ErrSnapshotValue},
		{"position's huge security", order("position 1", 1, 1<<32+1), ErrSnapshotValue},
		{"position's quantity", order("position 1", 2, minInt64), ErrSnapshotValue},
		{"a flat position's average", order("position 1", 2, 0), ErrSnapshotValue},
		{"a position without an average", order("position 1", 3, 0), ErrSnapshotValue},
		{"position's average", order("position 1", 3, -1), ErrSnapshotValue},
		{"position twice", order("position 2", 0, 2), ErrSnapshotTwice},
		{"price's security", order("price", 0, 2), ErrSnapshotValue},
		{"price 0", order("price", 1, 0), ErrSnapshotValue},
		{"price twice", again("price"), ErrSnapshotTwice},
		{"price of a security without a control", func(p []piece) []piece {
			p = after("symbol", func(d *draft) { d.symbol(2, "B") })(p)
			return after("price", func(d *draft) { d.record(recordPrice, 2, 1) })(p)
		}, ErrSnapshotValue},
		{"no book", without("book"), ErrSnapshotValue},
		{"book's security", order("book", 0, 2), ErrSnapshotValue},
		{"book's base", order("book", 1, 1), ErrSnapshotValue},
		{"book twice", again("book"), ErrSnapshotTwice},
		{"book of a security without a control", func(p []piece) []piece {
			p = after("symbol", func(d *draft) { d.symbol(2, "B") })(p)
			return after("book", func(d *draft) { d.record(recordBook, 2, 0) })(p)
		}, ErrSnapshotValue},
		{"order at nextOrderRef", order("order 2", 0, 9), ErrSnapshotOrderRef},
		{"order 0", order("order 2", 0, 0), ErrSnapshotOrderRef},
		{"negative order", order("order 2", 0, -2), ErrSnapshotOrderRef},
		{"order twice", order("order 2", 0, 3), ErrSnapshotTwice},
		{"order's account", order("order 2", 1, 3), ErrSnapshotValue},
		{"order's huge account", order("order 5", 1, 1<<32), ErrSnapshotValue},
		{"order's security", order("order 2", 2, 2), ErrSnapshotValue},
		{"order's huge security", order("order 5", 2, 1<<32), ErrSnapshotValue},
		{"order's side", order("order 2", 3, 2), ErrSnapshotValue},
		{"order's quantity", order("order 2", 4, 0), ErrSnapshotValue},
		{"order's huge quantity", order("order 2", 4, 1<<31), ErrSnapshotValue},
		{"order filled beyond its quantity", order("order 2", 4, 3), ErrSnapshotValue},
		{"a new order that was filled", order("order 3", 5, 8), ErrSnapshotValue},
		{"a partly filled order that was not", order("order 2", 5, 9), ErrSnapshotValue},
		{"a filled order with leaves", order("order 4", 7, 2), ErrSnapshotValue},
		{"a cancelled order without leaves", order("order 4", 5, 0), ErrSnapshotValue},
		{"order's price", order("order 2", 6, 0), ErrSnapshotValue},
		{"a cancelled order's price", order("order 4", 6, -1), ErrSnapshotValue},
		{"order off the grid", edits(order("order 2", 6, 99*unit+1), order("order 2", 13, 4*(99*unit+1))),
			ErrSnapshotValue},
		{"order's status", order("order 2", 7, 5), ErrSnapshotValue},
		{"order's last price", order("order 2", 8, -1), ErrSnapshotValue},
		{"order's last fill", order("order 2", 9, 10), ErrSnapshotValue},
		{"order's last fill without a price", order("order 2", 8, 0), ErrSnapshotValue},
		{"order's negative last fill", order("order 2", 9, -1), ErrSnapshotValue},
		{"an open order's reason", order("order 2", 12, 1), ErrSnapshotValue},
		{"a refused order without a reason", order("order 5", 12, 0), ErrSnapshotValue},
		{"a reason that is none", order("order 5", 12, int64(ReasonCount)), ErrSnapshotValue},
		{"reserved notional", order("order 2", 13, 1), ErrSnapshotValue},
		{"reserved notional that overflows", order("order 2", 6, 1<<62), ErrSnapshotValue},
		{"reserved notional of a terminal order", order("order 4", 13, 1), ErrSnapshotValue},
		{"reserved quantity", order("order 2", 14, 5), ErrSnapshotValue},
		{"reservations that overflow", func(p []piece) []piece {
			const most = maxInt64 / 1000 * 1000
			p = instead("order 3", func(d *draft) {
				d.record(recordOrder, 3, 2, 1, 1, 1, 1, most, 0, 0, 0, noon, noon, 0, most, 1)
			})(p)
			return instead("order 2", func(d *draft) {
				d.record(recordOrder, 2, 2, 1, 1, 1, 1, most, 0, 0, 0, noon, noon, 0, most, 1)
			})(p)
		}, ErrSnapshotValue},
		{"a crossed book", edits(order("order 6", 6, 99*unit), order("order 6", 13, 3*99*unit)),
			ErrSnapshotCrossed},
		{"an open order after the terminal ones", func(p []piece) []piece {
			i := slices.IndexFunc(p, func(x piece) bool { return x.name == "order 6" })
			p[i], p[i+1] = p[i+1], p[i]
			return p
		}, ErrSnapshotSequence},
		{"too many open orders", after("order 6", func(d *draft) {
			for ref := int64(7); ref < 9; ref++ {
				d.record(recordOrder, ref, 1, 1, 0, 1, 1, unit, 0, 0, 0, noon, noon, 0, unit, 1)
			}
		}), ErrSnapshotCapacity},
		{"too many retained orders", after("order 4", func(d *draft) {
			d.record(recordOrder, 7, 1, 1, 0, 1, 0, unit, 2, unit, 1, noon, noon, 0, 0, 0)
		}), ErrSnapshotCapacity},
		{"no END", without("end"), ErrSnapshotEnd},
		{"trailing byte", after("end", func(d *draft) { d.WriteByte(0) }), ErrSnapshotTrailing},
		{"two snapshots", func(p []piece) []piece { return append(p, p...) }, ErrSnapshotTrailing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := assemble(tt.edit(whole(6)))
			e, err := ReadSnapshot(small(), bytes.NewReader(b))
			if !errors.Is(err, tt.want) || e != nil {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("contracts in format 4", func(t *testing.T) {
		d := &draft{}
		d.header(4, 9, 8, 40, 6, 0, 1000)
		_, err := ReadSnapshot(small(), bytes.NewReader(append(d.Bytes(), assemble(whole(6)[1:])...)))
		if !errors.Is(err, ErrSnapshotRecord) {
			t.Errorf("got %v, want %v", err, ErrSnapshotRecord)
		}
	})
	t.Run("says which way to go", func(t *testing.T) {
		_, err := ReadSnapshot(small(), bytes.NewReader(assemble(header(7, 9, 8, 40, 6, 0,
			1000)(whole(6)))))
		const want = "matcher: read snapshot record=1 type=1: format 7, this build restores 4 to 6: " +
			"written in a newer format: roll forward to a build that knows it"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// The edits of the table above.

// A snapshot that is cut off anywhere is refused: inside a record it is truncated, between two it
// has no END.
func TestSnapshotCutOffAnywhereIsRefused(t *testing.T) {
	ends := map[int]bool{}
	total := 0
	for _, p := range whole(6) {
		d := &draft{}
		p.write(d)
		total += d.Len()
		ends[total] = true
	}
	b := assemble(whole(6))
	for n := range len(b) {
		want := ErrSnapshotTruncated
		switch {
		case n < 4:
			want = ErrSnapshotHeader
		case ends[n]:
			want = ErrSnapshotEnd
		}
		if _, err := ReadSnapshot(small(), bytes.NewReader(b[:n])); !errors.Is(err, want) {
			t.Fatalf("%d of %d bytes: %v, want %v", n, len(b), err, want)
		}
	}
}

// A reader that fails is not mistaken for a short file.
func TestSnapshotReaderErrorsArePassedOn(t *testing.T) {
	broken := errors.New("disk")
	b := assemble(whole(6))
	for _, n := range []int{0, 2, 4, 30, 52, 54, 60, len(b) - 2, len(b)} {
		r := io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(broken))
		if _, err := ReadSnapshot(small(), r); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

type brokenWriter struct{ room int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.room -= len(b); w.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestSnapshotWriterErrorsArePassedOn(t *testing.T) {
	g := small()
	g.Limits.IdempotencyCapacity = 10_000
	e := must.Get(New(g))(t)
	defer e.Close()
	if err := e.WriteSnapshot(&brokenWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("at the end: %v", err)
	}
	for key := range uint64(10_000) {
		_, slot := e.keys.find(orderKeys, key+1, 0)
		e.keys.remember(slot, key+1, 1, 0)
	}
	if err := e.WriteSnapshot(&brokenWriter{room: 70_000}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("in the middle: %v", err)
	}
}

func TestReadSnapshotNeedsAGenesis(t *testing.T) {
	g := small()
	g.TickPx = 0
	if _, err := ReadSnapshot(g, bytes.NewReader(assemble(whole(6)))); !errors.Is(err, ErrGenesis) {
		t.Errorf("got %v, want %v", err, ErrGenesis)
	}
}

// An accepted snapshot is one that this build would write, whatever bytes were given.
func FuzzReadSnapshot(f *testing.F) {
	for format := int32(4); format <= 6; format++ {
		f.Add(assemble(whole(format)))
	}
	e := must.Get(New(small()))(f)
	defer e.Close()
	f.Add(snapshotOf(f, e))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ReadSnapshot(small(), bytes.NewReader(b))
		if err != nil {
			if e != nil {
				t.Error("an error and an engine")
			}
			return
		}
		defer e.Close()
		if err := e.check(); err != nil {
			t.Errorf("accepted: %v", err)
		}
		again := snapshotOf(t, e)
		if binary.LittleEndian.Uint32(b[4:]) == SnapshotFormat && !bytes.Equal(again, b) {
			t.Errorf("accepted\n%s\nwritten\n%s", hex.Dump(b), hex.Dump(again))
		}
		// The restored engine goes on deciding.
		r := &rig{t: t, e: e, now: noon}
		r.out = NewOutlet(8, func(events []Event) { r.said = append(r.said, events...) })
		for _, c := range []Command{
			keyed(buy(1, 5, 100), 7), sell(2, 7, 99), trade(1, Sell, 3), cancel(1, 2),
			control(RestrictionControl, 0, 1, 1),
			booked(swap(), 7), booked(swaption(), 8), booked(swap(), 8),
		} {
			r.do(c)
		}
	})
}
