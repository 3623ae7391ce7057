package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"posttrade/matcher"
	"posttrade/matcher/note"
	"posttrade/matcher/strictjson"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/store"
)

// The errors of the bodies of this file. Their texts contain nothing of the input.
var (
	errTradeID    = errors.New("not the id of a trade of the journal, trd-N")
	errRangeOrder = errors.New("below from")
	errRangeSize  = errors.New("more than " + strconv.Itoa(recon.MaxRepair) +
		" trades: repair a part at a time")
	errRangeHead = errors.New("above the last durable trade")
	errExternal  = errors.New("not the id of a booking from outside, ext- and 1 to 60 of A-Z a-z " +
		"0-9 . _ -")
	errUnrecorded = errors.New("the act could not be put on record")
	errExactTime  = errors.New("not an RFC 3339 time to the millisecond, of 1970-01-01 to 2149-06-06")
)

// repairedRange is what a repair is about, on record. The rows as they were are in the database,
// under the number of the repair.
type repairedRange struct {
	From     string `json:"from"`
	To       string `json:"to"`
	RepairID uint64 `json:"repairId"`
}

// differingRows are the rows of a range that differ from the journal, on record: how many, and the
// first of them.
type differingRows struct {
	Differing uint64   `json:"differing"`
	Trades    []string `json:"trades,omitempty"`
}

// maxDiffering is how many trades of a repair are named on record.
const maxDiffering = 10

func differing(found *recon.RepairResult) differingRows {
	d := differingRows{Differing: found.Repaired}
	for i := range min(len(found.Items), maxDiffering) {
		d.Trades = append(d.Trades, found.Items[i].TradeID)
	}
	return d
}

// stated is a statement on record: how many lines, and the body's hash.
//
// The lines themselves are in the database; the hash says which body it was.
type stated struct {
	Lines  int    `json:"lines"`
	SHA256 string `json:"sha256"`
}

// repairTrades is POST /recon/repair.
//
// A dry run changes nothing and is no act. Otherwise the act is on record before the first row
// changes, with the reason that NeedReason asks for. The range and the turn are checked first: a
// refusal leaves no record.
func (q *inquiry) repairTrades() problem {
	if p := q.admin(); p.status != 0 {
		return p
	}
	by, unrecorded := q.byHand(false)
	if unrecorded.status != 0 {
		return unrecorded
	}
	if p := q.readBody(); p.status != 0 {
		return p
	}
	ask := q.body.repair()
	if p := q.bodyRead(); p.status != 0 {
		return p
	}
	ask.Subject, ask.Address, ask.Reason = by.Subject, by.Address, by.Reason
	ctx, cancel := q.p.long()
	defer cancel()
	recorded := false
	if !ask.DryRun {
		// Not before the range and the turn are right: a refusal is no act.
		ask.Record = func(repair uint64, found *recon.RepairResult) error {
			_, unrecorded = q.record(ctx, &act{kind: note.Repair,
				object: repairedRange{matcher.TradeID(ask.From), matcher.TradeID(ask.To), repair},
				old:    differing(found), new: differingRows{}})
			if unrecorded.status != 0 {
				return errUnrecorded
			}
			recorded = true
			return nil
		}
	}
	done, err := q.p.Recon.Repair(ctx, ask)
	switch {
	case errors.Is(err, errUnrecorded):
		return unrecorded
	case errors.Is(err, recon.ErrRange):
		q.body.field = "to"
		return q.body.bodyProblem(errRangeHead, -1)
	case err != nil && recorded:
		return q.p.changed(err)
	case err != nil:
		return q.p.failed(err)
	}
	return q.send(200, appendRepair(q.begin(), &ask, &done))
}

// repair reads a {from, to, dryRun} object.
//
// from and to are inclusive; the range has recon.MaxRepair trades at most. Whether to is durable is
// Repair's to say.
func (d *decoder) repair() (q recon.RepairQuery) {
	var from, to bool
	for key := range d.members {
		switch string(key) {
		case "from":
			q.From, from = d.tradeID("from"), true
		case "to":
			q.To, to = d.tradeID("to"), true
		case "dryRun":
			q.DryRun = d.flag("dryRun")
		default:
			d.unknown(key)
		}
	}
	d.require("from", from)
	d.require("to", to)
	if d.json.Err() != nil {
		return q
	}
	d.field = "to"
	switch {
	case q.To < q.From:
		d.fail(errRangeOrder)
	case q.To-q.From >= recon.MaxRepair:
		d.fail(errRangeSize)
	}
	return q
}

// tradeID reads the id of a trade, as trd-N or as the number alone.
func (d *decoder) tradeID(field string) uint64 {
	d.field = field
	if d.json.Peek() == strictjson.KindNumber {
		n := d.json.Int()
		if d.json.Err() == nil && n < 1 {
			d.fail(strictjson.ErrRange)
		}
		return uint64(n)
	}
	n, ok := matcher.ParseTradeID(string(d.json.String()))
	if d.json.Err() == nil && !ok {
		d.fail(errTradeID)
	}
	return n
}

// appendRepair appends what a repair did.
//
// repairId is null for a dry run. items has the first trades that were made again; truncated says
// that there are more.
func appendRepair(b []byte, ask *recon.RepairQuery, r *recon.RepairResult) []byte {
	b = append(b, `{"repairId":`...)
	b = appendPresent(b, r.Repair)
	b = append(b, `,"from":"`...)
	b = append(append(b, matcher.TradeID(ask.From)...), `","to":"`...)
	b = append(append(b, matcher.TradeID(ask.To)...), `","dryRun":`...)
	b = strconv.AppendBool(b, ask.DryRun)
	b = append(b, `,"checked":`...)
	b = appendUint(b, r.Checked)
	b = append(b, `,"matched":`...)
	b = appendUint(b, r.Matched)
	b = append(b, `,"repaired":`...)
	b = appendUint(b, r.Repaired)
	b = append(b, `,"pending":`...)
	b = appendUint(b, r.Pending)
	b = append(b, `,"items":[`...)
	for i := range r.Items {
		item := &r.Items[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"tradeId":`...)
		b = appendString(b, item.TradeID)
		b = append(b, `,"fields":`...)
		b = appendStrings(b, item.Fields)
		b = append(b, `,"was":`...)
		if item.Was == nil {
			b = append(b, "null"...)
		} else {
			b = appendWholeRow(b, &item.Was.Trade, item.Was.Date)
		}
		b = append(b, `,"now":`...)
		b = append(appendWholeRow(b, &item.Now, item.Now.SettlementDate.String()), '}')
	}
	b = append(b, `],"truncated":`...)
	return append(strconv.AppendBool(b, r.Truncated), '}')
}

// appendWholeRow appends every column of a row. date is the text of its settlement date.
//
// date is passed beside the row because an edited row may hold a text that is no date.
func appendWholeRow(b []byte, t *store.Trade, date string) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, t.ID)
	b = append(b, `,"tradeSeq":`...)
	b = appendUint(b, t.Seq)
	b = appendTerms(append(b, ','), t.AccountID, t.Security, t.Side, t.Quantity, t.Price)
	b = append(b, `,"timestamp":`...)
	b = append(appendTime(b, t.ExecutedAt), `,"status":`...)
	b = appendString(b, t.Status.String())
	b = append(b, `,"settlementDate":`...)
	b = appendString(b, date)
	b = append(b, `,"orderId":`...)
	b = appendOptional(b, []byte(t.OrderID))
	b = append(b, `,"sequence":`...)
	b = appendPresent(b, t.Sequence)
	b = append(b, `,"bookedAt":`...)
	b = appendTime(b, t.BookedAt)
	b = append(b, `,"updatedAt":`...)
	return append(appendTime(b, t.UpdatedAt), '}')
}

// appendDetails appends the members of a side of a break behind those of its trade, and ends it.
func appendDetails(b []byte, r *recon.Details) []byte {
	if r == nil {
		return append(b, '}')
	}
	b = append(b, `,"status":`...)
	b = appendOptional(b, []byte(r.Status))
	b = append(b, `,"settlementDate":`...)
	b = appendDate(b, r.SettlementDate)
	b = append(b, `,"orderId":`...)
	b = appendOptional(b, []byte(r.OrderID))
	b = append(b, `,"sequence":`...)
	b = appendPresent(b, r.Sequence)
	b = append(b, `,"bookedAt":`...)
	b = appendMoment(b, r.BookedMillis)
	b = append(b, `,"updatedAt":`...)
	return append(appendMoment(b, r.UpdatedMillis), '}')
}

// takeStatement is POST /recon/statement: what the party of the bookings from outside states of
// them.
//
// The whole body is read before anything is kept: a line with an error refuses all of them, by its
// index. All lines are kept, or none. It is on record with the hash of the body before it is taken.
func (q *inquiry) takeStatement() problem {
	if p := q.admin(); p.status != 0 {
		return p
	}
	if p := q.readBody(); p.status != 0 {
		return p
	}
	var lines []recon.StatementLine
	for q.body.json.BeginArray(); q.body.json.NextItem(); {
		lines = append(lines, q.body.statementLine())
	}
	if err := q.body.end(); err != nil {
		return q.body.bodyProblem(err, len(lines)-1)
	}
	if len(lines) == 0 {
		q.body.field = ""
		return q.body.bodyProblem(errNoItems, -1)
	}
	ctx, cancel := q.p.long()
	defer cancel()
	sum := sha256.Sum256(q.ctx.Request.Body())
	if _, p := q.record(ctx, &act{kind: note.Statement,
		object: stated{len(lines), hex.EncodeToString(sum[:])}}); p.status != 0 {
		return p
	}
	s, err := q.p.Recon.TakeStatement(ctx, lines)
	if err != nil {
		return q.p.changed(err)
	}
	b := append(q.begin(), `{"accepted":`...)
	b = appendUint(b, s.Accepted)
	b = append(b, `,"matched":`...)
	b = appendUint(b, s.Matched)
	b = append(b, `,"differing":`...)
	b = appendUint(b, s.Differing)
	b = append(b, `,"missing":`...)
	return q.send(200, append(appendUint(b, s.Missing), '}'))
}

// statementLine reads one booking of a statement.
//
// All seven members are required. A value that no booking can have is refused: the line could never
// match.
func (d *decoder) statementLine() (line recon.StatementLine) {
	var id, account, security, side, quantity, price, at bool
	d.field = ""
	for key := range d.members {
		switch string(key) {
		case "id":
			d.field = "id"
			line.ID, id = string(d.json.String()), true
			if d.json.Err() == nil && !store.ExternalID(line.ID) {
				d.fail(errExternal)
			}
		case "accountId":
			if line.AccountID, account = d.accountID(), true; d.json.Err() == nil && line.AccountID == 0 {
				d.fail(strictjson.ErrRange)
			}
		case "security":
			line.Security, security = string(d.security()), true
			if d.json.Err() == nil && !matcher.ValidTicker(line.Security) {
				d.fail(errTicker)
			}
		case "side":
			line.Side, side = d.side(), true
		case "quantity":
			line.Quantity, quantity = int64(d.quantity()), true
		case "price":
			line.Price, price = d.price("price"), true
		case "timestamp":
			line.TimeMillis, at = d.exactTime("timestamp"), true
		default:
			d.unknown(key)
		}
	}
	for _, member := range [...]struct {
		name string
		seen bool
	}{{"id", id}, {"accountId", account}, {"security", security}, {"side", side},
		{"quantity", quantity}, {"price", price}, {"timestamp", at}} {
		d.require(member.name, member.seen)
	}
	return line
}

// exactTime reads a time as a booking has it. A row's time is whole in milliseconds, so another
// time could never match.
func (d *decoder) exactTime(field string) int64 {
	d.field = field
	millis, ok := store.ParseExactTime(d.json.String())
	if d.json.Err() == nil && !ok {
		d.fail(errExactTime)
	}
	return millis
}
