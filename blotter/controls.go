//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// accountRow is one account. It keeps its index, by which positions are addressed. No account is
// ever removed.
type accountRow struct {
	id      uint32
	flags   uint32
	version int64
	held    int64 // securities in which it ever had a fill
}

// The bits of accountRow.flags.
const (
	accountEnabled uint32 = 1 << 0
	accountByHand  uint32 = 1 << 1 // an operator has set the other flag
	accountFlags          = accountEnabled | accountByHand
)

// accountSlot is a row under its lock: a reader copies the row whole.
type accountSlot struct {
	lock ring.SeqLock
	row  accountRow
}

// accounts is the table of all accounts, in the order in which they appeared.
type accounts struct {
	slots []accountSlot // the first count are in use
	index []uint64      // open addressing: id << 32 | index + 1, 0 is empty; entries never move
	shift uint
	count ring.Sequence
}

// home spreads ids over the index: consecutive ids must not cluster.
func (t *accounts) home(id uint32) int { return homeOf(id, t.shift) }

// homeOf is home for readers, which have a copy of shift.
func homeOf(id uint32, shift uint) int { return int((id * 2654435769) >> shift) }

// find returns the index of an account, -1 if there is none. Writer only.
func (t *accounts) find(id uint32) int {
	mask := len(t.index) - 1
	for at := t.home(id); ; at++ {
		word := t.index[at&mask]
		if word == 0 {
			return -1
		}
		if uint32(word>>32) == id {
			return int(uint32(word)) - 1
		}
	}
}

// set publishes a row. The writer keeps the row as it was by copying it first.
func (s *accountSlot) set(row *accountRow) {
	s.lock.Begin()
	ring.CopyIn(wordsOf(&s.row), wordsOf(row))
	s.lock.End()
}

// control adds an account that is not known and sets a known one. With keep, the flags of a known
// account stay as they are.
func (t *accounts) control(id, flags uint32, keep bool, version int64) {
	at := t.find(id)
	if at < 0 {
		t.add(accountRow{id: id, flags: flags, version: version})
		return
	}
	row := t.slots[at].row
	row.version = version
	if !keep {
		row.flags = flags
	}
	t.slots[at].set(&row)
}

// accountFlagsOf are the flags that an ACCOUNT_CONTROL asks for. A control without the mark of a
// source comes from an operator.
func accountFlagsOf(cmd *matcher.Command) (flags uint32) {
	flags = uint32(cmd.Side) & accountEnabled
	if cmd.OrderRef == 0 {
		flags |= accountByHand
	}
	return flags
}

// add appends an account that is not known. The engine refuses an account for which there is no
// slot, so a full table is a bug.
func (t *accounts) add(row accountRow) {
	at := int(t.count.Load())
	if at == len(t.slots) {
		tableFull("account", row.id, at)
	}
	t.slots[at].set(&row)
	t.enter(row.id, at)
	t.count.Release(int64(at + 1))
}

// enter adds an id and the slot of its account to the index. The slot is written before, so a
// reader that finds the entry finds the row.
func (t *accounts) enter(id uint32, at int) {
	mask := len(t.index) - 1
	home := t.home(id)
	for t.index[home&mask] != 0 {
		home++
	}
	ring.StoreRelease(&t.index[home&mask], uint64(id)<<32|uint64(at+1))
}

// securityRow is one security. Prices and their time change with every trade, the rest with
// controls.
type securityRow struct {
	market      int64 // market price x 1e6, from the newest trade or tick; 0 = none yet
	marketTime  int64 // its event time
	traded      int64 // price of the last fill x 1e6, 0 = none yet
	flags       uint64
	version     int64
	tickerBytes int64
	ticker      [matcher.TickerBytes]byte // zero padded
}

// The bits of securityRow.flags.
const (
	flagKnown      uint64 = 1 << 0 // a control has made it tradable
	flagEnabled    uint64 = 1 << 1
	flagHalted     uint64 = 1 << 2
	flagRestricted uint64 = 1 << 3

	flagEnabledByHand uint64 = 1 << 4 // an operator has set flagEnabled
	flagHaltedByHand  uint64 = 1 << 5
	securityFlags            = flagHaltedByHand<<1 - 1
)

// control applies a SECURITY_CONTROL. A flag that the control keeps stays as it is, once a control
// has made the security known. A control without the mark of a source comes from an operator.
func (s *securitySlot) control(cmd *matcher.Command) {
	bits, mask := flagKnown, flagEnabled|flagEnabledByHand|flagHalted|flagHaltedByHand
	if cmd.Side&matcher.SecurityEnabled != 0 {
		bits |= flagEnabled
	}
	if cmd.Side&matcher.SecurityHalted != 0 {
		bits |= flagHalted
	}
	if cmd.OrderRef == 0 {
		bits |= flagEnabledByHand | flagHaltedByHand
	}
	if s.row.flags&flagKnown != 0 {
		if cmd.Side&matcher.KeepEnabled != 0 {
			mask &^= flagEnabled | flagEnabledByHand
		}
		if cmd.Side&matcher.KeepHalted != 0 {
			mask &^= flagHalted | flagHaltedByHand
		}
	}
	s.flag(mask, bits&(mask|flagKnown), cmd.PriceTicks)
}

// securitySlot is a row under its lock. A row is one record for readers, although prices and flags
// change at different times.
type securitySlot struct {
	lock ring.SeqLock
	row  securityRow
	_    [5]uint64
}

// Compile-time check: a slot is two lines, and the prices are in the first.
var _ = [1]struct{}{}[unsafe.Sizeof(securitySlot{})-128]

// securities is the table of all securities; ids are positions from 1.
type securities struct {
	slots []securitySlot // by id - 1
	count ring.Sequence
}

// at is the slot of a registered id. The engine applies no command to another id, so such an id is
// a bug and panics.
func (t *securities) at(id uint32) *securitySlot {
	if count := t.count.Load(); int64(id)-1 >= count || id == 0 {
		notRegistered(id, count)
	}
	return &t.slots[id-1]
}

// set publishes a row.
func (s *securitySlot) set(row *securityRow) {
	s.lock.Begin()
	ring.CopyIn(wordsOf(&s.row), wordsOf(row))
	s.lock.End()
}

// price publishes the prices only: the market price, its time, and the price of the last fill. They
// are in the slot's first line, so a trade touches one line.
func (s *securitySlot) price(market, time, traded int64) {
	s.lock.Begin()
	store(&s.row.market, market)
	store(&s.row.marketTime, time)
	store(&s.row.traded, traded)
	s.lock.End()
}

// trade publishes the price of a fill. It becomes the market price unless the fill came late.
func (s *securitySlot) trade(ev *matcher.Event) {
	if ev.Flags&matcher.EventLate != 0 {
		s.price(s.row.market, s.row.marketTime, ev.Px)
		return
	}
	s.price(ev.Px, ev.TimeMillis, ev.Px)
}

// register adds a security under the next id. A security that is there already stays as it is: a
// known ticker is registered again with its id. An id that is not the next one is a bug and panics.
func (t *securities) register(id uint32, ticker *[matcher.TickerBytes]byte) {
	count := t.count.Load()
	if int64(id) <= count && id != 0 {
		return
	}
	if int(count) == len(t.slots) || int64(id) != count+1 {
		tableFull("security", id, int(count))
	}
	row := securityRow{ticker: *ticker}
	for row.tickerBytes < matcher.TickerBytes && ticker[row.tickerBytes] != 0 {
		row.tickerBytes++
	}
	t.slots[id-1].set(&row)
	t.count.Release(count + 1)
}

// flag sets the bits of mask to bits and notes the version of the control.
func (s *securitySlot) flag(mask, bits uint64, version int64) {
	row := s.row
	row.flags, row.version = row.flags&^mask|bits, version
	s.set(&row)
}

// policyRow holds the values that POLICY_CONTROL sets: the limits are those of all accounts. A
// change of limits raises the version too.
type policyRow struct {
	version          int64
	kill             int64 // 0 or 1
	maxPosition      int64
	maxConcentration int64
}

// policySlot is the one row of the policy under its lock.
type policySlot struct {
	lock ring.SeqLock
	row  policyRow
}

// control sets the policy; 0 leaves a limit as it is. The engine has judged the version.
func (s *policySlot) control(version int64, kill bool, maxPosition, maxConcentration int64) {
	row := s.row
	row.version, row.kill = version, 0
	if kill {
		row.kill = 1
	}
	if maxPosition > 0 {
		row.maxPosition = maxPosition
	}
	if maxConcentration > 0 {
		row.maxConcentration = maxConcentration
	}
	s.lock.Begin()
	ring.CopyIn(wordsOf(&s.row), wordsOf(&row))
	s.lock.End()
}
