package matcher

import (
	"fmt"
	"math"
	"math/bits"
)

// The first column of a LIMITS record says what it holds. The numbers are stored.
const (
	storedAll            = 0 // the limits of all accounts that the POLICY record does not have
	storedOwn            = 1 // the own limits of one account
	storedPending        = 2 // a change of the limits of all accounts, of which some parts are missing
	storedPendingAccount = 3 // the same, of one account
)

// inPolicyRecord are the limits of all accounts that the POLICY record holds.
const inPolicyRecord = LimitSet(1<<LimitPosition | 1<<LimitConcentration)

// limits writes the LIMITS records: those of all accounts that are not the genesis record's, those
// of every account with its own, and a change of which some parts are missing. An engine without
// any of them writes none, so its bytes are those of builds without such records.
func (s *snapshotWriter) limits(e *Engine) {
	if changed := e.changedLimits(); changed != 0 {
		s.limitsRecord(storedAll, 0, changed, 0, changed.only(&e.all.RiskLimits), 0, 0)
	}
	e.EachOwnLimits(func(o OwnLimits) bool {
		s.limitsRecord(storedOwn, o.AccountID, o.Own, 0, o.Values, 0, 0)
		return true
	})
	if p := &e.pending; p.next != 0 {
		kind := int64(storedPending)
		if p.ForAccount {
			kind = storedPendingAccount
		}
		s.limitsRecord(kind, p.AccountID, p.Set, p.Remove, p.Values, p.Version,
			int64(p.next|p.parts<<partBits))
	}
}

// limitsRecord writes the 13 columns of a LIMITS record: kind, account, set, removed, the seven
// values by LimitID, version and progress. The columns that a kind does not use are 0 (FORMAT.md,
// section 5).
func (s *snapshotWriter) limitsRecord(kind int64, account uint32, set, removed LimitSet,
	v RiskLimits, version, progress int64) {
	s.record(recordLimits, kind, int64(account), int64(set), int64(removed),
		v[0], v[1], v[2], v[3], v[4], v[5], v[6], version, progress)
}

// changedLimits are the limits of all accounts that neither the genesis record nor the POLICY
// record has. A limit that was changed and changed back is not among them: the state is the same,
// and so are the bytes.
func (e *Engine) changedLimits() (changed LimitSet) {
	now, first := &e.all.RiskLimits, e.genesis.Limits.RiskLimits()
	for id := range LimitID(LimitCount) {
		if now[id] != first[id] && !inPolicyRecord.Has(id) {
			changed |= 1 << id
		}
	}
	return changed
}

// limits reads a LIMITS record. It checks what all kinds have in common: account and sets are in
// their ranges, a limit of the set is within its own range, and every other value is 0. The kinds
// come in ascending order, each at most once, except for that of the accounts' own limits.
func (s *snapshotReader) limits() error {
	kind, id, c := s.columns[0], s.columns[1], LimitsChange{Version: s.columns[11]}
	progress := s.columns[12]
	if id < 0 || id > math.MaxUint32 {
		return invalid("account", id)
	}
	c.AccountID = uint32(id)
	for _, set := range []struct {
		name  string
		value int64
		to    *LimitSet
	}{{"limits", s.columns[2], &c.Set}, {"removed", s.columns[3], &c.Remove}} {
		if *set.to = LimitSet(set.value); set.value < 0 || set.value > int64(AllLimits) {
			return invalid(set.name, set.value)
		}
	}
	copy(c.Values[:], s.columns[4:])
	for limit := range LimitID(LimitCount) {
		least, most := limit.Range()
		if !c.Set.Has(limit) {
			least, most = 0, 0
		}
		if v := c.Values[limit]; v < least || v > most {
			return invalid(limit.String(), v)
		}
	}
	if kind >= storedPending {
		return s.pendingLimits(kind, &c, progress)
	}
	switch {
	case c.Set == 0:
		return invalid("limits", 0)
	case c.Remove != 0:
		return invalid("removed", int64(c.Remove))
	case c.Version != 0:
		return invalid("version", c.Version)
	case progress != 0:
		return invalid("progress", progress)
	}
	if kind == storedAll {
		return s.limitsOfAll(&c)
	}
	return s.ownLimits(kind, &c)
}

// limitsOfAll installs the limits of all accounts. It must be the first LIMITS record, and a value
// that the genesis record has too is refused: WriteSnapshot would not write it.
func (s *snapshotReader) limitsOfAll(c *LimitsChange) error {
	e, first := s.engine, s.engine.genesis.Limits.RiskLimits()
	switch {
	case s.lastID != 0:
		return fmt.Errorf("limits of all accounts: %w", ErrSnapshotTwice)
	case c.AccountID != 0:
		return invalid("account", int64(c.AccountID))
	case c.Set&inPolicyRecord != 0:
		return invalid("limits", int64(c.Set))
	}
	for id := range LimitID(LimitCount) {
		if c.Set.Has(id) && c.Values[id] == first[id] {
			return invalid(id.String(), c.Values[id])
		}
	}
	s.lastID = 1
	e.changeAll(c)
	return nil
}

// ownLimits installs the own limits of one account. The accounts come in the order in which they
// appeared. lastID is the account's index + 2, because 1 stands for the limits of all accounts.
func (s *snapshotReader) ownLimits(kind int64, c *LimitsChange) error {
	e := s.engine
	index := e.accounts.find(c.AccountID)
	if kind != storedOwn {
		return invalid("kind", kind)
	}
	if index < 0 {
		return invalid("account", int64(c.AccountID))
	}
	if index+2 <= s.lastID { // in the order in which the accounts appeared
		return fmt.Errorf("limits of account %d: %w", c.AccountID, ErrSnapshotTwice)
	}
	s.lastID = index + 2
	e.changeOwn(index, c)
	return nil
}

// pendingLimits reads a change of which some parts are missing. It is the last LIMITS record. At
// least one part has come and at least one is missing, and there are as many limits as parts that
// have come; the version is above the one in force, or the change could never be applied.
func (s *snapshotReader) pendingLimits(kind int64, c *LimitsChange, progress int64) error {
	e := s.engine
	next, parts := int(progress&partMask), int(progress>>partBits)
	c.ForAccount = kind == storedPendingAccount
	switch {
	case kind > storedPendingAccount:
		return invalid("kind", kind)
	case c.Version <= e.policyVersion:
		return invalid("version", c.Version)
	case c.ForAccount && e.accounts.find(c.AccountID) < 0, !c.ForAccount && c.AccountID != 0:
		return invalid("account", int64(c.AccountID))
	case c.Set&c.Remove != 0, !c.ForAccount && c.Remove != 0:
		return invalid("removed", int64(c.Remove))
	case progress < 0 || parts > LimitCount || next < 2 || next > parts,
		bits.OnesCount8(uint8(c.Set|c.Remove)) != next-1:
		return invalid("progress", progress)
	}
	if s.lastID = math.MaxInt; e.pending.next != 0 {
		return fmt.Errorf("pending limits: %w", ErrSnapshotTwice)
	}
	e.pending = pendingLimits{LimitsChange: *c, next: next, parts: parts}
	return nil
}
