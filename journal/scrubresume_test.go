package journal

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"posttrade/ring/must"
)

// cutShort makes a pass that ends when it has read up to a command.
func cutShort(t *testing.T, s *Scrub, upTo uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	rest := s.rest
	s.piece = 1
	s.rest = func(d time.Duration) <-chan time.Time {
		if s.State().Next > upTo {
			cancel()
		}
		return rest(d)
	}
	must.OK(t, s.Pass(ctx))
	if next := s.State().Next; next != upTo+1 {
		t.Fatalf("stopped at %d, want %d", next, upTo+1)
	}
	s.rest = rest
}

// begins lists where the damages of a state begin.
func begins(s ScrubState) (from []uint64) {
	for _, d := range s.Damaged {
		from = append(from, d.From)
	}
	return from
}

// TestDamageAcrossAPassThatIsCutShort: a pass finds damage, the next one is cut short and goes on
// in another process. At its end the damage that is still there is known once, and that which is
// mended is not known any more. So it is for any place of the cut.
func TestDamageAcrossAPassThatIsCutShort(t *testing.T) {
	im, head := scrubbed(t)
	const damaged = 9 // a block from 9 to 12
	for _, c := range []struct {
		what              string
		upTo              uint64
		mended            string // when
		restart, atTheEnd []uint64
	}{
		{"cut before the damage", 4, "", []uint64{damaged}, []uint64{damaged}},
		{"cut at the damage", damaged - 1, "", []uint64{damaged}, []uint64{damaged}},
		{"cut behind the damage", damaged + 7, "", []uint64{damaged}, []uint64{damaged}},
		{"mended behind the cut", 4, "later", []uint64{damaged}, nil},
		{"mended before the cut", damaged + 7, "before", nil, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			j := must.Get(Open("j", strict(t, im.restore(t, "", nil))))(t)
			key := newKey(keyCommands, damaged)
			value, closer, err := j.db.Get(key)
			must.OK(t, err)
			value = bytes.Clone(value)
			must.OK(t, closer.Close())
			mend := func(when string) {
				if c.mended == when {
					must.OK(t, j.db.Set(key, value, pebble.Sync))
				}
			}
			must.OK(t, j.db.Delete(key, pebble.Sync))
			s := quickScrub(j, func(Damage) {})
			must.OK(t, s.Pass(t.Context()))
			mend("before")
			cutShort(t, s, c.upTo)
			s = quickScrub(j, func(Damage) {})
			if got := begins(s.State()); !slices.Equal(got, c.restart) {
				t.Errorf("a restart knows damage at %d, want %d", got, c.restart)
			}
			mend("later")
			must.OK(t, s.Pass(t.Context()))
			if got := begins(s.State()); !slices.Equal(got, c.atTheEnd) {
				t.Errorf("the pass up to %d knows damage at %d, want %d", head, got, c.atTheEnd)
			}
			must.OK(t, j.Close())
		})
	}
}

// TestFindingsAreWrittenWhenTheyAreFound: a process that is killed in a pass has the damage that
// the pass has found, and goes on behind it.
func TestFindingsAreWrittenWhenTheyAreFound(t *testing.T) {
	im, _ := scrubbed(t)
	j := must.Get(Open("j", strict(t, im.restore(t, "", nil))))(t)
	must.OK(t, j.db.Delete(newKey(keyCommands, 5), pebble.Sync))
	told := 0
	s := quickScrub(j, func(Damage) {
		told++
		killed := NewScrub(j, time.Hour, nil).State()
		if got := begins(killed); !slices.Equal(got, []uint64{5}) || killed.Next != 6 {
			t.Errorf("killed, it knows %+v", killed)
		}
	})
	must.OK(t, s.Pass(t.Context()))
	if told != 1 {
		t.Errorf("%d damages", told)
	}
	must.OK(t, j.Close())
}
