package perf

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/flow"
	"posttrade/perf/orderflow"
)

// measureLobster replays a day of a real book, when its files are given. It first compares the book
// with the published one after every event, then times the same orders.
//
// The time is of one core with the book alone, the best of two thousand runs of the whole file, so
// it is that of warm caches. It has no target: the file decides the mix, and a different file has
// another figure. A book that differs from the published one at any event is an error of the run.
func measureLobster(r *Run) error {
	if r.o.Lobster == "" {
		fmt.Fprintln(r.o.Stdout, "no LOBSTER files given")
		return nil
	}
	t, err := translateLobster(r.o.Lobster)
	if err != nil {
		return err
	}
	defer t.close()
	best := math.Inf(1)
	for range r.scale(2000) {
		took, err := t.replay()
		if err != nil {
			return err
		}
		best = min(best, float64(took.Nanoseconds()))
	}
	n := len(t.orders)
	r.bench("Book/op=lobster", n, time.Duration(best), metric{float64(n) / best * 1e3, "M/s"},
		metric{float64(t.events), "events"},
		metric{float64(t.result.Trades), "trades"})
	return nil
}

// lobsterOrder is a step in the form that a book takes.
type lobsterOrder struct {
	// action decides which call of the book it is: Cancel, Replace, or New for anything else.
	action orderflow.Action
	// order is the call's argument: of a cancel only the id, of a replace the quantity that stays
	// open.
	order matcher.BookOrder
}

// lobsterTape is a LOBSTER file as orders to one book. While it is translated it is that book's
// sink; replay has a book and a sink of its own.
type lobsterTape struct {
	// orders are all orders of the file, in order. They are kept so that replay times no reading of
	// files.
	orders []lobsterOrder
	// events is the number of messages of the file that were read.
	events int
	// ids is the last id given: the book's ids count from 1 in the order of the new orders.
	ids uint32
	// result is the sum of the trades of the translation, which each replay must reach again.
	result flow.Result
	// book and sum are those of the replays; nil before the first one.
	book *matcher.Book
	sum  *bookSum
	// filled is how much of each order has been filled so far, by its id.
	filled map[uint32]int32
}

// Filled counts a fill for both sides.
func (t *lobsterTape) Filled(maker, taker uint32, px int64, qty int32) {
	t.filled[maker] += qty
	t.filled[taker] += qty
	t.result.Add(maker, taker, px, qty)
}

// Prevented cannot happen: the orders have no owner.
func (t *lobsterTape) Prevented(uint32, uint32, int32) {}

// translateLobster turns the files in a folder into orders and compares the book with the published
// one after every event. The caller closes the tape. Errors name the event, and the step that the
// book refused.
func translateLobster(dir string) (t *lobsterTape, err error) {
	ticker, messages, rows, err := orderflow.FindLobster(os.DirFS(dir))
	if err != nil {
		return nil, err
	}
	messageFile, err := os.Open(filepath.Join(dir, messages))
	if err != nil {
		return nil, err
	}
	defer messageFile.Close()
	rowFile, err := os.Open(filepath.Join(dir, rows))
	if err != nil {
		return nil, err
	}
	defer rowFile.Close()
	source, err := orderflow.NewLobster(messageFile, rowFile,
		orderflow.LobsterOptions{Security: ticker, Maker: 1, Taker: 2})
	if err != nil {
		return nil, err
	}
	t = &lobsterTape{result: flow.NewResult(), filled: map[uint32]int32{}}
	book, err := matcher.NewBook(matcher.BookOptions{Sink: t, MaxOrders: 1 << 16})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	return t, t.translate(source, book)
}

// translate sends the file's steps to a book and keeps them as orders. It stops at the first event
// after which the book differs, because every later one would.
func (t *lobsterTape) translate(source *orderflow.Lobster, book *matcher.Book) error {
	ids := map[string]uint32{}
	for {
		event, err := source.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		t.events++
		for i := range event.Steps {
			o := t.order(&event.Steps[i], ids)
			if out := o.apply(book); out.Reject != matcher.BookOK {
				return fmt.Errorf("event %d: %+v: refused with %d", event.Number, event.Steps[i], out.Reject)
			}
			t.orders = append(t.orders, o)
		}
		if err := compareDepth(book, &event.Want, source.Levels()); err != nil {
			return fmt.Errorf("event %d: %w", event.Number, err)
		}
	}
}

// order is a step in the book's terms: ids count from 1, and a replace names the quantity that
// stays open, while a step names the new total.
func (t *lobsterTape) order(s *orderflow.Step, ids map[string]uint32) lobsterOrder {
	if s.Action != orderflow.New {
		id := ids[s.Ref]
		return lobsterOrder{s.Action, matcher.BookOrder{ID: id, Px: s.LimitPx,
			Qty: s.Quantity - t.filled[id]}}
	}
	t.ids++
	ids[s.ClientOrderID] = t.ids
	o := matcher.BookOrder{ID: t.ids, Side: s.Side, Px: s.LimitPx, Qty: s.Quantity}
	if s.TimeInForce == orderflow.IOC {
		o.Flags = matcher.FlagIOC
	}
	return lobsterOrder{s.Action, o}
}

// apply carries the order out on a book.
func (o *lobsterOrder) apply(b *matcher.Book) matcher.Outcome {
	switch o.action {
	case orderflow.Cancel:
		return b.Cancel(o.order.ID)
	case orderflow.Replace:
		return b.Modify(o.order.ID, o.order.Px, o.order.Qty)
	}
	return b.New(o.order)
}

// compareDepth compares the best levels of a book with the published ones: prices and quantities of
// as many levels as the file has. The published side may have fewer levels only when the book has
// as few.
func compareDepth(b *matcher.Book, want *orderflow.Depth, levels int) error {
	have := make([]matcher.BookLevel, levels)
	for side, published := range [][]orderflow.Level{matcher.Buy: want.Bids, matcher.Sell: want.Asks} {
		n := b.Depth(matcher.Side(side), have)
		if n < len(published) || n > len(published) && len(published) < levels {
			return fmt.Errorf("%d levels on the %s side, want %d", n, orderflow.SideName(matcher.Side(side)),
				len(published))
		}
		for i, l := range published {
			if have[i].Px != l.Px || have[i].Qty != l.Qty {
				return fmt.Errorf("level %d of the %s side is %d x %d, want %d x %d", i+1,
					orderflow.SideName(matcher.Side(side)),
					have[i].Px, have[i].Qty, l.Px, l.Qty)
			}
		}
	}
	return nil
}

// close releases the book's memory.
func (t *lobsterTape) close() {
	if t.book != nil {
		t.book.Close()
	}
}

// replay times all orders on an empty book and returns how long they took. Emptying the book is not
// timed. The book keeps its memory from one replay to the next.
func (t *lobsterTape) replay() (time.Duration, error) {
	if t.book == nil {
		t.sum = &bookSum{}
		var err error
		if t.book, err = matcher.NewBook(matcher.BookOptions{Sink: t.sum,
			MaxOrders: 1 << 16}); err != nil {
			return 0, err
		}
	}
	for id := uint32(1); id <= t.ids; id++ {
		t.book.Cancel(id)
	}
	t.sum.result = flow.NewResult()
	start := time.Now()
	for i := range t.orders {
		t.orders[i].apply(t.book)
	}
	took := time.Since(start)
	if t.sum.result != t.result {
		return 0, fmt.Errorf("replayed: %+v, want %+v", t.sum.result, t.result)
	}
	return took, nil
}
