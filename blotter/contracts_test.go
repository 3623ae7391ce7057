package blotter

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
)

// contract notes an accepted booking.
func (m *model) contract(ev *matcher.Event) {
	if ev.Kind != matcher.EventContract {
		return
	}
	row := ContractRow{CreatedMillis: ev.TimeMillis}
	row.ID = ev.InputSeq
	row.ContractTerms, _ = ev.Cmd().ContractTerms()
	row.idLen = uint8(copy(row.clientID[:], clientID(ev.InputSeq)))
	m.contracts = append(m.contracts, row)
}

// compareContracts reads the contracts one by one, in a list, in pages and by account.
func (m *model) compareContracts(t *testing.T, v *Views) {
	t.Helper()
	if n := int(v.contracts.count.Load()); n != len(m.contracts) {
		t.Fatalf("%d contracts, want %d", n, len(m.contracts))
	}
	last := uint64(0)
	for i := range m.contracts {
		want := &m.contracts[i]
		got, ok := v.Contract(want.ID)
		if !ok || got != *want || !bytes.Equal(got.ClientID(), clientID(want.ID)) {
			t.Fatalf("contract %d: %v %+v, want %+v", want.ID, ok, got, want)
		}
		if want.ID > last+1 {
			if got, ok := v.Contract(want.ID - 1); ok {
				t.Fatalf("contract %d: %+v", want.ID-1, got)
			}
		}
		last = want.ID
	}
	for _, id := range []uint64{0, last + 1, ^uint64(0)} {
		if got, ok := v.Contract(id); ok {
			t.Fatalf("contract %d: %+v", id, got)
		}
	}
	for _, accounts := range [][]uint32{nil, {}, {7}, {900_001, 3}, {3, 3, 12, 7}, {555}} {
		var want []ContractRow
		for i := range m.contracts {
			if accounts == nil || slices.Contains(accounts, m.contracts[i].AccountID) {
				want = append(want, m.contracts[i])
			}
		}
		for _, limit := range []int{1, 3, 1000} {
			var all []ContractRow
			for next, pages := uint64(0), 0; pages == 0 || next != 0; pages++ {
				before := len(all)
				all, next = v.Contracts(ContractFilter{Accounts: accounts}, next, limit, all)
				if n := len(all) - before; n > limit ||
					next != 0 && (n != limit || next != all[len(all)-1].ID) {
					t.Fatalf("a page of %d contracts at most %d, next %d", n, limit, next)
				}
			}
			if !slices.Equal(all, want) {
				t.Fatalf("accounts %v by %d: %d contracts\n%+v\nwant %d\n%+v", accounts, limit, len(all), all,
					len(want), want)
			}
		}
	}
}

func TestListsOfContractsHaveEnds(t *testing.T) {
	s, v := newSource(t, smallGenesis(), 81), newTestViews(t, smallGenesis())
	for int(v.contracts.count.Load()) < 3 {
		observe(v, s.step())
	}
	all, next := v.Contracts(ContractFilter{}, 0, 3, nil)
	if len(all) != 3 || next != 0 {
		t.Errorf("a page that takes all: %d contracts and then %d", len(all), next)
	}
	for _, tt := range []struct {
		after uint64
		limit int
		want  int
	}{{0, 0, 0}, {0, -1, 0}, {all[0].ID, 9, 2}, {all[0].ID - 1, 9, 3}, {all[2].ID, 9, 0},
		{^uint64(0), 9, 0}} {
		rows, next := v.Contracts(ContractFilter{}, tt.after, tt.limit, make([]ContractRow, 2, 9))
		if len(rows) != 2+tt.want || next != 0 {
			t.Errorf("after %d at most %d: %d contracts and then %d, want %d", tt.after, tt.limit,
				len(rows)-2, next, tt.want)
		}
	}
}

// TestReadersSeeWholeContracts reads while bookings are observed.
func TestReadersSeeWholeContracts(t *testing.T) {
	g := smallGenesis()
	g.Limits.MaxContracts = 1 << 20
	s, v := newSource(t, g, 82), newTestViews(t, g)
	var found, listed atomic.Int64
	// The notional and the rate of a contract are computed from its id.
	whole := func(row *ContractRow) bool {
		return row.Notional == int32(row.ID) && row.FixedRate == -int64(row.ID) &&
			row.CreatedMillis == int64(row.ID)+1 &&
			bytes.Equal(row.ClientID(), clientID(row.ID))
	}
	together(t, 3, func(step int) {
		if s.engine.Counts().Contracts == g.Limits.MaxContracts {
			return
		}
		id := s.engine.AppliedSeq() + 1
		terms := matcher.ContractTerms{AccountID: s.pick(7, 3), Notional: int32(id),
			FixedRate: -int64(id), Maturity: 1}
		c := terms.Command()
		c.EventTimeMillis = int64(id) + 1
		observe(v, s.apply(c))
	}, func(rng *rand.Rand) bool {
		count := uint64(v.contracts.count.Load())
		if count == 0 {
			return true
		}
		id := 1 + rng.Uint64N(count)
		if row, ok := v.Contract(id); !ok || row.ID != id || !whole(&row) {
			t.Errorf("contract %d of %d: %v %+v", id, count, ok, row)
			return false
		}
		found.Add(1)
		rows, _ := v.Contracts(ContractFilter{Accounts: []uint32{7}}, id, 5, nil)
		for i := range rows {
			if rows[i].ID <= id || rows[i].AccountID != 7 || !whole(&rows[i]) {
				t.Errorf("list after %d has %+v", id, rows[i])
				return false
			}
			id = rows[i].ID
			listed.Add(1)
		}
		return true
	})
	if found.Load() == 0 || listed.Load() == 0 {
		t.Errorf("%d contracts found, %d listed", found.Load(), listed.Load())
	}
	if err := v.Check(s.engine); err != nil {
		t.Error(err)
	}
}
