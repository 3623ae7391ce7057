package session

import (
	"fmt"
	"time"

	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
)

// volley is a flow that keeps Window commands on their way and measures the time of each from its
// Flush to its answer.
type volley struct {
	Count  int // commands
	Window int // at most so many unanswered; 1 is ping-pong
	Batch  int // commands a Flush, at most Window; 0: 1

	// Write writes command i by Order, Cancel and so on, with correlation id i.
	Write func(c *client.Client, i int) error
	// Answered is called with every answer and fill. It may be nil. The record is valid during the
	// call.
	Answered func(r *wire.Record) error
}

// volleyResult is the result of a volley.
type volleyResult struct {
	Took     time.Duration
	Answers  int
	Fills    int
	Codes    [wire.Codes]int // answers by code
	RoundNs  []int64         // by command: round trip in nanoseconds
	begun    []int64
	inFlight int
}

// Run sends the load over a session that sends no other commands. It allocates before the first
// command only.
func (l *volley) run(c *client.Client) (*volleyResult, error) {
	if l.Count < 1 || l.Window < 1 || l.Batch > l.Window {
		return nil, fmt.Errorf("volley count=%d window=%d batch=%d: out of range", l.Count,
			l.Window, l.Batch)
	}
	res := &volleyResult{RoundNs: make([]int64, l.Count), begun: make([]int64, l.Count)}
	records := make([]wire.Record, 256)
	start := time.Now()
	for sent := 0; res.Answers < l.Count; {
		next, err := l.send(c, res, sent, start)
		if err != nil {
			return res, err
		}
		sent = next
		if err := l.receive(c, res, records, start); err != nil {
			return res, err
		}
	}
	res.Took = time.Since(start)
	return res, nil
}

// send writes as many batches as the window and the ring have room for.
func (l *volley) send(c *client.Client, res *volleyResult, sent int, start time.Time) (int, error) {
	batch := max(l.Batch, 1)
	for sent < l.Count && res.inFlight+min(batch, l.Count-sent) <= l.Window {
		full, begun := false, int64(time.Since(start))
		for range min(batch, l.Count-sent) {
			err := l.Write(c, sent)
			if full = err == client.ErrFull; full {
				break
			}
			if err != nil {
				return sent, err
			}
			res.begun[sent] = begun
			sent++
			res.inFlight++
		}
		c.Flush()
		if res.inFlight > 0 && full {
			break // the ring limits the window: read first
		}
	}
	return sent, nil
}

// receive waits for records and takes all that are there.
func (l *volley) receive(c *client.Client, res *volleyResult, records []wire.Record,
	start time.Time) error {
	n := c.Poll(records)
	if n == 0 {
		r, err := c.Next()
		if err != nil {
			return err
		}
		records[0] = *r
		n = 1 + c.Poll(records[1:])
	}
	now := int64(time.Since(start))
	for i := range records[:n] {
		r := &records[i]
		switch r.Kind {
		case wire.Answer:
			if r.Correlation >= uint64(l.Count) {
				return fmt.Errorf("volley answer=%d of %d commands: %w", r.Correlation, l.Count,
					wire.ErrFrame)
			}
			res.RoundNs[r.Correlation] = now - res.begun[r.Correlation]
			res.Codes[min(int(r.Code), wire.Codes-1)]++
			res.Answers++
			res.inFlight--
		case wire.Fill:
			res.Fills++
		}
		if l.Answered != nil {
			if err := l.Answered(r); err != nil {
				return err
			}
		}
	}
	return nil
}
