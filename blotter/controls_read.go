package blotter

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// Account is an account's control flag, and the version of the control that set it: 0 from the
// genesis record.
type Account struct {
	ID      uint32
	Enabled bool
	ByHand  bool // an operator has set Enabled, and the source has not set it since
	Version int64
}

// Security is a security's control flags and prices. Version is the version of the latest security
// or restriction control.
type Security struct {
	ID         uint32
	Ticker     string
	Known      bool // a control or the genesis record has made it tradable
	Enabled    bool
	Halted     bool
	Restricted bool
	Version    int64

	EnabledByHand, HaltedByHand bool // an operator has set the flag; see Account

	MarketPx     int64 // from the newest trade or tick x 1e6, 0 = none yet
	MarketMillis int64 // its event time
	LastTradePx  int64 // price of the last fill x 1e6, 0 = none yet
}

// Policy holds the values that POLICY_CONTROL sets. Money is x 1e6.
type Policy struct {
	Version                  int64
	KillSwitch               bool
	MaxPositionQty           int64
	MaxConcentrationNotional int64
}

// read finds an account; entries of the index are only ever added, so a reader without a lock
// misses at most an account that is being added.
func (t *tables) read(id uint32) (at int, row accountRow, ok bool) {
	mask := len(t.index) - 1
	for home := homeOf(id, t.shift); ; home++ {
		word := atomic.LoadUint64(&t.index[home&mask])
		if word == 0 {
			return 0, row, false
		}
		if uint32(word>>32) == id {
			at = int(uint32(word)) - 1
			slot := &t.accounts[at]
			copyWhole(&slot.lock, wordsOf(&row), wordsOf(&slot.row))
			return at, row, true
		}
	}
}

func (r *accountRow) account() Account {
	return Account{
		ID: r.id, Enabled: r.flags&accountEnabled != 0, ByHand: r.flags&accountByHand != 0,
		Version: r.version,
	}
}

// Account returns an account, false if it is not known. Any goroutine.
func (v *Views) Account(id uint32) (Account, bool) {
	_, row, ok := v.tables.Load().read(id)
	if !ok {
		return Account{}, false
	}
	return row.account(), true
}

// Accounts returns all accounts, ascending. Any goroutine. It allocates, and each row is whole; two
// rows may be of different moments.
func (v *Views) Accounts() []Account {
	all := make([]Account, v.accounts.count.Load())
	t := v.tables.Load() // loaded after the count: these tables hold that many
	var row accountRow
	for i := range all {
		slot := &t.accounts[i]
		copyWhole(&slot.lock, wordsOf(&row), wordsOf(&slot.row))
		all[i] = row.account()
	}
	slices.SortFunc(all, func(a, b Account) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// registered reports whether an id names a security.
func (v *Views) registered(id uint32) bool {
	return id != 0 && int64(id) <= v.securities.count.Load()
}

// Security returns a security, false if none is registered under the id. Flags and prices are of
// one moment. Any goroutine.
func (v *Views) Security(id uint32) (Security, bool) {
	if !v.registered(id) {
		return Security{}, false
	}
	var row securityRow
	slot := &v.tables.Load().securities[id-1]
	copyWhole(&slot.lock, wordsOf(&row), wordsOf(&slot.row))
	return Security{
		ID: id, Ticker: string(row.ticker[:row.tickerBytes]),
		Known:   row.flags&flagKnown != 0,
		Enabled: row.flags&flagEnabled != 0, Halted: row.flags&flagHalted != 0,
		Restricted: row.flags&flagRestricted != 0, Version: row.version,
		EnabledByHand: row.flags&flagEnabledByHand != 0,
		HaltedByHand:  row.flags&flagHaltedByHand != 0,
		MarketPx:      row.market, MarketMillis: row.marketTime, LastTradePx: row.traded,
	}, true
}

// Tradable reports that the engine trades a security: a ticker has its number from its registration
// on, and is traded from its first control on. Any goroutine; it allocates nothing.
func (v *Views) Tradable(id uint32) bool {
	if !v.registered(id) {
		return false
	}
	var row securityRow
	slot := &v.tables.Load().securities[id-1]
	copyWhole(&slot.lock, wordsOf(&row), wordsOf(&slot.row))
	return row.flags&flagKnown != 0
}

// Securities returns all securities, ascending by id. Any goroutine.
func (v *Views) Securities() []Security {
	all := make([]Security, v.securities.count.Load())
	for i := range all {
		all[i], _ = v.Security(uint32(i + 1))
	}
	return all
}

// Policy returns the policy in force, as of one command. Any goroutine.
func (v *Views) Policy() Policy {
	var row policyRow
	copyWhole(&v.policy.lock, wordsOf(&row), wordsOf(&v.policy.row))
	return Policy{
		Version: row.version, KillSwitch: row.kill == 1,
		MaxPositionQty: row.maxPosition, MaxConcentrationNotional: row.maxConcentration,
	}
}
