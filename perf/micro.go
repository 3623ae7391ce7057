package perf

import (
	"errors"
	"fmt"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/flow"
	"posttrade/matcher/gate"
	"posttrade/matcher/strictjson"
	"posttrade/ring"
)

// micros are the rows of the gate: each takes a few milliseconds of processor time. They do not
// depend on a second core nor, except for the journal's writes, on a device.
//
// A row times its thread where one thread does the work, and the process where several do. A change
// of a row's work makes its figures those of something else, so base and head must have the same
// rows for a verdict: the gate runs the code of each build, and compares the two as if the work
// were equal.
func micros() []micro {
	return []micro{
		{"ring", threadClock, microRing},
		{"book", threadClock, microBook},
		{"decision", threadClock, microDecision},
		{"gate", threadClock, microGate},
		{"codec-json", threadClock, microJSON},
		{"codec-record", threadClock, microRecord},
		{"journal", processClock, microJournal},
	}
}

// microRing moves messages through a ring from one end to the other on one thread, sixteen at a
// time: the instructions of both ends without the transfer between two cores. Its operation is a
// message.
func microRing(string) (*laps, error) {
	const slots, batch, n = 1 << 12, 16, 1 << 18
	region, err := ring.Anonymous(ring.SPSCBytes[message](slots))
	if err != nil {
		return nil, err
	}
	q, err := ring.NewSPSC[message](region, slots)
	if err != nil {
		return nil, errors.Join(err, region.Close())
	}
	run := func() error {
		var sum uint64
		for i := 0; i < n; i += batch {
			for k := range uint64(batch) {
				q.Claim().words[0] = k
			}
			q.Publish()
			lo, hi := q.Ready(batch)
			for p := lo; p < hi; p++ {
				sum += q.At(p).words[0]
			}
			q.Release(hi)
		}
		if want := uint64(n / batch * (batch - 1) * batch / 2); sum != want {
			return fmt.Errorf("ring lost or invented messages: sum %d, want %d", sum, want)
		}
		return nil
	}
	return &laps{ops: n, run: run, close: region.Close}, nil
}

// microBook applies a flow to one book: one symbol, five thousand orders to begin with, forty
// thousand commands. Every lap starts with the same orders. Its operation is a command of the book,
// without the engine's checks. Other trades than the flow's are an error.
func microBook(string) (*laps, error) {
	f := flow.Generate(flow.Options{Seed: 42, Symbols: 1, Prefill: 5_000, N: 40_000})
	sum := &bookSum{}
	memory, err := matcher.NewBookMemory(1 << 16)
	if err != nil {
		return nil, err
	}
	book, err := memory.NewBook(sum)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	books := []*matcher.Book{book}
	ready := func() error {
		for id := uint32(1); id <= f.MaxID; id++ {
			book.Cancel(id)
		}
		sum.result = flow.NewResult()
		for i := range f.Commands[:f.Prefill] {
			applyToBook(books, &f.Commands[i])
		}
		return nil
	}
	timed := f.Timed()
	run := func() error {
		for i := range timed {
			applyToBook(books, &timed[i])
		}
		if sum.result != f.Result {
			return fmt.Errorf("book traded %+v, want %+v", sum.result, f.Result)
		}
		return nil
	}
	return &laps{ops: len(timed), ready: ready, run: run, close: memory.Close}, nil
}

// steady is an endless flow that leaves the book as it was: an order, one that takes it, an order
// far away, and its cancel. The references are those of the engine, which numbers new orders from
// 1; so no other orders may go into that engine.
type steady struct {
	random *flow.Random
	n      uint64
	ref    uint32 // of the last new order
}

// next writes the flow's next command. Maker and taker have different accounts, so that no
// self-trade is prevented.
func (s *steady) next(c *matcher.Command) {
	step := s.n % 4
	if s.n++; step == 3 {
		*c = matcher.NewCommand(matcher.OrderCancel)
		c.OrderRef, c.AccountID = s.ref, 1
	} else {
		*c = matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.Side, c.Qty = uint32(step%2)+1, matcher.Sell, 10
		c.LimitPx = 187_000_000 + int64(s.n%64)*10_000
		c.PriceTicks = int64(s.random.Uint64() | 1)
		switch step {
		case 1:
			c.Side, c.LimitPx = matcher.Buy, 188_000_000
		case 2:
			c.LimitPx += 5_000_000
		}
		s.ref++
	}
	c.SecurityID = 1
	c.EventTimeMillis = 1_700_000_000_000 + int64(s.n/1000)
}

// microDecision is the engine's step, from commands to events in a ring's slots. Its operation is a
// command; four of them make one trade of two fills. A lap follows the one before on the same
// engine, whose book is then as it was, while the tables of retained orders and of keys go on.
func microDecision(string) (*laps, error) {
	e, err := matcher.New(flowGenesis(1))
	if err != nil {
		return nil, err
	}
	const slots, n = 1 << 12, 20_000
	out := &matcher.Outlet{Slots: make([]matcher.Event, slots), Mask: slots - 1, Limit: 1 << 62}
	source := &steady{random: flow.NewRandom(9)}
	commands := make([]matcher.Command, n)
	fills := e.TradeSeq()
	ready := func() error {
		for i := range commands {
			source.next(&commands[i])
		}
		return nil
	}
	run := func() error {
		for i := 0; i < n; i += stageBatch {
			e.ApplyBatch(commands[i:min(i+stageBatch, n)], out)
		}
		if fills += n / 2; e.TradeSeq() != fills {
			return fmt.Errorf("engine made %d fills, want %d", e.TradeSeq(), fills)
		}
		return nil
	}
	return &laps{ops: n, ready: ready, run: run, close: e.Close}, nil
}

// microGate screens good orders, which pass every check. Its operation is an order.
func microGate(string) (*laps, error) {
	g := gate.New(4096, 4096)
	if err := g.Load(flowGenesis(32)); err != nil {
		return nil, err
	}
	g.SetReady()
	commands := drawnCommands(1, 1<<12)
	const n = 1 << 16
	run := func() error {
		for i := range n {
			if reason := g.Screen(&commands[i&(len(commands)-1)]); reason != matcher.Accepted {
				return fmt.Errorf("the gate refused a good order: %v", reason)
			}
		}
		return nil
	}
	return &laps{ops: n, run: run}, nil
}

// microJSON reads an order's body, key by key, and skips the values: the reader, not the meaning of
// the members. Its operation is a body.
func microJSON(string) (*laps, error) {
	body := appendOrder(nil, 1, 1, 1)
	reader := strictjson.NewReader(body)
	const n = 4_000
	return &laps{ops: n, run: func() error { return readBodies(reader, body, n) }}, nil
}

// microRecord reads commands from their 64 bytes, with the checks of matcher.Decode. Its operation
// is a record.
func microRecord(string) (*laps, error) {
	commands := drawnCommands(1, 1<<10)
	const n = 1 << 16
	run := func() error {
		for i := range n {
			if _, err := matcher.Decode(commands[i&(len(commands)-1)].Bytes()[:]); err != nil {
				return err
			}
		}
		return nil
	}
	return &laps{ops: n, run: run}, nil
}

// microJournal appends blocks of commands and waits until they are in the log. Its operation is one
// command, its time that of all threads.
func microJournal(dir string) (*laps, error) {
	j, err := journal.Open(dir+"/journal", journal.Options{Durability: journal.DurabilityOS,
		Fatal: func(error) {}})
	if err != nil {
		return nil, err
	}
	if err := j.Create(flowGenesis(1).Marshal()); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	const blocks, perBlock = 16, 1024
	commands := drawnCommands(5, blocks*perBlock)
	var block journal.Block
	seq := uint64(0)
	run := func() error {
		var last *journal.Commit
		for b := range blocks {
			block.Reset()
			for i := range perBlock {
				c := commands[b*perBlock+i]
				seq++
				c.InputSeq = seq
				block.Command(&c)
			}
			if last, err = j.Append(&block); err != nil {
				return err
			}
		}
		return last.Wait()
	}
	return &laps{ops: blocks * perBlock, run: run, close: j.Close}, nil
}
