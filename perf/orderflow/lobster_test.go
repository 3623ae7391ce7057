package orderflow

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// naiveBook is a venue in one slice that every step scans: plainly correct, and slow. It shares no
// code with the translation's own ladder.
type naiveBook struct {
	orders []naiveOrder // in priority order
}

type naiveOrder struct {
	id      string
	account uint32
	side    matcher.Side
	px      int64
	total   int64
	leaves  int64
}

// apply sends one step and refuses what a real venue would refuse.
func (b *naiveBook) apply(s Step) error {
	switch s.Action {
	case New:
		return b.create(s)
	case Cancel:
		i := b.index(s.Ref)
		if i < 0 {
			return fmt.Errorf("cancel of %q, which does not rest", s.Ref)
		}
		b.orders = slices.Delete(b.orders, i, i+1)
		return nil
	case Replace:
		i := b.index(s.Ref)
		if i < 0 {
			return fmt.Errorf("replace of %q, which does not rest", s.Ref)
		}
		o := &b.orders[i]
		filled := o.total - o.leaves
		if int64(s.Quantity) >= o.total || int64(s.Quantity) <= filled || s.LimitPx != o.px {
			return fmt.Errorf("replace of %+v by %+v is no size-down", *o, s)
		}
		o.total = int64(s.Quantity)
		o.leaves = o.total - filled
		return nil
	}
	return fmt.Errorf("action %s", s.Action)
}

func (b *naiveBook) index(id string) int {
	return slices.IndexFunc(b.orders, func(o naiveOrder) bool { return o.id == id })
}

func (b *naiveBook) create(s Step) error {
	if s.ClientOrderID == "" || s.Quantity <= 0 || s.LimitPx <= 0 || b.index(s.ClientOrderID) >= 0 {
		return fmt.Errorf("order %+v cannot be", s)
	}
	left := int64(s.Quantity)
	for left > 0 {
		at := -1
		for i, o := range b.orders {
			crosses := o.px <= s.LimitPx
			if s.Side == matcher.Sell {
				crosses = o.px >= s.LimitPx
			}
			if o.side == s.Side || !crosses {
				continue
			}
			if at < 0 || o.px != b.orders[at].px && (o.px < b.orders[at].px) == (s.Side == matcher.Buy) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		if b.orders[at].account == s.AccountID {
			return fmt.Errorf("order %+v would trade with its own account", s)
		}
		filled := min(left, b.orders[at].leaves)
		left -= filled
		if b.orders[at].leaves -= filled; b.orders[at].leaves == 0 {
			b.orders = slices.Delete(b.orders, at, at+1)
		}
	}
	if left == 0 {
		return nil
	}
	if s.TimeInForce == IOC {
		return fmt.Errorf("execution %+v: %d found nobody", s, left)
	}
	b.orders = append(b.orders, naiveOrder{
		id: s.ClientOrderID, account: s.AccountID, side: s.Side, px: s.LimitPx,
		total: int64(s.Quantity), leaves: left,
	})
	return nil
}

func (b *naiveBook) depth(levels int) (d Depth) {
	for _, side := range []matcher.Side{matcher.Buy, matcher.Sell} {
		total := map[int64]int64{}
		for _, o := range b.orders {
			if o.side == side {
				total[o.px] += o.leaves
			}
		}
		var out []Level
		for px, qty := range total {
			out = append(out, Level{px, qty})
		}
		slices.SortFunc(out, func(x, y Level) int {
			if side == matcher.Buy {
				return int(y.Px - x.Px)
			}
			return int(x.Px - y.Px)
		})
		out = out[:min(levels, len(out))]
		if side == matcher.Buy {
			d.Bids = out
		} else {
			d.Asks = out
		}
	}
	return d
}

func sameDepth(a, b Depth) bool {
	return slices.Equal(a.Bids, b.Bids) && slices.Equal(a.Asks, b.Asks)
}

var testOptions = LobsterOptions{Security: "AAPL", Maker: 1, Taker: 2, Prefix: "t-"}

// replayNaively sends a translated flow through the naive venue and returns how many transitions
// reached the published book.
func replayNaively(t *testing.T, l *Lobster) (matched, transitions int) {
	t.Helper()
	var venue naiveBook
	for {
		e, err := l.Next()
		if err == io.EOF {
			return matched, transitions
		}
		must.OK(t, err)
		for _, s := range e.Steps {
			if err := venue.apply(s); err != nil {
				t.Fatalf("event %d: %v", e.Number, err)
			}
		}
		if err := l.book.check(); err != nil {
			t.Fatalf("event %d: %v", e.Number, err)
		}
		got := venue.depth(l.Levels())
		same := sameDepth(got, e.Want)
		if !same {
			t.Errorf("event %d: book\n%v, want\n%v", e.Number, got, e.Want)
		}
		if e.Number > 1 {
			transitions++
			if same {
				matched++
			}
		}
	}
}

// sharedFolder finds a folder of the shared test data: below POSTTRADE_TEST_SHARED,
// or below a folder "shared" beside one of the parents. Without it CI fails.
func sharedFolder(t *testing.T, name string) string {
	t.Helper()
	var tried []string
	if root := os.Getenv("POSTTRADE_TEST_SHARED"); root != "" {
		tried = append(tried, filepath.Join(root, name))
	} else {
		dir := must.Get(os.Getwd())(t)
		for dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			tried = append(tried, filepath.Join(dir, "shared", name))
		}
	}
	for _, dir := range tried {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("the shared test data is part of CI: looked for %s", strings.Join(tried, ", "))
	}
	t.Logf("no shared test data, nothing to compare: looked for %s", strings.Join(tried, ", "))
	return ""
}

func openLobster(t *testing.T, dir string) *Lobster {
	t.Helper()
	ticker, messages, book, err := FindLobster(os.DirFS(dir))
	must.OK(t, err)
	if ticker == "" {
		t.Errorf("no ticker in %s", messages)
	}
	open := func(name string) io.Reader {
		f := must.Get(os.Open(filepath.Join(dir, name)))(t)
		t.Cleanup(func() { f.Close() })
		return f
	}
	l, err := NewLobster(open(messages), open(book), testOptions)
	must.OK(t, err)
	return l
}

func TestRealBookIsReachedEventByEvent(t *testing.T) {
	dir := sharedFolder(t, "data/lobster")
	if dir == "" {
		return
	}
	l := openLobster(t, dir)
	matched, transitions := replayNaively(t, l)
	t.Logf("%d of %d transitions match; %+v", matched, transitions, l.Stats())
	if matched != 998 || transitions != 998 {
		t.Errorf("%d of %d transitions match, want 998 of 998", matched, transitions)
	}
}

// TestEachMessageBecomesItsSteps pins the translation itself: the named order, the steps, and the
// quantity taken from the seed.
func TestEachMessageBecomesItsSteps(t *testing.T) {
	const messages = "" +
		"34200.1,1,7,10,1000000,1\n" + // the start: 10 of the level's 30 are order 7
		"34200.2,1,8,5,1000100,-1\n" +
		"34200.3,2,7,4,1000000,1\n" + // the named order shrinks, not the seed before it
		"34200.4,2,99,3,1000000,1\n" + // an unknown order: off the seed
		"34200.5,5,0,50,1000050,1\n" +
		"34200.6,4,99,17,1000000,1\n" + // the rest of the seed
		"34200.7,4,7,2,1000000,1\n" +
		"34200.8,3,7,4,1000000,1\n"
	const rows = "" +
		"1000200,40,1000000,30\n1000100,5,1000000,30\n1000100,5,1000000,26\n1000100,5,1000000,23\n" +
		"1000100,5,1000000,23\n1000100,5,1000000,6\n1000100,5,1000000,4\n1000100,5,999900,60\n"
	order := func(id string, side matcher.Side, qty int32, px int64) Step {
		return Step{Action: New, ClientOrderID: "t-" + id, AccountID: 1, Security: "AAPL", Side: side,
			Quantity: qty, LimitPx: px}
	}
	execution := func(id string, qty int32) Step {
		s := order(id, matcher.Sell, qty, 100_000_000)
		s.AccountID, s.TimeInForce = 2, IOC
		return s
	}
	change := func(action Action, ref string, qty int32, px int64) Step {
		return Step{Action: action, Ref: "t-" + ref, AccountID: 1, Security: "AAPL", Quantity: qty,
			LimitPx: px}
	}
	want := [][]Step{
		{order("seed1", matcher.Buy, 20, 100_000_000), order("o7", matcher.Buy, 10, 100_000_000),
			order("seed2", matcher.Sell, 40, 100_020_000)},
		{order("o8", matcher.Sell, 5, 100_010_000)},
		{change(Replace, "o7", 6, 100_000_000)},
		{change(Replace, "seed1", 17, 100_000_000)},
		{},
		{execution("x6", 17)},
		{execution("x7", 2)},
		{order("seed3", matcher.Buy, 60, 99_990_000), change(Cancel, "o7", 0, 0)},
	}
	l := must.Get(NewLobster(strings.NewReader(messages), strings.NewReader(rows), testOptions))(t)
	for i, steps := range want {
		e := must.Get(l.Next())(t)
		if diff := cmp.Diff(steps, e.Steps, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i+1, diff)
		}
		if edge := map[bool]int{true: 1}[i == 7]; e.Edge != edge {
			t.Errorf("event %d: %d steps from beyond the window, want %d", i+1, e.Edge, edge)
		}
	}
	if e, err := l.Next(); err != io.EOF {
		t.Errorf("one more event: %+v, %v", e, err)
	}
	if l.Security() != "AAPL" || l.Levels() != 1 {
		t.Errorf("security %s, %d levels", l.Security(), l.Levels())
	}
}
