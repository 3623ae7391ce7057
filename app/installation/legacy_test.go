package installation

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/projection"
	"posttrade/sidecars/store"
)

// otherProgram is a program that uses the installation's message broker.
type otherProgram struct {
	t      *testing.T
	broker *broker.Broker
}

func newOtherProgram(t *testing.T, url string) *otherProgram {
	t.Helper()
	b := must.Get(broker.Open(broker.Options{URL: url, Name: "other"}))(t)
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
	ticket := must.Get(in.Core.Desk.Acquire(len(c.commands)))(t)
	defer ticket.Release()
	for i := range c.commands {
		*ticket.Command(i) = c.commands[i]
	}
	must.OK(t, ticket.Submit())
	must.OK(t, ticket.Wait(0))
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
	`{"id":"1","accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,` +
		`"timestamp":"2026-03-02T15:00:00Z"}`,
	`{"id":"trd-7","accountId":1,"security":"A","side":"Buy","quantity":0,"price":1,` +
		`"timestamp":"2026-03-02T15:00:00Z"}`,
	`{"id":"trd-7","accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,` +
		`"timestamp":"today"}`,
	`{"id":"trd-7","tradeSeq":8,"accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,` +
		`"timestamp":"2026-03-02T15:00:00Z"}`,
	`{"id":"trd-7","accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,` +
		`"timestamp":"2026-03-02T15:00:00Z","x":1}`,
}

// TestBookingsByMessageTakeNoIDOfTheEngine brings the id of a trade before and after the engine has
// made it, bookings from outside, and messages that are none, with a restart of the message broker
// in between. The engine's trades have the engine's rows; each booking from outside is booked once
// and is no orphan, nor does it hinder anything else.
func TestBookingsByMessageTakeNoIDOfTheEngine(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		const crossings = 30
		nats := brokertest.External(t)
		data, flags := t.TempDir(), append(databaseFlags(t, d), "nats.url", nats.URL())
		in := install(t, data, flags...)
		other := newOtherProgram(t, nats.URL())
		random := rand.New(rand.NewPCG(*daySeed, 4))
		sent := struct{ foreign, outside, known, malformed uint64 }{}
		want := map[string]store.Trade{}
		settled := func() (bool, any) {
			m := in.Beside.Load().projection.Metrics()
			return m.LegacyMalformed == sent.malformed && m.LegacyForeign == sent.foreign &&
				m.LegacyBooked == sent.outside && m.LegacyDuplicates >= sent.known, m
		}
		for k := range crossings {
			if k == crossings/2 {
				apptest.Until(t, "what was published is dealt with", settled)
				nats.Stop()
				c := nextCrossing(in, k+1000)
				c.execute(t, in)
				in.awaitRow(c.trades[1].ID) // the journal needs no broker
				wantReady(t, in)
				nats.Restart()
			}
			c := nextCrossing(in, k)
			if random.IntN(2) == 0 { // before the engine has made them
				for i := range c.trades {
					sent.foreign++
					other.book(booking(&c.trades[i]))
				}
				apptest.Until(t, "what was published is dealt with", settled)
			}
			sent.malformed++
			other.book(malformedBookings[k%len(malformedBookings)])
			c.execute(t, in)
			in.awaitRow(c.trades[1].ID)
			for i := range c.trades {
				sent.known++
				other.book(booking(&c.trades[i]))
				outside := c.trades[i]
				outside.ID, outside.Seq = fmt.Sprintf("ext-%d.%d", k, i), 0
				want[outside.ID] = outside
				body := strings.Replace(booking(&outside), `"tradeSeq":0,`, "", 1)
				sent.outside++
				other.book(body)
				if random.IntN(3) == 0 {
					sent.known++
					other.book(body)
				}
			}
		}
		apptest.Until(t, "everything is dealt with", settled)
		in.awaitMatched()
		in.awaitMetrics(
			fmt.Sprintf(`svc_projection_trades_total{outcome="booked",path="legacy"} %d`, sent.outside),
			fmt.Sprintf(`svc_projection_trades_total{outcome="malformed",path="legacy"} %d`,
				sent.malformed),
			fmt.Sprintf(`svc_projection_trades_total{outcome="FOREIGN_ID",path="legacy"} %d`,
				sent.foreign),
			`svc_projection_trades_total{outcome="duplicate",path="journal"} 0`)
		wantBooked(t, in, want)
		wantOutside(t, in, want)
		in.stop()

		// The position in the stream is durable, and refused messages do not come again.
		in = install(t, data, flags...)
		again := want["ext-0.0"]
		again.ID = "ext-again"
		want[again.ID] = again
		other.book(strings.Replace(booking(&again), `"tradeSeq":0,`, "", 1))
		in.awaitRow(again.ID)
		in.awaitMetrics(`svc_projection_trades_total{outcome="booked",path="legacy"} 1`,
			`svc_projection_trades_total{outcome="malformed",path="legacy"} 0`,
			`svc_projection_trades_total{outcome="FOREIGN_ID",path="legacy"} 0`)
		c := nextCrossing(in, crossings)
		c.execute(t, in)
		in.awaitMatched()
		wantBooked(t, in, want)
	})
}

// TestRefusedBookingsAreLoggedOncePerReason: a sender of many does not fill the log.
func TestRefusedBookingsAreLoggedOncePerReason(t *testing.T) {
	nats := brokertest.External(t)
	var log waittest.Log
	c := apptest.Settled(t, append(append(anyPorts(t.TempDir()), quick...),
		"nats.url", nats.URL())...)
	in := must.Get(Open(t.Context(), c, EngineOptions(c),
		slog.New(slog.NewTextHandler(&log, nil))))(t)
	defer func() { must.OK(t, in.Stop()) }()
	other := newOtherProgram(t, nats.URL())
	for range 3 {
		other.book(`{"hidden":1}`)
		other.book(`{"id":"trd-9","accountId":1,"security":"A","side":"Buy","quantity":1,"price":1,` +
			`"timestamp":"2026-03-02T15:00:00Z"}`)
	}
	apptest.Until(t, "what was published is dealt with", func() (bool, any) {
		m := in.Beside.Load().projection.Metrics()
		return m.LegacyMalformed == 3 && m.LegacyForeign == 3, m
	})
	for text, want := range map[string]int{"malformed trade message": 1, "FOREIGN_ID": 1,
		"refused": 2, "hidden": 0} {
		if n := log.Count(text); n != want {
			t.Errorf("%q is there %d times, want %d:\n%s", text, n, want, log.String())
		}
	}
}

// wantBooked compares the rows with the replay, and those above it with the bookings from outside.
func wantBooked(t *testing.T, in *installed, outside map[string]store.Trade) {
	t.Helper()
	rows := in.rows()
	tr := replayJournal(t, in.Core)
	n := 0
	for n < len(rows) && rows[n].Seq < store.FirstExternal {
		if rows[n].SettlementDate.String() != nextDay {
			t.Errorf("settlement date of %+v", rows[n])
		}
		n++
	}
	tr.checkRows(t, rows[:n])
	for _, row := range rows[n:] {
		want := outside[row.ID]
		want.Seq, want.BookedAt, want.UpdatedAt, want.SettlementDate = row.Seq, row.BookedAt,
			row.UpdatedAt, row.SettlementDate
		want.Status = row.Status
		if row != want || row.SettlementDate.String() != nextDay {
			t.Errorf("from outside:\n got %+v\nwant %+v", row, want)
		}
	}
	if len(rows)-n != len(outside) {
		t.Errorf("%d bookings from outside, want %d", len(rows)-n, len(outside))
	}
}

// wantOutside reads the bookings from outside as the reconciliation shows them, and confirms them
// by a statement.
func wantOutside(t *testing.T, in *installed, want map[string]store.Trade) {
	t.Helper()
	sweep, err := in.processor.OrphanSweep(t.Context())
	if err != nil || sweep.OrphanCount != 0 || sweep.LocalTradeCount != in.tradeSeq() {
		t.Errorf("orphan sweep %+v, %v", sweep, err)
	}
	breaks := func() map[string]client.Break {
		found := map[string]client.Break{}
		for cursor := ""; ; {
			page := must.Get(in.processor.ReconBreaks(t.Context(), "EXTERNAL", 7, cursor))(t)
			for _, b := range page.Items {
				found[b.TradeID] = b
			}
			if cursor = page.NextCursor; cursor == "" {
				return found
			}
		}
	}
	var lines []client.StatementLine
	unknown := breaks()
	for id, row := range want {
		b := unknown[id]
		if b.Class != "EXTERNAL" || b.Journal != nil || b.Statement != nil || b.Projection == nil ||
			b.Projection.Price != client.Price(row.Price) {
			t.Errorf("%s: %+v", id, b)
		}
		lines = append(lines, client.StatementLine{ID: id, AccountID: row.AccountID,
			Security: row.Security, Side: client.Side(columnOf(&row, "side").(string)),
			Quantity: row.Quantity, Price: client.Price(row.Price),
			Timestamp: time.UnixMilli(row.ExecutedAt)})
	}
	if len(unknown) != len(want) {
		t.Errorf("%d of %d are EXTERNAL", len(unknown), len(want))
	}
	lines[0].Quantity++
	differs := lines[0].ID
	lines = append(lines, client.StatementLine{ID: "ext-absent", AccountID: 1, Security: "AAPL",
		Side: "Buy", Quantity: 1, Price: client.Units(1), Timestamp: time.UnixMilli(dayBegins)})
	s, err := in.processor.TakeStatement(t.Context(), lines)
	if err != nil || s.Accepted != uint64(len(lines)) || s.Matched != uint64(len(lines)-2) ||
		s.Differing != 1 || s.Missing != 1 {
		t.Errorf("statement %+v, %v", s, err)
	}
	left := breaks()
	if b := left[differs]; len(left) != 2 || !slices.Equal(b.Fields, []string{"quantity"}) ||
		b.Statement == nil || b.Statement.Quantity != b.Projection.Quantity+1 ||
		left["ext-absent"].Projection != nil || left["ext-absent"].Statement == nil {
		t.Errorf("left %+v", left)
	}
	status, err := in.processor.ReconStatus(t.Context())
	if err != nil || status.External != uint64(len(want)) || status.ExternalUnmatched != 2 ||
		status.Orphans != 0 {
		t.Errorf("status %+v, %v", status, err)
	}
	row, err := in.processor.TradeRow(t.Context(), differs)
	if err != nil || row.ID != differs || row.TradeSeq != 0 {
		t.Errorf("row %+v, %v", row, err)
	}
}

// TestATradeThatWasAnsweredIsKnown: a back office may send the booking of a trade before that trade
// is on stable storage, which mode os does not wait for. It changes nothing, and is no foreign id.
func TestATradeThatWasAnsweredIsKnown(t *testing.T) {
	in := install(t, t.TempDir(), "journal.durability", "os", "journal.flush-interval", "10s")
	in.trade(1)
	const rest = `,"accountId":1,"security":"AAPL","side":"Sell","quantity":5,"price":10,` +
		`"timestamp":"2026-11-20T10:00:00Z"}`
	for id, want := range map[string]error{"trd-2": nil, "trd-3": projection.ErrForeignID} {
		booked, err := in.Beside.Load().projection.BookLegacy(t.Context(), []byte(`{"id":"`+id+`"`+rest))
		if booked || !errors.Is(err, want) {
			t.Errorf("%s: booked %v, %v, want %v", id, booked, err, want)
		}
	}
}
