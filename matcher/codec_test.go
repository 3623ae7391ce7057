package matcher

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// The bytes of a record, field by field, as journals store them permanently.
func TestCommandGoldenBytes(t *testing.T) {
	order := NewCommand(OrderNew)
	order.InputSeq, order.EventTimeMillis = 0x0102030405060708, 0x1112131415161718
	order.LimitPx, order.PriceTicks = 0x2122232425262728, 0x3132333435363738
	order.OrderRef, order.AccountID, order.SecurityID = 0x41424344, 0x51525354, 0x61626364
	order.Qty, order.LeaderEpoch, order.Side, order.Flags = 0x71727374, 0x01020304, Sell,
		FlagPostOnly|FlagShadow
	extract := NewRiskExtract(0x0102030405060708, 0x11121314)
	extract.InputSeq = 9
	symbol := NewSymbolRegister("BRK.B")
	symbol.InputSeq = 7
	order.Version, symbol.Version, extract.Version = RecordVersion, RecordVersion, RecordVersion
	tests := []struct {
		name string
		give Command
		want string
	}{
		{"order", order,
			"380001006f000200 0807060504030201 1817161514131211 2827262524232221 3837363534333231" +
				"44434241 54535251 64636261 74737271 04030201 01 01 0900"},
		{"symbol", symbol, "280007006f000200 0700000000000000 42524b2e42" + strings.Repeat("00", 43)},
		{"extract", extract, "180008006f000200 0900000000000000 0807060504030201 14131211 00000000" +
			strings.Repeat("00", 32)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want, err := hex.DecodeString(strings.ReplaceAll(tt.want, " ", ""))
			must.OK(t, err)
			if got := tt.give.Bytes()[:]; !bytes.Equal(got, want) {
				t.Errorf("got  %x\nwant %x", got, want)
			}
			back, err := Decode(want)
			if err != nil || back != tt.give {
				t.Errorf("decoded %+v, %v; want %+v", back, err, tt.give)
			}
		})
	}
	if ticker, err := symbol.Symbol(); ticker != "BRK.B" || err != nil {
		t.Errorf("symbol %q, %v", ticker, err)
	}
	if day, version, err := extract.Extract(); day != 0x0102030405060708 || version != 0x11121314 ||
		err != nil {
		t.Errorf("extract %d, %d, %v", day, version, err)
	}
	if _, err := order.Symbol(); !errors.Is(err, ErrTemplate) {
		t.Errorf("an order's symbol: %v", err)
	}
	if _, _, err := order.Extract(); !errors.Is(err, ErrTemplate) {
		t.Errorf("an order's extract: %v", err)
	}
}

// older returns a record as a build that did not know version 2 wrote it.
func older(c Command) Command {
	c.Version = 1
	return c
}

func TestDecodeRefusesEachFaultWithItsOwnError(t *testing.T) {
	order, symbol, extract := NewCommand(OrderNew), NewSymbolRegister("AAA"), NewRiskExtract(1, 1)
	full := NewSymbolRegister(strings.Repeat("X", TickerBytes))
	edit := func(c Command, offset int, value byte) []byte {
		b := bytes.Clone(c.Bytes()[:])
		b[offset] = value
		return b
	}
	tests := []struct {
		name string
		give []byte
		want error
	}{
		{"nothing", nil, ErrLength},
		{"one byte less", order.Bytes()[:63], ErrLength},
		{"one byte more", append(order.Bytes()[:], 0), ErrLength},
		{"schema", edit(order, 4, 0x70), ErrSchema},
		{"schema's upper byte", edit(order, 5, 1), ErrSchema},
		{"version", edit(order, 6, SchemaVersion+1), ErrVersion},
		{"version 0", edit(order, 6, 0), ErrVersion},
		{"template 0", edit(order, 2, 0), ErrTemplate},
		{"template 2", edit(order, 2, 2), ErrTemplate},
		{"block length", edit(order, 0, 57), ErrBlockLength},
		{"symbol's block length", edit(symbol, 0, 56), ErrBlockLength},
		{"extract's block length", edit(extract, 0, 56), ErrBlockLength},
		{"type 0", edit(order, 60, 0), ErrCommandType},
		{"type 18", edit(order, 60, 18), ErrCommandType},
		{"a note without parts", edit(order, 60, 15), ErrNote},
		{"type 14 of version 1", edit(older(NewCommand(CapacityControl)), 60, 14), ErrCommandType},
		{"side 2", edit(order, 61, 2), ErrSide},
		{"security control 16", edit(NewCommand(SecurityControl), 61, 16), ErrSide},
		{"security control 4 of version 1", edit(older(NewCommand(SecurityControl)), 61, 4), ErrSide},
		{"account control 2", edit(NewCommand(AccountControl), 61, 2), ErrSide},
		{"account control 4 of version 1", edit(older(NewCommand(AccountControl)), 61, 4), ErrSide},
		{"restriction control 4", edit(NewCommand(RestrictionControl), 61, 4), ErrSide},
		{"flag bit 4", edit(order, 62, 1<<4), ErrFlags},
		{"flag bit 15", edit(order, 63, 1<<7), ErrFlags},
		{"no ticker", edit(symbol, 16, 0), ErrTicker},
		{"a gap in the ticker", edit(symbol, 17, 0), ErrTicker},
		{"a blank in the ticker", edit(symbol, 17, ' '), ErrTicker},
		{"no ASCII in the ticker", edit(symbol, 17, 0x80), ErrTicker},
		{"a byte behind the ticker", edit(symbol, 47, 'A'), ErrTicker},
		{"a byte behind the block", edit(full, 48, 1), ErrPadding},
		{"the last byte", edit(symbol, 63, 1), ErrPadding},
		{"extract's reserved word", edit(extract, 28, 1), ErrPadding},
		{"a byte behind the extract", edit(extract, 32, 1), ErrPadding},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c, err := Decode(tt.give); !errors.Is(err, tt.want) || c != (Command{}) {
				t.Errorf("got %+v, %v; want %v", c, err, tt.want)
			}
		})
	}
	for typ := OrderNew; typ <= SwaptionBook; typ++ {
		c := NewCommand(typ)
		if _, err := Decode(c.Bytes()[:]); err != nil {
			t.Errorf("type %d: %v", typ, err)
		}
	}
	halted := NewCommand(SecurityControl)
	halted.Side = SecurityEnabled | SecurityHalted
	if _, err := Decode(halted.Bytes()[:]); err != nil {
		t.Errorf("halted: %v", err)
	}
}

func TestNamesOfReasonsAndStates(t *testing.T) {
	if got := SelfTradePrevented.String() + " " +
		ReasonCount.String(); got != "SELF_TRADE_PREVENTED UNKNOWN" {
		t.Error(got)
	}
	if got := StatusRejected.String() + " " + OrderStatus(5).String(); got != "REJECTED UNKNOWN" {
		t.Error(got)
	}
	for r := Accepted; r < ReasonCount; r++ {
		if r.String() == "" {
			t.Errorf("reason %d has no name", r)
		}
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range []Command{
		NewCommand(OrderNew), NewCommand(SecurityControl), NewSymbolRegister("AAA"), NewRiskExtract(1, 2),
	} {
		f.Add(c.Bytes()[:])
	}
	for _, terms := range []ContractTerms{swap(), swaption()} {
		c := terms.Command()
		f.Add(c.Bytes()[:])
		c.Version = OldestVersion
		f.Add(c.Bytes()[:])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(b)
		if err != nil {
			if c != (Command{}) {
				t.Errorf("%v, and yet %+v", err, c)
			}
			return
		}
		if !bytes.Equal(c.Bytes()[:], b) {
			t.Errorf("decoded and encoded again\n got %x\nwant %x", c.Bytes()[:], b)
		}
		// Terms that a contract can have are packed in only one way.
		if terms, ok := c.ContractTerms(); ok && terms.Representable() {
			again := terms.Command()
			again.InputSeq, again.EventTimeMillis, again.PriceTicks = c.InputSeq, c.EventTimeMillis,
				c.PriceTicks
			again.Version, again.LeaderEpoch, again.Flags = c.Version, c.LeaderEpoch, c.Flags
			if again != c {
				t.Errorf("%+v packed again\n got %x\nwant %x", terms, again.Bytes()[:], b)
			}
		}
	})
}
