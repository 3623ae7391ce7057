package gate

// grow moves the tables to larger ones, when more room is needed. Present readers continue with the
// old tables, which no writer changes after that. The caller holds writers.mu.
//
// It holds prices while it copies them, or a price that comes meanwhile would be written to the old
// tables alone. The old tables go when their last reader has left. It allocates; its cost follows
// the room.
func (g *Gate) grow(maxAccounts, maxSecurities int) {
	w, old := g.writers, g.tables.Load()
	securities := len(old.securities) - 1
	if maxAccounts <= w.limit && maxSecurities <= securities {
		return
	}
	accounts := max(w.limit, maxAccounts)
	t := newTables(accounts, max(securities, maxSecurities))
	mask := uint32(len(t.accounts) - 1)
	for i := range old.accounts {
		row := &old.accounts[i]
		word := row.word.Load()
		if word == 0 {
			continue
		}
		at := t.home(uint32(word))
		for t.accounts[at&mask].word.Load() != 0 {
			at++
		}
		t.own[at&mask].Store(old.own[i].Load())
		t.accounts[at&mask].version.Store(row.version.Load())
		t.accounts[at&mask].word.Store(word)
	}
	copy(t.names, old.names)
	w.prices.Lock()
	defer w.prices.Unlock()
	for id := range old.securities {
		t.securities[id].copyFrom(&old.securities[id])
		if t.names[id] != "" {
			t.enter(uint32(id), t.names[id])
		}
	}
	w.limit = accounts
	w.priced = append(w.priced, make([]bool, len(t.securities)-len(w.priced))...)
	g.tables.Store(t)
}

// copyFrom copies another security into one that no reader knows yet. The writers of that security
// wait meanwhile: the caller holds both locks.
func (s *security) copyFrom(from *security) {
	s.flags.Store(from.flags.Load())
	s.byHand.Store(from.byHand.Load())
	s.version.Store(from.version.Load())
	for i := range from.cells {
		s.cells[i].px.Store(from.cells[i].px.Load())
		s.cells[i].time.Store(from.cells[i].time.Load())
	}
	s.stamp.Store(from.stamp.Load())
}
