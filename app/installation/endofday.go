package installation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/strictjson"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/store"
)

// The subjects of the end of the day.
//
// eodDurable is the name of the consumer that the broker keeps: another name would begin at the
// first message again.
const (
	extractReadySubject = "risk.extract.ready"
	eodSubject          = "eod.pnl.done"
	eodDurable          = "risk-extract"
)

// eodStream has the messages that say that a day's profit and loss is done.
//
// The stream is made by this process if the broker does not have it.
var eodStream = broker.Stream{Name: "SVC_EOD", Subjects: []string{eodSubject}}

// follow takes the messages of the end of a day from the broker, until ctx ends.
//
// One message at a time is taken, because each waits for its extract. The broker waits a minute
// longer than that may take, so that it does not deliver a message while it is being worked on.
func (x *extracts) follow(ctx context.Context) error {
	return x.broker.Consume(ctx, broker.ConsumerConfig{
		Stream: eodStream, Durable: eodDurable, Subject: eodSubject, AckWait: eodPatience + time.Minute,
		BatchMessages: 1,
	}, x.take)
}

// eodPatience is how long one extract may take before the broker delivers its message again.
//
// The marker is not sequenced again then.
const eodPatience = 5 * time.Minute

// eodWord identifies a message of the end of a day. The sequence alone does not: a stream that was
// made again gives the same sequences to other messages.
type eodWord struct {
	sequence  uint64
	published int64 // when the stream stored it, in epoch nanoseconds
	day       store.Date
	version   uint32
}

// take sequences the marker of a day, and acknowledges the message when the extract has been
// announced. The broker delivers a message again when the extract was refused or late. The message
// then waits for the same marker; after a restart it gets a new marker.
//
// A malformed message is terminated: it would be malformed at every delivery. A marker that is
// sequenced twice, after a restart, makes two extracts of the day, each complete and at its own
// sequence.
func (x *extracts) take(ctx context.Context, messages []broker.Message) error {
	for i := range messages {
		m := &messages[i]
		day, version, err := readEndOfDay(m.Data)
		if err != nil {
			x.log.Warn("the word of a day's end is malformed", "stream", eodStream.Name, "sequence",
				m.Sequence, "error", err)
			if err := m.Term(err.Error()); err != nil {
				return err
			}
			continue
		}
		word := eodWord{m.Sequence, m.PublishedAt.UnixNano(), day, version}
		if err := x.endOfDay(ctx, word); err != nil {
			return err
		}
		if err := m.Ack(); err != nil {
			return err
		}
		delete(x.sequenced, word)
	}
	return nil
}

// errShut hands a message back while nothing can be sequenced.
var errShut = errors.New(
	"nothing is sequenced now; the parts journal and history of /readyz say why")

// endOfDay waits until the desk has room, so it can take as long as ctx lets it. It is errShut at
// once while POST /risk/extract would be refused, too.
func (x *extracts) endOfDay(ctx context.Context, word eodWord) error {
	ctx, cancel := context.WithTimeout(ctx, eodPatience)
	defer cancel()
	if x.sequenced[word] == 0 {
		if !x.open() {
			return errShut
		}
		err := desk.SubmitUntil(ctx, x.k.Desk, 1, func(_ int, c *matcher.Command) error {
			*c = matcher.NewRiskExtract(int64(word.day), word.version)
			return nil
		}, func(a *desk.Answer) error {
			x.sequenced[word] = a.InputSeq
			return nil
		})
		if err != nil {
			return err
		}
	}
	return x.Extractor.Wait(ctx, x.sequenced[word])
}

// errEndOfDay is the reason with which a malformed message is terminated. The bounds are those of
// the marker: a day in 16 bits, a version in 32.
var errEndOfDay = errors.New(
	"not {sessionDate, version}, of 1970-01-01 to 2149-06-06 and of 1 to 4294967295")

// readEndOfDay reads {"sessionDate":"yyyy-MM-dd","version":n}. It accepts what POST /risk/extract
// accepts: the extractor would refuse any other marker each time.
func readEndOfDay(data []byte) (day store.Date, version uint32, err error) {
	r := strictjson.NewReader(data)
	var dated, versioned bool
	for key := range r.Members {
		switch string(key) {
		case "sessionDate":
			dated = true
			if day, err = store.ParseDate(string(r.String())); err != nil {
				r.Fail(fmt.Errorf("%w: %w", errEndOfDay, err))
			} else if day < 0 || day > math.MaxUint16 {
				r.Fail(errEndOfDay)
			}
		case "version":
			versioned = true
			n := r.Int()
			if n < 1 || n > math.MaxUint32 {
				r.Fail(errEndOfDay)
			}
			version = uint32(n)
		default:
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return 0, 0, err
	}
	if !dated || !versioned {
		return 0, 0, errEndOfDay
	}
	return day, version, nil
}
