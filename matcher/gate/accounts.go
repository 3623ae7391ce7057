package gate

import "fmt"

// SetAccount opens an account, or enables or disables a known one, as its source. ErrCapacity when
// a new account finds no room. version is the control version, for the Snapshot alone.
func (g *Gate) SetAccount(id uint32, enabled bool, version int64) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	return g.setAccount(id, accountFlags(enabled, false), false, version)
}

// HoldAccount records that an operator has set the flag of a known account; ErrAccount for an
// unknown one. It is for a start: later the control itself says so.
func (g *Gate) HoldAccount(id uint32) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	row := g.accountRow(id)
	if row == nil {
		return fmt.Errorf("gate: hold account id=%d: %w", id, ErrAccount)
	}
	row.word.Store(row.word.Load() | accountByHand)
	return nil
}

// accountRow returns the row of an account, nil for none. The caller holds writers.mu, or the row
// may be one of tables that have been replaced.
func (g *Gate) accountRow(id uint32) *accountRow {
	t := g.tables.Load()
	mask := uint32(len(t.accounts) - 1)
	for at := t.home(id); ; at++ {
		row := &t.accounts[at&mask]
		switch word := row.word.Load(); {
		case word == 0:
			return nil
		case uint32(word) == id:
			return row
		}
	}
}

// accountFlags are the bits of accountRow.word for what a control carries.
func accountFlags(enabled, byHand bool) (flags uint64) {
	if enabled {
		flags |= accountEnabled
	}
	if byHand {
		flags |= accountByHand
	}
	return flags
}

// setAccount opens an account. It sets the flags of a known account unless keep is set. The
// account's own limits stay in any case. The caller holds writers.mu.
//
// The store of the word publishes the row: a reader finds the account with its flags, or not at
// all.
func (g *Gate) setAccount(id uint32, flags uint64, keep bool, version int64) error {
	word := uint64(id) | accountTaken | flags
	t := g.tables.Load()
	mask := uint32(len(t.accounts) - 1)
	for at := t.home(id); ; at++ {
		row := &t.accounts[at&mask]
		old := row.word.Load()
		if old == 0 {
			if g.writers.accounts == g.writers.limit {
				return fmt.Errorf("gate: set account id=%d: %d accounts: %w", id, g.writers.limit, ErrCapacity)
			}
			g.writers.accounts++
		} else if uint32(old) != id {
			continue
		} else if keep {
			word = old
		} else {
			word |= old & accountBounded
		}
		row.version.Store(version)
		row.word.Store(word)
		return nil
	}
}
