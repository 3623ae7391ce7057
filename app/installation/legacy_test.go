package installation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/matcher"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/store"
)

// otherProgram is a program that uses the installation's message broker.
type otherProgram struct {
	t      *testing.T
	broker *broker.Broker
}

func newOtherProgram(t *testing.T, url string) *otherProgram {
	t.Helper()
	b, err := broker.Open(broker.Options{URL: url, Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return &otherProgram{t, b}
}

// book publishes a booking and waits until the stream has it.
func (p *otherProgram) book(body string) {
	p.t.Helper()
	apptest.Until(p.t, "a booking is published", func() (bool, any) {
		_, err := p.broker.Publish(p.t.Context(), "trades.booking", []byte(body), broker.PublishOptions{})
		return err == nil, err
	})
}

// booking is the message about a fill, without the fields that only the journal has.
func booking(tr *store.Trade) string {
	return fmt.Sprintf(
		`{"id":%q,"tradeSeq":%d,"accountId":%d,"security":%q,"side":%q,"quantity":%d,"price":%s,`+
			`"timestamp":%q}`, tr.ID, tr.Seq, tr.AccountID, tr.Security, columnOf(tr, "side"), tr.Quantity,
		client.Price(tr.Price),
		time.UnixMilli(tr.ExecutedAt).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// crossing is a sell and a buy that trade only with each other, and the two trades that result.
type crossing struct {
	commands [2]matcher.Command
	trades   [2]store.Trade
}

func nextCrossing(in *installed, k int) crossing {
	const security = 1
	px, qty, at := int64(50_000_000+1000*k), int32(1+k), dayBegins+int64(k)
	c := crossing{}
	for i, account := range []uint32{1, 2} {
		o := matcher.NewCommand(matcher.OrderNew)
		o.AccountID, o.SecurityID, o.Side, o.Qty, o.LimitPx = account, security, matcher.Side(1-i), qty,
			px
		o.EventTimeMillis = at
		c.commands[i] = o
	}
	for i, account := range []uint32{2, 1} { // the aggressor first
		seq := in.tradeSeq() + uint64(1+i)
		c.trades[i] = store.Trade{
			ID: fmt.Sprintf("trd-%d", seq), Seq: seq, AccountID: account,
			Security: in.Core.Gate.Ticker(security),
			Side:     matcher.Side(i), Quantity: int64(qty), Price: px, ExecutedAt: at,
		}
	}
	return c
}

// execute sequences the orders of a crossing.
func (c *crossing) execute(t *testing.T, in *installed) {
	t.Helper()
	ticket, err := in.Core.Desk.Acquire(len(c.commands))
	if err != nil {
		t.Fatal(err)
	}
	defer ticket.Release()
	for i := range c.commands {
		*ticket.Command(i) = c.commands[i]
	}
	if err := ticket.Submit(); err != nil {
		t.Fatal(err)
	}
	if err := ticket.Wait(0); err != nil {
		t.Fatal(err)
	}
}

// awaitRow waits until a trade is in the table, on whichever path it was booked.
func (i *installed) awaitRow(id string) {
	i.t.Helper()
	apptest.Until(i.t, id+" is booked", func() (bool, any) {
		found := false
		err := i.Beside.Load().Db.Read(i.t.Context(), func(tx *store.Tx) (err error) {
			_, found, err = tx.Trade(id)
			return err
		})
		return found, err
	})
}

// malformedBookings can never be trades.
var malformedBookings = []string{
	`{}`, `no JSON`, `{"id":"trd-1"}`, `[]`, "",
	`{"id":"1","accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,"timestamp":"2026-03-02T15:00:00Z"}`,
	`{"id":"trd-7","accountId":1,"security":"A","side":"Buy","quantity":0,"price":1,"timestamp":"2026-03-02T15:00:00Z"}`,
	`{"id":"trd-7","accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,"timestamp":"today"}`,
	`{"id":"trd-7","tradeSeq":8,"accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,"timestamp":"2026-03-02T15:00:00Z"}`,
	`{"id":"trd-7","accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,"timestamp":"2026-03-02T15:00:00Z","x":1}`,
}

// TestBookingsByMessageAndByJournalAreOne brings trades on both paths, in any order and more than
// once, with a restart of the message broker in between. Each trade is booked once, and the row is
// the same.
func TestBookingsByMessageAndByJournalAreOne(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		const crossings = 30
		nats := brokertest.External(t)
		data, flags := t.TempDir(), append(databaseFlags(t, d), "nats.url", nats.URL())
		in := install(t, data, flags...)
		other := newOtherProgram(t, nats.URL())
		random := rand.New(rand.NewPCG(*daySeed, 4))
		byMessage := map[string]bool{}
		for k := range crossings {
			if k == crossings/2 {
				apptest.Until(t, "what was published is dealt with", func() (bool, any) {
					m := in.Beside.Load().projection.Metrics()
					return m.LegacyMalformed == uint64(k) &&
						m.LegacyBooked+m.LegacyDuplicates == uint64(2*k+len(byMessage)), m
				})
				nats.Stop()
				c := nextCrossing(in, k+1000)
				c.execute(t, in)
				in.awaitRow(c.trades[1].ID) // the journal needs no broker
				wantReady(t, in)
				nats.Restart()
			}
			c := nextCrossing(in, k)
			messageFirst := random.IntN(2) == 0
			if messageFirst {
				for i := range c.trades {
					byMessage[c.trades[i].ID] = true
					other.book(booking(&c.trades[i]))
					in.awaitRow(c.trades[i].ID)
				}
			}
			other.book(malformedBookings[k%len(malformedBookings)])
			c.execute(t, in)
			in.awaitRow(c.trades[1].ID)
			for i := range c.trades {
				other.book(booking(&c.trades[i]))
			}
		}
		booked := fmt.Sprintf(`svc_projection_trades_total{outcome="booked",path="legacy"} %d`,
			len(byMessage))
		malformed := fmt.Sprintf(`svc_projection_trades_total{outcome="malformed",path="legacy"} %d`,
			crossings)
		in.awaitMetrics(booked, malformed,
			fmt.Sprintf(`svc_projection_trades_total{outcome="duplicate",path="journal"} %d`,
				len(byMessage)))
		apptest.Until(t, "what came second is a duplicate", func() (bool, any) {
			n := in.Beside.Load().projection.Metrics().LegacyDuplicates
			return n >= 2*crossings, n // a message with a lost acknowledgement comes again
		})
		in.awaitMatched()
		wantBooked(t, in, byMessage)
		in.stop()

		// The position in the stream is durable, and malformed messages do not come again.
		in = install(t, data, flags...)
		c := nextCrossing(in, crossings)
		byMessage[c.trades[0].ID] = true
		other.book(booking(&c.trades[0]))
		in.awaitRow(c.trades[0].ID)
		in.awaitMetrics(`svc_projection_trades_total{outcome="booked",path="legacy"} 1`,
			`svc_projection_trades_total{outcome="malformed",path="legacy"} 0`)
		c.execute(t, in)
		in.awaitMatched()
		wantBooked(t, in, byMessage)
	})
}

// wantBooked compares the rows with the replay. A row that came by message does not have its order
// and its sequence.
func wantBooked(t *testing.T, in *installed, byMessage map[string]bool) {
	t.Helper()
	rows := in.rows()
	tr := replayJournal(t, in.Core)
	for i := range min(len(rows), len(tr.fills)) {
		if byMessage[rows[i].ID] {
			if rows[i].OrderID != "" || rows[i].Sequence != 0 {
				t.Errorf("a message without an order gave %+v", rows[i])
			}
			want := tr.row(&tr.fills[i])
			rows[i].OrderID, rows[i].Sequence = want.OrderID, want.Sequence
		}
		if rows[i].SettlementDate.String() != nextDay {
			t.Errorf("settlement date of %+v", rows[i])
		}
	}
	tr.checkRows(t, rows)
}
