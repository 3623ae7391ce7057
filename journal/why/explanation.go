package why

import (
	"encoding/json"
	"fmt"
	"strconv"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
	"posttrade/matcher/timetext"
)

// MaxCauses is the most commands of one kind that an explanation lists; the newest are listed, and
// a line before them has the count of all.
const MaxCauses = 20

// MaxAgainst bounds the listed fills of an order: the first ones are listed.
const MaxAgainst = 1000

// Side is one side of a check: a number with its unit, or a word with the unit "state". Units are
// those of matcher.Unit; money, prices and basis points are decimals, not millionths.
type Side struct {
	// Value is a JSON number, or a JSON string for the unit "state".
	Value json.RawMessage `json:"value"`
	Unit  string          `json:"unit"`
}

// Cause is a command that an explanation rests on.
type Cause struct {
	// What and Value are words for people.
	What  string `json:"what"`
	Value string `json:"value"`
	// InputSeq 0 is the genesis record; null is a line that only counts the ones behind it.
	InputSeq *uint64 `json:"inputSeq"`
	// Time is the command's event time, UTC in RFC 3339 with milliseconds; null for the genesis
	// record.
	Time *string `json:"time"`
}

// Queue is how much is before an order in the queue of its price: open orders, and their quantity.
type Queue struct {
	Orders   int   `json:"orders"`
	Quantity int64 `json:"quantity"`
}

// CounterFill is one fill of the order.
type CounterFill struct {
	// TradeID is that of the order's own side
	TradeID  string          `json:"tradeId"`
	OrderID  *string         `json:"orderId"` // of the other side; null for none, or when it is hidden
	Price    json.RawMessage `json:"price"`
	Quantity int32           `json:"quantity"`

	account uint32 // of the other side
}

// Explanation is the answer to "why", as JSON (docs/time.md, "Why", describes the members). Members
// that do not apply are null; because and against are empty lists then, executed and fills 0.
type Explanation struct {
	OrderID    *string `json:"orderId"`
	ContractID *string `json:"contractId,omitempty"`
	// InputSeq is that of the command that is explained: the one that made the order, for an order.
	InputSeq uint64 `json:"inputSeq"`
	// Decision is ACCEPTED, REJECTED or CANCELED; Reason is null where there is none, as when the
	// owner cancelled.
	Decision string  `json:"decision"`
	Reason   *string `json:"reason"`
	// DecidedBy is engine, or gate when the record carries the gate's refusal.
	DecidedBy string `json:"decidedBy"`
	// Rule, Observed and Limit are the check that decided; null where no check is on record.
	Rule     *string `json:"rule"`
	Observed *Side   `json:"observed"`
	Limit    *Side   `json:"limit"`
	Because  []Cause `json:"because"`
	// QueueAhead is the queue on arrival, QueueAheadNow at the head; nil when the order did not rest,
	// or does not rest there.
	QueueAhead    *Queue `json:"queueAhead"`
	QueueAheadNow *Queue `json:"queueAheadNow"`
	// Executed and Fills are the quantity and the number of all fills of an order. Against lists the
	// first MaxAgainst of them.
	Executed int64         `json:"executed"`
	Fills    int           `json:"fills"`
	Against  []CounterFill `json:"against"`
	// Text says all of it in one sentence.
	Text string `json:"text"`

	// Account is the one that the command acts for. ForAdmin: it acts for none, so only an
	// administrator may see it.
	Account  uint32 `json:"-"`
	ForAdmin bool   `json:"-"`
}

// Hide removes the orders of accounts that the caller may not see. It must be called before the
// explanation is shown to a client with limited entitlements.
func (x *Explanation) Hide(entitled func(account uint32) bool) {
	for i := range x.Against {
		if a := &x.Against[i]; a.OrderID != nil && !entitled(a.account) {
			a.OrderID = nil
		}
	}
}

// sideOf keeps the exact decimal of a measure: a float would round money.
func sideOf(m matcher.Measure) *Side {
	s := &Side{Unit: string(m.Unit)}
	if m.Value != nil {
		s.Value = json.RawMessage(m.Decimal())
	} else {
		s.Value = json.RawMessage(strconv.Quote(m.Word))
	}
	return s
}

// decimal is an amount in millionths.
func decimal(v int64) string { return string(strictjson.FormatDecimal(nil, v)) }

// timeOf is an event time in milliseconds as text; null for the genesis record.
func timeOf(inputSeq uint64, millis int64) *string {
	if inputSeq == 0 {
		return nil
	}
	text := timetext.Of(millis)
	return &text
}

// because adds a command behind those that are there. inputSeq 0 is the genesis record.
func (x *Explanation) because(what, value string, inputSeq uint64, millis int64) {
	x.Because = append(x.Because, Cause{what, value, &inputSeq, timeOf(inputSeq, millis)})
}

// becauseGenesis adds the genesis record: no command has set what is looked for.
func (x *Explanation) becauseGenesis(what string) {
	x.because(what, "as the journal was created", 0, 0)
}

// counted adds the line that counts the commands behind it.
func (x *Explanation) counted(what, format string, args ...any) {
	x.Because = append(x.Because, Cause{What: what, Value: fmt.Sprintf(format, args...)})
}
