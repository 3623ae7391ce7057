package matcher

import "math/big"

// Unit is what a Measure counts. The text is what the explanations print behind the value.
type Unit string

// The units. Values of currency, prices and basis points are x 1e6.
const (
	UnitQuantity  Unit = "quantity"
	UnitCurrency  Unit = "currency"
	UnitPrice     Unit = "price"
	UnitBps       Unit = "bps"
	UnitMillis    Unit = "ms"
	UnitOrders    Unit = "orders"
	UnitContracts Unit = "contracts"
	UnitNumber    Unit = "number"
	UnitState     Unit = "state" // a word instead of a number
)

// Scaled reports that values of the unit are x 1e6.
func (u Unit) Scaled() bool { return u == UnitCurrency || u == UnitPrice || u == UnitBps }

// Measure is one side of a check. Value is exact, also beyond 64 bits: a product of two columns may
// be, and the check that refused it computed in 128 bits.
//
// Exactly one of Value and Word is set. The zero Measure is the side of a check that does not
// exist.
type Measure struct {
	Value *big.Int // nil when Word says it
	Word  string
	Unit  Unit
}

// measure is a side that fits a column of the engine, in the column's own scale.
func measure(v int64, u Unit) Measure { return Measure{Value: big.NewInt(v), Unit: u} }

// word is a side that has no number: a flag, or whether a thing exists.
func word(s string) Measure { return Measure{Word: s, Unit: UnitState} }

// sumOf adds beyond 64 bits: the explanation of a sum that overflowed shows the true sum.
func sumOf(u Unit, terms ...int64) Measure {
	sum := new(big.Int)
	for _, t := range terms {
		sum.Add(sum, big.NewInt(t))
	}
	return Measure{Value: sum, Unit: u}
}

// product is a price x 1e6 times a quantity, so money x 1e6.
func product(px, qty int64) Measure {
	return Measure{Value: new(big.Int).Mul(big.NewInt(px), big.NewInt(qty)), Unit: UnitCurrency}
}

// offBps is how far a limit is from the market price, in basis points x 1e6, rounded up: a limit
// just beyond the collar must not be shown as equal to it. last is above 0.
func offBps(limit, last int64) Measure {
	v := big.NewInt(abs(limit - last))
	v.Mul(v, big.NewInt(10_000*PriceScale))
	v.Add(v, big.NewInt(last-1))
	return Measure{Value: v.Div(v, big.NewInt(last)), Unit: UnitBps}
}

// String is the value with its unit, or the word.
func (m Measure) String() string {
	if m.Value == nil {
		return m.Word
	}
	return m.Decimal() + " " + string(m.Unit)
}

// Decimal is the value as an exact decimal without trailing zeros, in whole units of currency,
// price or basis points. It is empty for a Measure that is a word.
func (m Measure) Decimal() string {
	if m.Value == nil {
		return ""
	}
	if !m.Unit.Scaled() {
		return m.Value.String()
	}
	text := new(big.Rat).SetFrac(m.Value, big.NewInt(PriceScale)).FloatString(6)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text
}
