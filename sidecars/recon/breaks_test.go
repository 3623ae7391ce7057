package recon

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"testing"

	"posttrade/sidecars/store"
)

func TestBreaksArePagedByClassAndKey(t *testing.T) {
	each(t, 5, 30, func(t *testing.T, g *rig) {
		g.o.Grace = 0
		g.journal.add(g.rng, 80)
		g.project(1, 80)
		g.edit("delete from trades where trade_seq between 10 and 19 or trade_seq in (1, 80, 40)")
		g.edit("update trades set price = price + 1 where trade_seq % 7 = 0")
		for _, id := range []string{"a", "b c", "é", "\x01", "trd-12", "trd-9"} {
			g.insert(stray(id, uint64(100+len(g.journal.fills)+len(id)+int(id[0]))))
		}
		g.edit("update trades set id = '' where id = 'a'")
		g.sweep()
		g.sweepOrphans()
		want, _ := g.full()
		all := g.breaks("")
		sameBreaks(t, all, want)
		for limit := 1; limit <= len(all)+1; limit++ {
			var pages []Break
			for key := ""; ; {
				page, next, err := g.Breaks(context.Background(), BreakQuery{AfterKey: key, Limit: limit})
				g.must(err)
				if len(page) != limit && next != "" || len(page) > limit {
					t.Fatalf("a page of %d with limit %d", len(page), limit)
				}
				pages = append(pages, page...)
				if key = next; next == "" {
					break
				}
			}
			sameBreaks(t, pages, all)
		}
		var byClass []Break
		for _, class := range classes {
			some := g.breaks(class)
			for i := range some {
				if some[i].Class != class || i > 0 && class != OrphanInProjection &&
					some[i].TradeSeq <= some[i-1].TradeSeq {
					t.Errorf("%+v in the list of %s", some[i], class)
				}
			}
			byClass = append(byClass, some...)
		}
		sameBreaks(t, byClass, all)
		for i, b := range all[1:] {
			if slices.Index(classes[:], b.Class) < slices.Index(classes[:], all[i].Class) {
				t.Errorf("%s behind %s", b.Class, all[i].Class)
			}
		}
	})
}

func TestKeysOfNoPageAreRefused(t *testing.T) {
	g := New(Options{})
	key := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, q := range []BreakQuery{
		{Class: "MATCHED"}, {Class: "orphan"}, {AfterKey: "*"}, {AfterKey: key("0")},
		{AfterKey: key("3x")}, {AfterKey: key("/1")}, {AfterKey: key("0x")}, {AfterKey: key("1-1")},
		{AfterKey: key("09223372036854775808")}, {AfterKey: key("018446744073709551615")},
		{AfterKey: key("05"), Class: FieldMismatch},
	} {
		if _, _, err := g.Breaks(context.Background(), q); !errors.Is(err, ErrKey) {
			t.Errorf("%+v: %v, want ErrKey", q, err)
		}
	}
	for _, class := range []string{"MISSING_IN_PROJECTION", "FIELD_MISMATCH", "ORPHAN_IN_PROJECTION"} {
		if c, ok := ParseClass(class); !ok || string(c) != class {
			t.Errorf("class %s is not read", class)
		}
	}
	if _, ok := ParseClass("MATCHED"); ok {
		t.Error("MATCHED is no class of breaks")
	}
}

// TestAKeyMayHoldAnyBytes: SQLite goes on behind them; PostgreSQL has no such ids, so the key is
// none of its pages.
func TestAKeyMayHoldAnyBytes(t *testing.T) {
	each(t, 0, 30, func(t *testing.T, g *rig) {
		want := error(nil)
		if g.o.DB.Dialect() == store.Postgres {
			want = ErrKey
		}
		for _, id := range []string{"a\x00b", "\xff"} {
			key := base64.RawURLEncoding.EncodeToString([]byte("2" + id))
			if _, _, err := g.Breaks(t.Context(), BreakQuery{AfterKey: key}); !errors.Is(err, want) {
				t.Errorf("behind %q: %v, want %v", id, err, want)
			}
		}
	})
}

func TestBreaksPassErrorsOn(t *testing.T) {
	each(t, 0, 31, func(t *testing.T, g *rig) {
		g.o.Grace = 0
		g.journal.add(g.rng, 3)
		g.sweep()
		g.journal.fail = errFake
		if _, _, err := g.Breaks(context.Background(), BreakQuery{}); !errors.Is(err, errFake) {
			t.Errorf("%v, want the journal's error", err)
		}
		g.journal.fail = nil
		g.journal.fills, g.journal.durable = g.journal.fills[:1], 1 // shorter, not swept yet
		all := g.breaks("")
		if len(all) != 3 || all[0].Journal == nil || all[1].Journal != nil {
			t.Errorf("breaks %+v", all)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, _, err1 := g.Breaks(ctx, BreakQuery{})
		_, err2 := g.Status(ctx)
		_, _, err3 := g.LastOrphanSweep(ctx)
		for _, err := range []error{err1, err2, err3, g.Sweep(ctx), g.VerifyStep(ctx)} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want canceled", err)
			}
		}
	})
}
