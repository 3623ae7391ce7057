package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"
)

// Measure is one side of a rule that decided.
//
// Unit says what the number counts, such as price, currency or bps. Compare Value as text or as a
// decimal: a float would round money.
type Measure struct {
	Value json.RawMessage `json:"value"` // an exact number, or a word in quotes of the unit state
	Unit  string          `json:"unit"`
}

// QueueAhead is what rests before an order at its price.
type QueueAhead struct {
	Orders int `json:"orders"`
	// Quantity is the sum of their open quantities.
	Quantity int64 `json:"quantity"`
}

// Cause is a command that brought one side of a rule to its value. InputSeq is nil in a line that
// counts several.
type Cause struct {
	What     string  `json:"what"`
	Value    string  `json:"value"`
	InputSeq *uint64 `json:"inputSeq"`
	Time     string  `json:"time"`
}

// Match is a trade of the command. OrderID is "" for an account that the caller may not see.
type Match struct {
	// TradeID is that of the order's own side, and OrderID names the other side's order.
	TradeID  string `json:"tradeId"`
	OrderID  string `json:"orderId"`
	Price    Price  `json:"price"`
	Quantity int64  `json:"quantity"`
}

// Explanation is why the engine decided as it did.
//
// Both sides of the rule that decided come from the engine's own checks, in the state before the
// command. Members that do not apply are zero or nil.
type Explanation struct {
	OrderID    string `json:"orderId"`
	ContractID string `json:"contractId,omitempty"`
	InputSeq   uint64 `json:"inputSeq"`
	Decision   string `json:"decision"` // ACCEPTED, REJECTED or CANCELED
	Reason     string `json:"reason"`   // a risk reason
	// DecidedBy is engine or gate. Rule is the name of the check.
	DecidedBy string   `json:"decidedBy"`
	Rule      string   `json:"rule"`
	Observed  *Measure `json:"observed"`
	Limit     *Measure `json:"limit"`
	// Because has the commands that put the two sides there: of a kind the newest 20, behind a line
	// with the count of all.
	Because       []Cause     `json:"because"`
	QueueAhead    *QueueAhead `json:"queueAhead"`    // on arrival; nil: it did not rest
	QueueAheadNow *QueueAhead `json:"queueAheadNow"` // nil: it does not rest
	// Executed and Fills are the quantity and the number of all fills of the order; Against lists the
	// first 1000 of them.
	Executed int64   `json:"executed"`
	Fills    int     `json:"fills"`
	Against  []Match `json:"against"`
	Text     string  `json:"text"` // the same in a sentence
}

// WhyOrder explains the decision on an order.
//
// Where entitlements are enforced the caller needs a token for the order's account. The server
// replays history for it, two explanations at a time: a 503 says to ask again.
func (c *Client) WhyOrder(ctx context.Context, orderID string) (why Explanation, err error) {
	err = c.get(ctx, "/orders/"+url.PathEscape(orderID)+"/why", nil, &why)
	return why, err
}

// WhyContract explains the decision on an OTC contract.
func (c *Client) WhyContract(ctx context.Context, contractID string) (why Explanation, err error) {
	err = c.get(ctx, "/contracts/"+url.PathEscape(contractID)+"/why", nil, &why)
	return why, err
}

// Why explains the decision on the command of an input sequence.
//
// An admin token is needed for a command that acts for no account, such as a control.
func (c *Client) Why(ctx context.Context, inputSeq uint64) (why Explanation, err error) {
	v := url.Values{"inputSeq": {strconv.FormatUint(inputSeq, 10)}}
	err = c.get(ctx, "/why", v, &why)
	return why, err
}

// AuditQuery selects acts of operators. Zero members do not select.
type AuditQuery struct {
	FromSeq   uint64 // the next page begins at the last act's Sequence plus 1
	Limit     int    // 0: the server's default
	Subject   string
	Kind      string // such as kill-switch or limits
	AccountID *uint32
	OrderID   string
}

// OperatorAct is one act of an operator. What is not known is empty, or null in Object, Old and
// New.
//
// Sequence is that of the act's command; of an act that is none, that of its note. Acts of a build
// before notes have no Subject, Address, Reason and Old.
type OperatorAct struct {
	Kind     string          `json:"kind"`
	Sequence uint64          `json:"sequence"`
	Time     time.Time       `json:"time"`
	Subject  string          `json:"subject"`
	Address  string          `json:"address"`
	Reason   string          `json:"reason"`
	Object   json.RawMessage `json:"object"`
	Old      json.RawMessage `json:"old"`
	New      json.RawMessage `json:"new"`
}

// Audit lists acts of operators, ascending by sequence; it needs an admin token.
//
// The whole page is held in memory: it has at most 1000 acts.
func (c *Client) Audit(ctx context.Context, q AuditQuery) (acts []OperatorAct, err error) {
	v := list(q.AccountID, q.Limit, "")
	setCount(v, "fromSeq", q.FromSeq)
	set(v, "subject", q.Subject)
	set(v, "kind", q.Kind)
	set(v, "orderId", q.OrderID)
	var lines []byte
	if err = c.get(ctx, "/audit", v, &lines); err != nil {
		return nil, err
	}
	for all := json.NewDecoder(bytes.NewReader(lines)); ; {
		var act OperatorAct
		switch err := all.Decode(&act); err {
		case nil:
			acts = append(acts, act)
		case io.EOF:
			return acts, nil
		default:
			return nil, fmt.Errorf("%w: GET /audit: %w", ErrAnswer, err)
		}
	}
}

// Checkpoint returns the newest signed head of the evidence log, a C2SP signed note.
//
// It needs no token. Before the first head is published the error is a 503 NOT_YET. Check the
// signature with package journal/evidence/verify before you trust it.
func (c *Client) Checkpoint(ctx context.Context) (note []byte, err error) {
	err = c.get(ctx, "/log/checkpoint", nil, &note)
	return note, err
}

// Tile returns a tile of the evidence log: <level>/<index> or entries/<index>, the index as
// x001/234, a partial one with .p/<width>.
//
// A tile never changes, so the caller may keep it. Its layout is that of C2SP tlog-tiles; it needs
// no token.
func (c *Client) Tile(ctx context.Context, tile string) (bytes []byte, err error) {
	err = c.get(ctx, "/log/tile/"+tile, nil, &bytes)
	return bytes, err
}

// LogMember is a member's own view of the evidence log.
//
// Size is in leaves of 256 commands, and Root the hash over that many. Snapshots are hashes of this
// member's engine state: a difference between two members is a fault of disk, memory or program.
type LogMember struct {
	Size      uint64 `json:"size"`
	Root      []byte `json:"root"`
	Snapshots []struct {
		Sequence uint64 `json:"sequence"`
		SHA256   string `json:"sha256"`
	} `json:"snapshots"`
}

// LogMember shows the tree of the member that answers, of size leaves at most; 0: all.
func (c *Client) LogMember(ctx context.Context, size uint64) (member LogMember, err error) {
	v := url.Values{}
	setCount(v, "size", size)
	err = c.get(ctx, "/log/member", v, &member)
	return member, err
}

// ProofQuery names a record of the journal by one of its members.
//
// Exactly one of them is set; otherwise the server answers 400.
type ProofQuery struct {
	InputSeq   uint64
	TradeID    string
	OrderID    string
	ContractID string
}

// Proof returns a proof that a record is in the evidence log, as journal/evidence's verifier takes
// it.
//
// The server waits some seconds for a signed head that covers the record; then the error is a 503
// NOT_YET. Where entitlements are enforced the caller needs a token for the record's account, and
// an admin token for a record of no account.
func (c *Client) Proof(ctx context.Context, q ProofQuery) (proof []byte, err error) {
	v := url.Values{}
	setCount(v, "inputSeq", q.InputSeq)
	set(v, "tradeId", q.TradeID)
	set(v, "orderId", q.OrderID)
	set(v, "contractId", q.ContractID)
	err = c.get(ctx, "/evidence/proof", v, &proof)
	return proof, err
}
