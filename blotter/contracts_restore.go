package blotter

import (
	"fmt"
	"math"

	"posttrade/matcher"
)

// contractRestorer takes contracts ascending by id. It trusts no field: a contract must have terms
// that the engine could have booked, an account that exists, and zeros behind its client id.
func (v *Views) contractRestorer() func(*imageReader) error {
	last := uint64(0)
	return func(r *imageReader) error {
		info := matcher.ContractInfo{ID: r.u64()}
		created, t := r.i64(), &info.ContractTerms
		t.FixedRate, t.AccountID, t.Notional, t.Convention = r.i64(), r.u32(), int32(r.u32()), r.u32()
		effective, maturity, expiry := r.u32(), r.u32(), r.u32()
		side, product, style, idLen := r.u8(), r.u8(), r.u8(), r.u8()
		t.Effective, t.Maturity, t.Expiry = uint16(effective), uint16(maturity), uint16(expiry)
		t.Side, t.Swaption, t.Style = matcher.Side(side), product == 1, matcher.ExerciseStyle(style)
		switch {
		case info.ID <= last || info.ID > v.current:
			return bad("contract %d after %d, applied are %d", info.ID, last, v.current)
		case max(effective, maturity, expiry) > math.MaxUint16 || product > 1 || !t.Representable() ||
			!t.Swaption && (expiry != 0 || style != 0):
			return bad("contract %d: product %d, days %d to %d, option until %d, %+v",
				info.ID, product, effective, maturity, expiry, *t)
		case v.accounts.find(t.AccountID) < 0:
			return bad("contract %d of account %d", info.ID, t.AccountID)
		case idLen > MaxClientID:
			return bad("contract %d: client id of %d bytes", info.ID, idLen)
		}
		id := r.bytes(int(idLen))
		if !r.zeros(MaxClientID - int(idLen)) {
			return bad("contract %d: client id is not padded with zeros", info.ID)
		}
		last = info.ID
		v.contracts.add(&info, created, id)
		return nil
	}
}

// check asserts that ids ascend up to the last command and that the column of accounts agrees with
// the rows.
func (t *contracts) check(applied uint64) error {
	last := uint64(0)
	for i := range t.rows[:t.count.Load()] {
		row := &t.rows[i]
		if row.ID <= last || row.ID > applied {
			return fmt.Errorf("contract %d after %d, applied are %d", row.ID, last, applied)
		}
		if row.AccountID != t.accounts[i] {
			return fmt.Errorf("contract %d is of account %d and listed under %d", row.ID, row.AccountID,
				t.accounts[i])
		}
		last = row.ID
	}
	return nil
}

// checkContracts compares the terms of every contract, in the order of their ids.
func (v *Views) checkContracts(e *matcher.Engine) (err error) {
	t, n := &v.contracts, 0
	count := int(t.count.Load())
	e.EachContract(func(want matcher.ContractInfo) bool {
		switch {
		case n == count:
			err = fmt.Errorf("%d contracts, the engine has more", count)
		case t.rows[n].ContractInfo != want:
			err = fmt.Errorf("contract %+v, engine %+v", t.rows[n].ContractInfo, want)
		}
		n++
		return err == nil
	})
	if err == nil && n != count {
		err = fmt.Errorf("%d contracts, engine %d", count, n)
	}
	return err
}
