package client

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Problem is an answer that is not a success (RFC 9457).
//
// It is the error of every method for an answer with another status than success; find it with
// errors.As. Texts may change between builds: a program decides by Status, Code and Reason.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	// Code is a stable name, such as TERMS_DIFFER; docs/http.md says what to do with each. UNREADABLE
	// is the client's own: the body was no problem document.
	Code   string `json:"code"`
	Reason string `json:"reason"` // the RiskReason of a refusal
	Detail string `json:"detail"`
	Field  string `json:"field"` // the member, parameter or header that is wrong, where one is

	OrderID string `json:"orderId"` // only in a refused admission
	// Sequence is where the request was sequenced; 0: nothing was, or the answer does not say.
	Sequence uint64 `json:"sequence"`

	// Sequenced is nil when the answer does not say. False: the request may be sent again.
	Sequenced *bool `json:"sequenced"`

	Leader string `json:"leader"` // in a cluster: the leader, where the answer names it
}

// Error names status, code, reason and detail.
func (p *Problem) Error() string {
	if p.Reason != "" {
		return fmt.Sprintf("client: %d %s reason=%s: %s", p.Status, p.Code, p.Reason, p.Detail)
	}
	return fmt.Sprintf("client: %d %s: %s", p.Status, p.Code, p.Detail)
}

// NotSequenced reports that the server says nothing was sequenced.
//
// Then the same request may be sent again, whatever it asks for.
func (p *Problem) NotSequenced() bool { return p.Sequenced != nil && !*p.Sequenced }

// ErrAnswer reports an answer that this client cannot read.
var ErrAnswer = errors.New("client: unreadable answer")

// errUnsettled marks the error of a last attempt that says nothing of one before it.
var errUnsettled = errors.New("an earlier attempt may have been sequenced")

// Unknown reports an err that does not say whether the request was sequenced: an error of the
// transport on an open connection, or a 5xx that does not say "sequenced":false. Repeat such a
// request with the same clientOrderId.
//
// nil, an error before the first byte, and every 4xx are known outcomes: nothing is pending at the
// server. Where the client has repeated the request by itself, all its attempts count: an outcome
// stays unknown until an attempt is answered for all of them.
func Unknown(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, errUnsettled) {
		return true
	}
	var p *Problem
	if !errors.As(err, &p) {
		return !errors.Is(err, errUnsent) && !errors.Is(err, errUnsendable)
	}
	return p.Status >= 500 && !p.NotSequenced()
}

// readProblem turns an error answer into a *Problem, whatever its body.
//
// The status is that of the answer's head: a body cannot say another one. It never returns nil.
func readProblem(status int, body []byte) error {
	p := &Problem{}
	if err := json.Unmarshal(body, p); err != nil || p.Code == "" {
		*p = Problem{Code: "UNREADABLE", Detail: "the answer is no problem document"}
	}
	p.Status = status
	return p
}
