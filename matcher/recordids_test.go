package matcher

import (
	"math"
	"testing"
)

// TestRecordIDsHaveOneText: what is written reads as the same number, and nothing else is read.
func TestRecordIDsHaveOneText(t *testing.T) {
	for _, n := range []uint64{1, 9, 10, 500_000, MaxOrderNumber, math.MaxInt64} {
		if got, ok := ParseTradeID(TradeID(n)); !ok || got != n {
			t.Errorf("%s: got %d, %v", TradeID(n), got, ok)
		}
		if got, ok := ParseOrderID([]byte(OrderID(n))); !ok || got != n {
			t.Errorf("%s: got %d, %v", OrderID(n), got, ok)
		}
	}
	if TradeID(42) != "trd-42" || OrderID(42) != "ord-42" ||
		TradeID(math.MaxUint64) != "trd-18446744073709551615" {
		t.Error(TradeID(42), OrderID(42), TradeID(math.MaxUint64))
	}
	for _, bad := range []string{"", "trd-", "trd-0", "trd-01", "trd-+1", "trd--1", "TRD-1", "trd-1 ",
		" trd-1", "1", "trd-x", "trd-1_0", "trd-0x1", "trd-9223372036854775808",
		"trd-99999999999999999999", "trd-1:", "trd-/1"} {
		if n, ok := ParseTradeID(bad); ok {
			t.Errorf("%q reads as trade %d", bad, n)
		}
		other := "ord" + bad[min(3, len(bad)):]
		if n, ok := ParseOrderID(other); ok && other != "ord-1" {
			t.Errorf("%q reads as order %d", other, n)
		}
	}
	if _, ok := ParseTradeID("ord-1"); ok {
		t.Error("an order's id reads as a trade's")
	}
	id := []byte("ord-17")
	if n := testing.AllocsPerRun(100, func() { ParseOrderID(id) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
