package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Direction says what the account does with the fixed rate.
type Direction string

// The directions.
const (
	Pay     Direction = "Pay"
	Receive Direction = "Receive"
)

// SwapRequest asks for an interest-rate swap. Dates are yyyy-MM-dd.
type SwapRequest struct {
	// ClientOrderID is as that of an OrderRequest: with it the booking is safe to repeat.
	ClientOrderID string    `json:"clientOrderId,omitempty"`
	AccountID     uint32    `json:"accountId"`
	PayReceive    Direction `json:"payReceive"`
	// Notional is 1 or more, in whole currency units.
	Notional int32 `json:"notional"`
	// FixedRate may be negative, but not 0.
	FixedRate Price `json:"fixedRate"`
	// The dates are of 1970-01-01 to 2149-06-06, and MaturityDate is after EffectiveDate.
	EffectiveDate string `json:"effectiveDate"`
	MaturityDate  string `json:"maturityDate"`
	// Conventions is the name of a set: float index, payment frequency, day count and currency. The
	// case counts.
	Conventions string `json:"conventions"`
}

// SwaptionRequest asks for an option on a swap.
//
// The exercise style is a term and nothing more: the engine never exercises an option.
type SwaptionRequest struct {
	SwapRequest
	// ExpiryDate is not after EffectiveDate.
	ExpiryDate    string `json:"expiryDate"`
	ExerciseStyle string `json:"exerciseStyle"` // European, Bermudan or American
}

// Booked is the answer to a booking. Sequence is the number in ContractID.
//
// Booked is true in every success; a refusal is a *Problem and has no such answer.
type Booked struct {
	ContractID string `json:"contractId"`
	Sequence   uint64 `json:"sequence"`
	Booked     bool   `json:"booked"`
}

// Contract is an OTC contract. The members of the option are "" for a swap.
//
// Its terms never change, and a contract is never removed. The names are those of SwapRequest and
// SwaptionRequest.
type Contract struct {
	// ContractID is SW-<Sequence> for a swap and SWPT-<Sequence> for a swaption.
	ContractID    string    `json:"contractId"`
	ProductType   string    `json:"productType"` // SWAP or SWAPTION
	ClientOrderID string    `json:"clientOrderId"`
	AccountID     uint32    `json:"accountId"`
	PayReceive    Direction `json:"payReceive"`
	Notional      int32     `json:"notional"`
	FixedRate     Price     `json:"fixedRate"`
	EffectiveDate string    `json:"effectiveDate"`
	MaturityDate  string    `json:"maturityDate"`
	Conventions   string    `json:"conventions"`
	ExpiryDate    string    `json:"expiryDate"`
	ExerciseStyle string    `json:"exerciseStyle"`
	Sequence      uint64    `json:"sequence"`
}

// ContractsQuery selects contracts. Zero members do not select.
type ContractsQuery struct {
	// AccountID nil is every account that the token may see.
	AccountID *uint32
	// Limit is at most 1000; 0 is the server's default, 100. Cursor is the NextCursor of the page
	// before, as it came.
	Limit  int
	Cursor string
}

// ContractPage is a page of contracts; NextCursor "" is the last one.
type ContractPage struct {
	Items      []Contract `json:"items"`
	NextCursor string     `json:"nextCursor"`
}

// Mark is the closing price of one security. An empty Quality is not sent.
//
// Price is above 0. Quality is the publisher's word for the mark, at most 32 of A-Z a-z 0-9 . _ -.
type Mark struct {
	Security string `json:"security"`
	Price    Price  `json:"price"`
	Quality  string `json:"quality,omitempty"`
}

// MarksPublished is the answer to PutMarks.
type MarksPublished struct {
	SessionDate  string `json:"sessionDate"`
	PriceVersion uint32 `json:"priceVersion"`
	// Marks is the number of marks in the set.
	Marks int `json:"marks"`
}

// Swap books an interest-rate swap. A refusal is a *Problem with status 422.
//
// A 422 without a Sequence was not sequenced; one with a Sequence stands, and the same
// ClientOrderID gives it again.
func (c *Client) Swap(ctx context.Context, q *SwapRequest) (booked Booked, err error) {
	err = c.send(ctx, &call{path: "/swaps", repeat: q.ClientOrderID != ""}, q, &booked)
	return booked, err
}

// Swaption books an option on a swap. See Swap for refusals and repetition.
func (c *Client) Swaption(ctx context.Context, q *SwaptionRequest) (booked Booked, err error) {
	err = c.send(ctx, &call{path: "/swaptions", repeat: q.ClientOrderID != ""}, q, &booked)
	return booked, err
}

// Contracts lists OTC contracts, ascending by sequence.
//
// Errors: a 403 *Problem for an account that the token does not cover.
func (c *Client) Contracts(ctx context.Context, q ContractsQuery) (page ContractPage, err error) {
	err = c.get(ctx, "/contracts", list(q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

// Contract shows one OTC contract. The prefix belongs to the id: SW- with the number of a swaption
// is a 404.
func (c *Client) Contract(ctx context.Context, contractID string) (contract Contract, err error) {
	err = c.get(ctx, "/contracts/"+url.PathEscape(contractID), nil, &contract)
	return contract, err
}

// RiskExtract sequences the marker of a session's risk extract and returns its sequence; it needs
// an admin token. priceVersion 0 is the server's default, 1. A second request makes a second
// marker. So the client does not repeat a request whose outcome is unknown.
func (c *Client) RiskExtract(ctx context.Context, sessionDate string,
	priceVersion uint32) (sequence uint64, err error) {
	body := struct {
		SessionDate  string `json:"sessionDate"`
		PriceVersion uint32 `json:"priceVersion,omitempty"`
	}{sessionDate, priceVersion}
	var answer struct {
		Sequence uint64 `json:"sequence"`
	}
	err = c.send(ctx, &call{path: "/risk/extract", want: http.StatusAccepted}, body, &answer)
	return answer.Sequence, err
}

// PutMarks publishes the closing marks of a session under a version, at the trade-processor; it
// needs an admin token. The same marks again change nothing; different marks are a 409.
//
// sessionDate is yyyy-MM-dd, version 1 or more. The request is safe to repeat: it is repeated like
// a read.
func (c *Client) PutMarks(ctx context.Context, sessionDate string, version uint32,
	marks []Mark) (published MarksPublished, err error) {
	path := "/eod/prices/" + url.PathEscape(sessionDate) + "/v" +
		strconv.FormatUint(uint64(version), 10)
	err = c.send(ctx, &call{method: http.MethodPut, path: path, repeat: true}, marks, &published)
	return published, err
}
