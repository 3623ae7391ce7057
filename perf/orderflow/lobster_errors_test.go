package orderflow

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestLobsterRefusesBadFiles(t *testing.T) {
	const add = "34200.5,1,7,10,1000000,1\n"
	const row = "1000100,5,1000000,10\n"
	tests := []struct{ name, messages, rows, want string }{
		{"short message", "34200.5,1,7,10,1000000\n", row, "message file line 1: 5 columns, want 6"},
		{"bad time", "34200.0123456789,1,7,10,1000000,1\n", row, "message file line 1: time"},
		{"bad type", "34200.5,8,7,10,1000000,1\n", row, `message file line 1: type "8"`},
		{"bad id", "34200.5,1,x,10,1000000,1\n", row, `message file line 1: order id "x"`},
		{"bad size", "34200.5,1,7,0,1000000,1\n", row, `message file line 1: size "0"`},
		{"bad price", "34200.5,1,7,10,-1,1\n", row, `message file line 1: price "-1"`},
		{"bad direction", "34200.5,1,7,10,1000000,0\n", row, `message file line 1: direction "0"`},
		{"fewer rows", add + add, row, "orderbook file line 2: fewer rows than messages"},
		{"more rows", add, row + row, "orderbook file line 2: more rows than messages"},
		{"odd columns", add, "1000100,5,1000000\n",
			"orderbook file line 1: 3 columns, want a multiple of 4"},
		{"other columns", add + add, row + "1000100,5,1000000,10,1,1,1,1\n",
			"orderbook file line 2: 8 columns, want 4"},
		{"bad level price", add, "x,5,1000000,10\n", `orderbook file line 1: price "x"`},
		{"bad level size", add, "1000100,5,1000000,y\n", `orderbook file line 1: size "y"`},
		{"levels out of order", add, "1000100,5,1000000,10,1000050,5,999900,10\n",
			"is not worse than the level before it"},
		{"added twice", add + add, row + "1000100,5,1000000,20\n",
			"message file line 2: order 7 is added twice"},
		{"crossed book", add, "1000000,5,1000000,10\n", "orderbook file line 1: the book is crossed"},
		{"crossing order", add + "34201,1,8,5,1000100,1\n", row + row,
			"message file line 2: order 8 at 100010000 would trade"},
		{"order moved", add + "34201,3,7,10,999900,1\n", row + row,
			"message file line 2: order 7 is a Buy at 1000000"},
		{"more taken than there is", add + "34201,3,9,11,1000000,1\n", row + row,
			"message file line 2: 11 taken off order 9"},
		{"execution away from the touch", add + "34201,4,7,5,999900,1\n", row + row,
			"order 7 is a Buy at"},
		{"execution of unknown away from the touch", add + "34201,4,8,5,999900,1\n", row + row,
			"which is not the touch"},
		{"line too long", strings.Repeat("9", maxLine+1) + "\n", row,
			"message file line 1: bufio.Scanner: token too long"},
		{"row too long", add, strings.Repeat("9", maxLine+1) + "\n",
			"orderbook file line 1: bufio.Scanner: token too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := NewLobster(strings.NewReader(tt.messages), strings.NewReader(tt.rows), testOptions)
			must.OK(t, err)
			for err == nil {
				_, err = l.Next()
			}
			if err == io.EOF || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q", err, tt.want)
			}
		})
	}
}

func TestLobsterNeedsTwoAccounts(t *testing.T) {
	for _, o := range []LobsterOptions{{}, {Security: "A", Maker: 1, Taker: 1}, {Maker: 1, Taker: 2},
		{Security: "A", Maker: 1}} {
		if _, err := NewLobster(strings.NewReader(""), strings.NewReader(""), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestLobsterReadsBooksThinnerThanTheFile(t *testing.T) {
	// Two levels a side are published; the bid side has one, then none, then one.
	const messages = "1.5,1,7,10,1000000,1\n2,3,7,10,1000000,1\n3,1,8,4,990000,1\n"
	const rows = "1000100,5,1000000,10,9999999999,0,-9999999999,0\n" +
		"1000100,5,-9999999999,0,9999999999,0,-9999999999,0\n" +
		"1000100,5,990000,4,9999999999,0,-9999999999,0\n"
	l := must.Get(NewLobster(strings.NewReader(messages), strings.NewReader(rows), testOptions))(t)
	if matched, transitions := replayNaively(t, l); matched != 2 || transitions != 2 {
		t.Errorf("%d of %d transitions match, want 2", matched, transitions)
	}
}

func TestFindLobster(t *testing.T) {
	dir := fstest.MapFS{}
	find := func(want string) {
		t.Helper()
		if _, _, _, err := FindLobster(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	find("0 files match")
	dir["AAPL_2012-06-21_message_10.csv"] = &fstest.MapFile{}
	find("has no AAPL_2012-06-21_orderbook_10.csv beside it")
	dir["AAPL_2012-06-21_orderbook_10.csv"] = &fstest.MapFile{}
	if ticker, messages, book, err := FindLobster(dir); err != nil || ticker != "AAPL" ||
		messages != "AAPL_2012-06-21_message_10.csv" || book != "AAPL_2012-06-21_orderbook_10.csv" {
		t.Errorf("got %q %q %q %v", ticker, messages, book, err)
	}
	dir["MSFT_2012-06-21_message_10.csv"] = &fstest.MapFile{}
	find("2 files match")
}

// FuzzLobster checks that the reader fails only with errors: for any content of the files, it
// neither panics nor leaves its own book inconsistent.
func FuzzLobster(f *testing.F) {
	for seed := range uint64(3) {
		messages, book := inventMarket(seed, 20, 2)
		f.Add(string(messages), string(book))
	}
	f.Fuzz(func(t *testing.T, messages, book string) {
		l := must.Get(NewLobster(strings.NewReader(messages), strings.NewReader(book), testOptions))(t)
		for {
			if _, err := l.Next(); err != nil {
				return
			}
			must.OK(t, l.book.check())
		}
	})
}

// check asserts the invariants.
func (l *ladder) check() error {
	for side, rungs := range l.sides {
		for i, r := range rungs {
			if i > 0 && !better(matcher.Side(side), r.px, rungs[i-1].px) {
				return fmt.Errorf("side %d: rung %d is not better than the one before", side, r.px)
			}
			if len(r.queue) == 0 {
				return fmt.Errorf("side %d: rung %d is empty", side, r.px)
			}
			for _, o := range r.queue {
				if o.leaves <= 0 || o.leaves > o.total || o.px != r.px || int(o.side) != side {
					return fmt.Errorf("side %d: rung %d holds %+v", side, r.px, *o)
				}
			}
		}
	}
	return nil
}
