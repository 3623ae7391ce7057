package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"posttrade/journal/evidence/verify"
)

// cosigned asks all witnesses at a time and returns the lines of those that have signed, once they
// have all answered.
//
// count is how many that are; err joins what went wrong with the others. So the slowest witness
// delays a head, by witnessTimeout at most for each try.
func (l *Log) cosigned(ctx context.Context, text []byte,
	head *verify.Checkpoint) (lines []byte, count int, err error) {
	read := func(name string) ([]byte, error) {
		data, _, err := Tile(l.o.Dir, name)
		return data, err
	}
	got := make([][]byte, len(l.o.Witnesses))
	errs := make([]error, len(l.o.Witnesses))
	var asking sync.WaitGroup
	for i, w := range l.o.Witnesses {
		asking.Go(func() { got[i], errs[i] = w.cosign(ctx, l.client, text, head, read) })
	}
	asking.Wait()
	for i := range got {
		if errs[i] == nil {
			lines, count = append(lines, got[i]...), count+1
		}
	}
	return lines, count, errors.Join(errs...)
}

// candidate is a signed head that waits for its witnesses: the note, and what it says.
type candidate struct {
	text []byte
	head verify.Checkpoint
}

// submit gives a head to the witnesses, unless they are still busy with the last one.
//
// Without a quorum the head is published at once. Run's goroutine only; it does not wait, except
// for the last head of a stop.
func (l *Log) submit(c candidate) {
	if l.o.Quorum == 0 {
		_, err := l.publish(c.text, c.head)
		l.report(err)
	}
	l.offered = c
	if !l.patient {
		select {
		case l.candidates <- c:
		default:
		}
		return
	}
	select {
	case l.candidates <- c:
	case <-time.After(lastPatience):
	}
}

// offerAgain submits a published head that the witnesses were too busy for, or away. Without it a
// head behind which nothing comes would stay without them.
func (l *Log) offerAgain() {
	if l.offered.text == nil || l.patient || l.State().Cosigned >= l.offered.head.Head {
		return
	}
	select {
	case l.candidates <- l.offered:
	default:
	}
}

// report keeps the last failure for State.
//
// nil says that all is well again. The alarm is told of a failure once, until its text changes.
func (l *Log) report(err error) {
	changed := false
	l.change(func(s *State) {
		changed = err != nil && (s.Failed == nil || s.Failed.Error() != err.Error())
		s.Failed = err
	})
	if changed {
		l.o.Alarm(err)
	}
}

// witness publishes the heads that are submitted, as soon as enough witnesses have signed, until
// the channel is closed. A witness that is away delays heads and nothing else.
func (l *Log) witness(ctx context.Context) {
	for c := range l.candidates {
		lines, count, err := l.cosigned(ctx, c.text, &c.head)
		if count < l.o.Quorum {
			l.report(fmt.Errorf("evidence: %d of %d witnesses have cosigned: %w", count, l.o.Quorum, err))
			continue
		}
		if count > 0 {
			shown, e := l.publish(append(bytes.Clone(c.text), lines...), c.head)
			if err = errors.Join(err, e); shown {
				l.change(func(s *State) { s.Cosigned = max(s.Cosigned, c.head.Head) })
			}
		}
		l.report(err)
	}
}
