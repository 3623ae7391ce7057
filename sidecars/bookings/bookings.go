package bookings

import (
	"context"
	"errors"
	"log/slog"

	"posttrade/sidecars/broker"
	"posttrade/sidecars/projection"
)

// legacyStream carries the bookings of programs that have no journal to follow.
var legacyStream = broker.Stream{Name: "SVC_TRADES", Subjects: []string{"trades.booking"}}

// legacyDurable is the name of the durable consumer. Its position in the stream survives a restart.
//
// Under another name every booking of the stream would come again.
const legacyDurable = "trade-processor"

// Bookings takes trades from the message broker into the projection. The journal's own path and
// this one may bring the same trade in any order: it is booked once.
//
// The fields are set before Run. BookLegacy commits each message alone, so one that is refused
// keeps none of the others from being booked.
type Bookings struct {
	Broker *broker.Broker
	Book   *projection.Projection
	Log    *slog.Logger

	// The reasons of which a refused message is in the log already: one of each is enough.
	saidMalformed, saidForeign bool
}

// Run takes bookings until ctx ends; then it returns nil.
func (l *Bookings) Run(ctx context.Context) error {
	return l.Broker.Consume(ctx, broker.ConsumerConfig{
		Stream: legacyStream, Durable: legacyDurable, Subject: legacyStream.Subjects[0],
	}, l.take)
}

// take books a batch. A message is acknowledged when its trade is in the database, or will be by
// the journal's own path; terminated when no retry could make it a trade; and left for a later
// delivery when the database cannot be reached.
//
// An error hands back the messages that are not settled yet; Consume pauses and delivers them
// again.
func (l *Bookings) take(ctx context.Context, messages []broker.Message) error {
	for i := range messages {
		m := &messages[i]
		_, err := l.Book.BookLegacy(ctx, m.Data)
		switch {
		case err == nil:
			err = m.Ack()
		case errors.Is(err, projection.ErrMalformed):
			l.say(&l.saidMalformed, m, err)
			err = m.Term(err.Error())
		case errors.Is(err, projection.ErrForeignID):
			l.say(&l.saidForeign, m, err)
			err = m.Term(err.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say logs a refused message, unless one of its reason is in the log. Messages come from outside: a
// line for each would let their sender fill the log.
func (l *Bookings) say(said *bool, m *broker.Message, err error) {
	if !*said {
		*said = true
		l.Log.Warn("a booking on the message broker is refused; later ones like it are only counted",
			"stream", legacyStream.Name, "sequence", m.Sequence, "error", err)
	}
}
