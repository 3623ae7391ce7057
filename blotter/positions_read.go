package blotter

// Position is the position of one account in one security. It stays in the list when it is flat.
type Position struct {
	AccountID   uint32
	SecurityID  uint32
	Qty         int64 // negative = short
	AverageCost int64 // x 1e6, 0 when flat
}

// copyRow copies a whole position; false if there never was one.
func (s *positionSlot) copyRow(row *positionRow) bool {
	copyWhole(&s.lock, wordsOf(row), wordsOf(&s.row))
	return row.used != 0
}

// Position returns the position of an account in a security, false if the account never traded it.
// Any goroutine.
func (v *Views) Position(account, security uint32) (Position, bool) {
	t := v.tables.Load()
	at, _, ok := t.read(account)
	if !ok || security == 0 || int(security) > t.positions.securities {
		return Position{}, false
	}
	return t.positionAt(at, account, security)
}

// positionAt is Position for an account's index.
func (t *tables) positionAt(at int, account, security uint32) (Position, bool) {
	var row positionRow
	if !t.positions.at(at, security).copyRow(&row) {
		return Position{}, false
	}
	return Position{AccountID: account, SecurityID: security, Qty: row.qty, AverageCost: row.cost},
		true
}

// Positions appends to dst the positions of an account, ascending by security, flat ones too. An
// unknown account has none. It looks at the account's slots up to the last one that it ever used.
// Any goroutine.
func (v *Views) Positions(account uint32, dst []Position) []Position {
	most := uint32(v.securities.count.Load())
	t := v.tables.Load() // loaded after the count: these tables hold that many
	at, row, ok := t.read(account)
	if !ok {
		return dst
	}
	for security, left := uint32(1), row.held; security <= most && left > 0; security++ {
		if p, ok := t.positionAt(at, account, security); ok {
			dst = append(dst, p)
			left--
		}
	}
	return dst
}

// AllPositions appends to dst the positions of all accounts, ascending by account and security.
// Each row is whole; two rows may be of different moments. Any goroutine.
func (v *Views) AllPositions(dst []Position) []Position {
	for _, a := range v.Accounts() {
		dst = v.Positions(a.ID, dst)
	}
	return dst
}
