package ring

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"posttrade/ring/must"
	"posttrade/ring/ringtest"
)

func TestMakeResident(t *testing.T) {
	s := must.Get(NewSlab[[3]uint64](1 << 20))(t)
	defer s.Close()
	table := s.Slice()
	for _, c := range []struct{ first, end int }{{5, 5}, {7, 3}, {0, 1}, {1000, 30_000},
		{len(table) - 3, len(table) + 100}, {len(table), len(table) + 1}} {
		if err := MakeResident(table, c.first, c.end); err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		if end := min(c.end, len(table)); c.first < end {
			if got, of := ringtest.Pages(t, table, c.first, end); got != of {
				t.Errorf("%v: %d of %d pages are there", c, got, of)
			}
		}
	}
	for i, row := range table[:40_000] {
		if row != [3]uint64{} {
			t.Fatalf("row %d is %v", i, row)
		}
	}
	if !raceEnabled { // under the race detector slabs are memory that other code has used
		if got, of := ringtest.Pages(t, table, 1<<19, 1<<19+1<<17); got != 0 {
			t.Errorf("%d of %d pages are there that were not asked for", got, of)
		}
	}
}

func TestMakeLapResident(t *testing.T) {
	for _, c := range []struct {
		first, end uint64
		there      [][2]int
	}{
		{0, 5_000, [][2]int{{0, 5_000}}},
		{1<<20 - 9_000, 1 << 20, [][2]int{{1<<20 - 9_000, 1 << 20}}},
		{7<<20 - 6_000, 7<<20 + 7_000, [][2]int{{1<<20 - 6_000, 1 << 20}, {0, 7_000}}},
		{3<<20 + 10, 9 << 20, [][2]int{{0, 1 << 20}}},
	} {
		s := must.Get(NewSlab[uint32](1 << 20))(t)
		must.OK(t, MakeLapResident(s.Slice(), c.first, c.end))
		for _, part := range c.there {
			if got, of := ringtest.Pages(t, s.Slice(), part[0], part[1]); got != of {
				t.Errorf("%d to %d: %d of %d pages are there at %v", c.first, c.end, got, of, part)
			}
		}
		if got, of := ringtest.Pages(t, s.Slice(), 1<<19, 1<<19+1<<17); got != 0 &&
			c.end-c.first < 1<<20 && !raceEnabled {
			t.Errorf("%d to %d: %d of %d pages are there that were not asked for", c.first, c.end, got, of)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// part is a part of an arena that owns memory of its own.
type part struct {
	calls []string
	err   error
}

func (p *part) MakeResident() error { p.calls = append(p.calls, "resident"); return p.err }
func (p *part) Close() error        { p.calls = append(p.calls, "close"); return p.err }

func TestArena(t *testing.T) {
	var a Arena
	small, large, sparse := Carve[uint64](&a, 100), Carve[[64]byte](&a, 1<<17),
		CarveSparse[uint32](&a, 1<<20)
	if len(small) != 100 || len(large) != 1<<17 || len(sparse) != 1<<20 || a.Err() != nil {
		t.Fatalf("%d, %d, %d elements: %v", len(small), len(large), len(sparse), a.Err())
	}
	if Carve[uint64](&a, 0) != nil || a.Err() != nil {
		t.Errorf("a table of none: %v", a.Err())
	}
	p := &part{}
	a.Hold(p)
	must.OK(t, a.MakeResident())
	for name, count := range map[string]func() (int, int){
		"small": func() (int, int) { return ringtest.Pages(t, small, 0, 100) },
		"large": func() (int, int) { return ringtest.Pages(t, large, 0, largePage/64) },
	} {
		if got, of := count(); got != of {
			t.Errorf("%s: %d of %d pages are there", name, got, of)
		}
	}
	if !raceEnabled {
		if got, of := ringtest.Pages(t, sparse, 0, 1<<20); got != 0 {
			t.Errorf("sparse: %d of %d pages are there", got, of)
		}
	}
	p.err = errors.New("part")
	if err := a.MakeResident(); !errors.Is(err, p.err) {
		t.Errorf("a part that fails: %v", err)
	}
	if Carve[uint64](&a, -1) != nil || !errors.Is(a.Err(), ErrSize) {
		t.Errorf("a table that cannot be: %v", a.Err())
	}
	if Carve[uint64](&a, 1) != nil || CarveSparse[uint64](&a, 1) != nil {
		t.Error("a table after a failure")
	}
	if err := a.Close(); !errors.Is(err, p.err) {
		t.Errorf("close: %v", err)
	}
	if want := []string{"resident", "resident", "close"}; !slices.Equal(p.calls, want) {
		t.Errorf("the part was asked %v, want %v", p.calls, want)
	}
}

// rooms records the ranges that an Ahead makes resident.
type rooms struct {
	at   uint64
	made []string
	err  error
}

func (r *rooms) frontier(lap uint64) Frontier {
	return Frontier{func() uint64 { return r.at }, lap, func(first, end uint64) error {
		r.made = append(r.made, fmt.Sprintf("%d-%d", first, end))
		return r.err
	}}
}

func TestAheadKeepsItsDistance(t *testing.T) {
	r := &rooms{at: 1000}
	a := NewAhead(100, r.frontier(260))
	for _, c := range []struct {
		at          uint64
		made        string // "" for nothing
		moved, more bool
	}{
		{1000, "1000-1100", true, true},
		{1000, "", false, true},
		{1024, "", false, true}, // less than a quarter is missing
		{1025, "1100-1125", true, true},
		{1200, "1200-1260", true, false}, // overtaken, and the lap ends
		{1250, "", false, false},
		{5000, "", false, false},
	} {
		r.at, r.made = c.at, nil
		moved, more, err := a.Step()
		if err != nil || moved != c.moved || more != c.more || fmt.Sprint(r.made) != "["+c.made+"]" {
			t.Errorf("at %d: made %v, moved %v, more %v, %v, want %v, %v, %v", c.at, r.made, moved, more,
				err, c.made, c.moved, c.more)
		}
	}
}

func TestAheadLooksAfterEveryTable(t *testing.T) {
	slow, quick := &rooms{at: 1}, &rooms{at: 1}
	a := NewAhead(100, slow.frontier(1<<20), quick.frontier(50), slow.frontier(1<<20))
	if moved, more, err := a.Step(); !moved || !more || err != nil {
		t.Errorf("%v, %v, %v", moved, more, err)
	}
	if fmt.Sprint(slow.made, quick.made) != "[1-101 1-101] [1-51]" {
		t.Errorf("made %v and %v", slow.made, quick.made)
	}
	slow.at, slow.err = 200, errors.New("no memory")
	if _, _, err := a.Step(); !errors.Is(err, slow.err) {
		t.Errorf("%v, want %v", err, slow.err)
	}
	slow.err, slow.made = nil, nil
	if _, _, err := a.Step(); err != nil || fmt.Sprint(slow.made) != "[200-300 200-300]" {
		t.Errorf("after a failure made %v: %v", slow.made, err)
	}
	slow.at = 1 << 30
	if _, more, err := a.Step(); more || err != nil {
		t.Errorf("behind the laps: more %v, %v", more, err)
	}
}
