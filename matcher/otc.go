package matcher

// ContractTerms are the terms of an OTC contract: an interest-rate swap, or the option on one. A
// booking asks for these terms and the engine keeps nothing else.
type ContractTerms struct {
	AccountID  uint32
	Side       Side   // Buy receives the fixed rate, Sell pays it
	Notional   int32  // whole currency units, at least 1
	FixedRate  int64  // x 1e6; negative is valid, 0 is not
	Effective  uint16 // epoch days, as are Maturity and Expiry
	Maturity   uint16 // after Effective
	Convention uint32 // see ConventionAt
	Swaption   bool
	Expiry     uint16        // a swaption's, not after Effective; 0 for a swap
	Style      ExerciseStyle // a swaption's; 0 for a swap
}

// How a swaption's three terms share Command.SecurityID, in bits.
const (
	swaptionStyleAt  = 8
	swaptionExpiryAt = 16
)

// maturityAt is where the maturity day starts in Command.OrderRef, behind the effective day.
const maturityAt = 16

// Command returns the SWAP_BOOK or SWAPTION_BOOK that asks for these terms. The caller sets the
// idempotency key (PriceTicks) and the event time. It checks nothing: Representable says whether
// the engine takes the terms.
//
// A swap does not carry Expiry and Style. A swaption's convention that does not fit eight bits
// becomes an index that no build knows, so the engine refuses it.
func (t *ContractTerms) Command() Command {
	kind, word := SwapBook, t.Convention
	if t.Swaption {
		kind = SwaptionBook
		word = min(t.Convention, noConvention) |
			uint32(t.Style)<<swaptionStyleAt | uint32(t.Expiry)<<swaptionExpiryAt
	}
	c := NewCommand(kind)
	c.AccountID, c.Side = t.AccountID, t.Side
	c.Qty, c.LimitPx = t.Notional, t.FixedRate
	c.OrderRef = uint32(t.Effective) | uint32(t.Maturity)<<maturityAt
	c.SecurityID = word
	return c
}

// ContractTerms reads the terms of a booking as they stand in the record, whether or not the engine
// would accept them. It returns false for any other command.
func (c *Command) ContractTerms() (t ContractTerms, ok bool) {
	if !c.books() {
		return ContractTerms{}, false
	}
	t = ContractTerms{
		AccountID: c.AccountID, Side: c.Side, Notional: c.Qty, FixedRate: c.LimitPx,
		Effective: uint16(c.OrderRef), Maturity: uint16(c.OrderRef >> maturityAt),
		Convention: c.SecurityID,
	}
	if c.Type == SwaptionBook {
		t.Swaption = true
		t.Convention = c.SecurityID & noConvention
		t.Style = ExerciseStyle(c.SecurityID >> swaptionStyleAt)
		t.Expiry = uint16(c.SecurityID >> swaptionExpiryAt)
	}
	return t, true
}

// books reports whether the record is a booking.
func (c *Command) books() bool {
	return c.TemplateID == TemplateCommand && (c.Type == SwapBook || c.Type == SwaptionBook)
}

// Representable reports whether a contract can have these terms: what the engine requires of a
// booking before it judges any limit. No allocation.
func (t *ContractTerms) Representable() bool {
	switch {
	case t.Notional < 1 || t.FixedRate == 0 || t.Side > Sell,
		t.Maturity <= t.Effective,
		t.Convention >= uint32(len(conventions)):
		return false
	case t.Swaption:
		return t.Expiry <= t.Effective && t.Style.Known()
	}
	return true
}

// ContractInfo is a contract as the engine holds it.
type ContractInfo struct {
	ID uint64 // the InputSeq of its booking
	ContractTerms
}

// EachContract calls f for every contract, ascending by id, until f returns false. Only the owner
// may call it, between two commands.
func (e *Engine) EachContract(f func(ContractInfo) bool) {
	for i := range e.contracts.rows[:e.contracts.count] {
		if !f(e.contracts.rows[i].info()) {
			return
		}
	}
}

// info returns the row as its readers see it. The notional was an int32 when it was booked, and a
// snapshot is held to that.
func (c *contract) info() ContractInfo {
	return ContractInfo{ID: c.id, ContractTerms: ContractTerms{
		AccountID: c.account, Side: Side(c.payFixed), Notional: int32(c.notional), FixedRate: c.fixedRate,
		Effective: c.effective, Maturity: c.maturity, Convention: c.convention,
		Swaption: c.product == productSwaption, Expiry: c.expiry, Style: ExerciseStyle(c.style),
	}}
}
