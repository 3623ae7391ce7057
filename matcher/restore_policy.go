package matcher

// The row readers install one record each. They see columns as int64 and trust none.

// policy reads the one POLICY record: version, kill switch, and the two limits that a
// POLICY_CONTROL sets. Every snapshot has it, directly behind the header.
func (s *snapshotReader) policy() error {
	version, kill, position, concentration := s.columns[0], s.columns[1], s.columns[2], s.columns[3]
	switch {
	case kill != 0 && kill != 1:
		return invalid("kill", kill)
	case position < 1:
		return invalid("maxPosition", position)
	case concentration < 1:
		return invalid("maxConcentration", concentration)
	}
	e := s.engine
	e.policyVersion = version
	e.policy.kill = kill == 1
	all := &e.all.RiskLimits
	all[LimitPosition], all[LimitConcentration] = position, concentration
	return nil
}

// capacityColumn is a capacity of a record: its value is least to most.
type capacityColumn struct {
	name        string
	least, most int
}

// within checks the first columns of a record. The value is compared before it becomes an int,
// which may have 32 bits.
func (s *snapshotReader) within(columns []capacityColumn) error {
	for i, c := range columns {
		if value := s.columns[i]; value < int64(c.least) || value > int64(c.most) {
			return invalid(c.name, value)
		}
	}
	return nil
}

// capacity reads the one record of raised capacities and grows the empty engine at once, so that
// the rows behind it have their room. Values that are the genesis record's are refused:
// WriteSnapshot writes no record then.
func (s *snapshotReader) capacity() error {
	e, l := s.engine, s.engine.genesis.Limits.Capacities()
	if err := s.within([]capacityColumn{
		{"maxAccounts", l.Accounts, maxPositions}, {"maxSecurities", l.Securities, MaxSecurities},
		{"maxContracts", l.Contracts, maxContracts},
	}); err != nil {
		return err
	}
	to := Capacities{int(s.columns[0]), int(s.columns[1]), int(s.columns[2]), l.OrderRoom}
	if to == l || !to.Possible() {
		return invalid("maxAccounts x maxSecurities", int64(to.Accounts)*int64(to.Securities))
	}
	return e.grow(to)
}

// orderRoom reads the one record of raised room for orders, in the same way as capacity.
func (s *snapshotReader) orderRoom() error {
	e, l := s.engine, s.engine.genesis.Limits.Capacities().OrderRoom
	if err := s.within([]capacityColumn{
		{"maxOpenOrders", l.Open, MaxOrders}, {"retainedOrders", l.Retained, MaxOrders},
		{"idempotencyCapacity", l.Keys, maxKeys},
	}); err != nil {
		return err
	}
	to := OrderRoom{int(s.columns[0]), int(s.columns[1]), int(s.columns[2])}
	if to == l || !to.Possible() {
		return invalid("maxOpenOrders + retainedOrders", int64(to.Open)+int64(to.Retained))
	}
	return e.growOrders(to)
}
