package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The errors that callers test with errors.Is.
var (
	// ErrUnavailable: no server, no answer in time, or no stream behind the subject. The
	// outcome of a publish is unknown; try again later with the same MsgID.
	ErrUnavailable = errors.New("broker unavailable")
	// ErrFull: the stream has no space and refuses new messages. Nothing was stored.
	ErrFull = errors.New("stream full")
	// ErrSequence: the stream's last message is not the expected one. Nothing was stored.
	ErrSequence = errors.New("unexpected last message")
	// ErrStream: the stream exists, and a setting of it breaks a promise of this package.
	ErrStream = errors.New("stream differs")
	// ErrNotFound: no such stream, or no such message in it.
	ErrNotFound = errors.New("not found")
	// ErrDisconnected: a Following may have missed messages. Close it and begin again.
	ErrDisconnected = errors.New("disconnected")
	// ErrGap: a Following saw that messages of the stream are missing between two that it received.
	ErrGap = errors.New("gap in stream")
	// ErrSettled: the message was acknowledged, refused or terminated before, or it was
	// never delivered by a consumer.
	ErrSettled = errors.New("message already settled")
	// ErrClosed: the Broker was closed. It is also an ErrUnavailable.
	ErrClosed = fmt.Errorf("%w: closed", ErrUnavailable)
)

// The error codes of JetStream that callers can act on; all others are passed on as text.
//
// The numbers are "err_code" of the server's error list.
const (
	codeAccountLimits    = 10002
	codeClusterNotReady  = 10008
	codeConsumerMissing  = 10014
	codeNoResources      = 10023
	codeNoMemory         = 10028
	codeNoMessage        = 10037
	codeNotForAccount    = 10039
	codeNoStorage        = 10047
	codeNoStore          = 10049
	codeStreamNameInUse  = 10058
	codeStreamMissing    = 10059
	codeWrongLastMsgID   = 10070
	codeWrongLastSeq     = 10071
	codeNotEnabled       = 10076
	codeStoreFailed      = 10077
	codeTooManyInFlight  = 10167
	codeStreamOffline    = 10118
	codeConsumerOffline  = 10119
	codeSubjectsOverlap  = 10065
	codeWrongLastSeqTail = 10164
)

// apiError is the error inside a JetStream response.
//
// Code is an HTTP status and is not looked at: several causes share one.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.ErrCode) }

// Unwrap maps the code to the package's sentinels.
//
// A code that is not listed has no sentinel: callers see its text only.
func (e *apiError) Unwrap() error {
	switch e.ErrCode {
	case codeNoResources, codeNoStorage, codeNoMemory, codeAccountLimits:
		return ErrFull
	case codeWrongLastMsgID, codeWrongLastSeq, codeWrongLastSeqTail:
		return ErrSequence
	case codeStreamMissing, codeNoMessage, codeConsumerMissing:
		return ErrNotFound
	case codeNotEnabled, codeNotForAccount, codeClusterNotReady,
		codeStreamOffline, codeConsumerOffline,
		codeTooManyInFlight:
		return ErrUnavailable
	case codeStoreFailed:
		// A stream that reached its own limit answers so; other causes share the code.
		if strings.HasPrefix(e.Description, "maximum ") ||
			strings.Contains(e.Description, "no space left") {
			return ErrFull
		}
		return ErrUnavailable
	}
	return nil
}

// asked is sorted for a request made under ctx. When ctx has ended, the error says why.
//
// The cause tells a lost connection (session.bound) from the caller's own end and from the timeout.
func asked(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("%w: %v", ErrUnavailable, cause)
	}
	return sorted(err)
}

// sorted converts an error of nats.go into one of this package: the sentinel first, then the text
// of the cause.
//
// An error that has one of the sentinels is returned as it is; a nil error gives nil.
func sorted(err error) error {
	if err == nil {
		return nil
	}
	for _, ours := range []error{ErrUnavailable, ErrFull, ErrSequence, ErrStream, ErrNotFound} {
		if errors.Is(err, ours) {
			return err
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		// Only the text is kept: the context may be one of this package, and a caller that finds
		// context.Canceled would take it for its own context, which it can check itself.
		return fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	var js jetstream.JetStreamError
	if errors.As(err, &js) && js.APIError() != nil {
		a := js.APIError()
		return &apiError{Code: a.Code, ErrCode: int(a.ErrorCode), Description: a.Description}
	}
	for _, gone := range []error{
		nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed, nats.ErrConnectionDraining,
		nats.ErrDisconnected, nats.ErrReconnectBufExceeded,
		nats.ErrConnectionReconnecting, nats.ErrNoServers,
		nats.ErrHeadersNotSupported, nats.ErrStaleConnection, nats.ErrInvalidConnection,
		jetstream.ErrNoStreamResponse, jetstream.ErrJetStreamNotEnabled,
		jetstream.ErrJetStreamNotEnabledForAccount,
	} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return err
}
