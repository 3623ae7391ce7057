package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The socket is of type SOCK_SEQPACKET: a frame is one message, which arrives whole or not at all.
// A reader that finds another magic or version refuses the connection: there is no negotiation.
const (
	Magic   = 0x31535450 // "PTS1"
	Version = 1

	HeadBytes    = 16
	helloBytes   = 16
	welcomeBytes = 56

	// The longest token is that of package gate; the longest frame is a hello with it.
	MaxTokenBytes = 4096
	MaxFrameBytes = HeadBytes + helloBytes + MaxTokenBytes
	// Of a reason that Reason prints.
	maxTextBytes = 256
)

// Frame is the kind of a message on the socket.
type Frame uint16

// The frames. A client sends Hello first, Renew and Lookup at any time later.
const (
	Hello   Frame = 1 // role, wanted ring sizes, token
	Welcome Frame = 2 // the layout, with two descriptors; or a refusal with its reason
	Renew   Frame = 3 // another token of the same subject
	Renewed Frame = 4 // whether it was taken
	Lookup  Frame = 5 // a ticker
	Found   Frame = 6 // its security id, 0 for none
	Goodbye Frame = 7 // the server ends the session, and why
)

// Status says how a hello was received or why a session ended.
type Status uint32

// The statuses.
const (
	OK           Status = 0
	BadFrame     Status = 1 // not a frame, or a frame that is not allowed now
	BadVersion   Status = 2 // a version that this server does not support
	BadToken     Status = 3 // missing, malformed, badly signed, expired, or of another subject
	TooMany      Status = 4 // the limit of sessions is reached
	BadCursor    Status = 5 // a cursor in shared memory that no correct client writes
	Shutdown     Status = 6 // the server stops
	NoMemory     Status = 7 // the regions could not be made
	NoSuchRole   Status = 8 // unknown, or not offered by this server
	TokenExpired Status = 9 // the token ran out and was not renewed
	// The server stands aside, because its history is in doubt.
	Aside Status = 10
)

var statusNames = [...]string{"ok", "bad frame", "unknown protocol version", "token refused",
	"too many sessions",
	"a shared cursor is impossible", "server shuts down", "no memory for the rings", "unknown role",
	"token has expired", "server stands aside: its history is in doubt"}

// String is the reason in words, as it stands in refusals, goodbyes and logs.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// Role is the purpose of a session.
type Role uint32

// The roles.
const (
	Orders   Role = 1 // commands in, answers out
	DropCopy Role = 2 // every event of the entitled accounts
	Trades   Role = 3 // every execution, without accounts and orders
	Market   Role = 4 // the same, and the best levels of every security
)

// The reasons why bytes are not a frame. The Parse functions wrap ErrFrame or ErrVersion.
var (
	ErrFrame   = errors.New("not a frame")
	ErrVersion = errors.New("unknown protocol version")
)

// HelloFrame is the request of a client. For a ring size of 0 the server chooses the size; any
// other is rounded up to a power of two within the server's limits. The welcome has the sizes that
// count.
type HelloFrame struct {
	Role         Role
	CommandSlots uint32
	EventSlots   uint32
	Token        []byte
}

// WelcomeFrame is the layout of the two regions of which it carries the descriptors. A client
// compares the sizes with those that it computes from the slots before it maps anything.
type WelcomeFrame struct {
	Session      uint64
	CommandBytes uint64 // size of the first region
	ClientPage   uint64 // offset of the client's page in it, behind the command ring
	EventBytes   uint64 // size of the second region
	CommandSlots uint32
	EventSlots   uint32
	Quota        uint32 // commands that may be on their way
}

// AppendHead appends a frame's first 16 bytes; body is the length of the bytes that follow, which
// the caller appends.
func AppendHead(b []byte, kind Frame, status Status, body int) []byte {
	b = binary.LittleEndian.AppendUint32(b, Magic)
	b = binary.LittleEndian.AppendUint16(b, Version)
	b = binary.LittleEndian.AppendUint16(b, uint16(kind))
	b = binary.LittleEndian.AppendUint32(b, uint32(HeadBytes+body))
	return binary.LittleEndian.AppendUint32(b, uint32(status))
}

// AppendText appends a frame that is a status and some bytes: every frame except Hello and Welcome.
func AppendText(b []byte, kind Frame, status Status, text []byte) []byte {
	return append(AppendHead(b, kind, status, len(text)), text...)
}

// AppendRefusal appends a Welcome that refuses, or a Goodbye, with its reason as text.
func AppendRefusal(b []byte, kind Frame, status Status) []byte {
	return AppendText(b, kind, status, []byte(status.String()))
}

// Append appends the hello.
func (h *HelloFrame) Append(b []byte) []byte {
	b = AppendHead(b, Hello, OK, helloBytes+len(h.Token))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.Role))
	b = binary.LittleEndian.AppendUint32(b, h.CommandSlots)
	b = binary.LittleEndian.AppendUint32(b, h.EventSlots)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(b, h.Token...)
}

// Append appends the welcome.
func (w *WelcomeFrame) Append(b []byte) []byte {
	b = AppendHead(b, Welcome, OK, welcomeBytes)
	for _, v := range []uint64{w.Session, w.CommandBytes, w.ClientPage, w.EventBytes} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, v := range []uint32{w.CommandSlots, w.EventSlots, w.Quota, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// Parse reads the head of a message and returns the body after it, which points into b. The length
// in the head must be that of the message. The kind may be one that this build does not know: the
// caller judges it.
//
// Errors: ErrVersion, else ErrFrame.
func Parse(b []byte) (kind Frame, status Status, body []byte, err error) {
	if len(b) < HeadBytes {
		return 0, 0, nil, fmt.Errorf("session: frame bytes=%d: %w", len(b), ErrFrame)
	}
	if got := binary.LittleEndian.Uint32(b); got != Magic {
		return 0, 0, nil, fmt.Errorf("session: frame magic=%08x: %w", got, ErrFrame)
	}
	if got := binary.LittleEndian.Uint16(b[4:]); got != Version {
		return 0, 0, nil, fmt.Errorf("session: frame version=%d: %w", got, ErrVersion)
	}
	if got := binary.LittleEndian.Uint32(b[8:]); got != uint32(len(b)) {
		return 0, 0, nil, fmt.Errorf("session: frame bytes=%d, it says %d: %w", len(b), got, ErrFrame)
	}
	return Frame(binary.LittleEndian.Uint16(b[6:])), Status(binary.LittleEndian.Uint32(b[12:])),
		b[HeadBytes:], nil
}

// ParseHello reads the body of a Hello. The token points into it. The role and the sizes are not
// judged; ErrFrame for a wrong length or a reserved word that is not 0.
func ParseHello(body []byte) (h HelloFrame, err error) {
	if len(body) < helloBytes || len(body) > helloBytes+MaxTokenBytes {
		return h, fmt.Errorf("session: hello bytes=%d: %w", len(body), ErrFrame)
	}
	if rest := binary.LittleEndian.Uint32(body[12:]); rest != 0 {
		return h, fmt.Errorf("session: hello reserved=%d: %w", rest, ErrFrame)
	}
	return HelloFrame{
		Role:         Role(binary.LittleEndian.Uint32(body)),
		CommandSlots: binary.LittleEndian.Uint32(body[4:]),
		EventSlots:   binary.LittleEndian.Uint32(body[8:]),
		Token:        body[helloBytes:],
	}, nil
}

// ParseWelcome reads the body of a Welcome with status OK; ErrFrame for a wrong length. The
// reserved words are not read, so that a later server can use them.
func ParseWelcome(body []byte) (w WelcomeFrame, err error) {
	if len(body) != welcomeBytes {
		return w, fmt.Errorf("session: welcome bytes=%d: %w", len(body), ErrFrame)
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(body[8*i:]) }
	return WelcomeFrame{
		Session: at(0), CommandBytes: at(1), ClientPage: at(2), EventBytes: at(3),
		CommandSlots: binary.LittleEndian.Uint32(body[32:]),
		EventSlots:   binary.LittleEndian.Uint32(body[36:]),
		Quota:        binary.LittleEndian.Uint32(body[40:]),
	}, nil
}

// Reason is the text of a refusal or a goodbye, quoted and cut to a length that fits a log line:
// the other side has written it.
func Reason(status Status, body []byte) string {
	if len(body) == 0 {
		return status.String()
	}
	return fmt.Sprintf("%q", body[:min(len(body), maxTextBytes)])
}
