package httpapi

import (
	"encoding/base64"
	"encoding/binary"
	"unicode/utf8"

	"posttrade/matcher"
	"posttrade/matcher/gate"
)

// Paging of list answers.
const (
	// defaultPage is what an absent limit means; a limit above maxPage is 400, not cut.
	defaultPage = 100
	maxPage     = 1000
)

// queryValue is the longest decoded value.
const queryValue = 256

// maxParameters is the most parameters of a query: more than any endpoint has.
const maxParameters = 16

// eachParameter calls f with every parameter of the query. Each may occur once. f reports whether
// it knows the name and accepts the value.
//
// Every other parameter is 400, so that a misspelt filter does not show everything. value is
// decoded, not empty, and valid as long as the caller keeps it. Names are compared as they were
// sent: an encoded name is unknown.
func (v *serviceRequest) eachParameter(f func(name string, value []byte) bool) problem {
	rest := v.query
	var names [maxParameters]string
	n := 0
	for len(rest) > 0 {
		pair := rest
		rest = nil
		for i, ch := range pair {
			if ch == '&' {
				pair, rest = pair[:i], pair[i+1:]
				break
			}
		}
		name, value := pair, []byte(nil)
		for i, ch := range pair {
			if ch == '=' {
				name, value = pair[:i], pair[i+1:]
				break
			}
		}
		key := string(name)
		for _, other := range names[:n] {
			if other == key {
				return badParameter(key, "it is there twice")
			}
		}
		if n == len(names) {
			return badQuery("too many parameters")
		}
		names[n] = key
		n++
		decoded, ok := unescapeOf(key, value)
		if !ok || !f(key, decoded) {
			return badParameter(key, "it is unknown or its value is not allowed")
		}
	}
	return problem{}
}

// noParameters refuses a query.
//
// The problem names the first of them.
func (v *serviceRequest) noParameters() problem {
	if len(v.query) == 0 {
		return problem{}
	}
	return v.eachParameter(func(string, []byte) bool { return false })
}

// badQuery is a 400 that names no member: the query as a whole, or what several parameters say
// together.
func badQuery(detail string) problem {
	return problem{status: 400, code: CodeBadRequest, detail: detail}
}

// badParameter is the problem of one parameter of a query, by the name that the client gave it.
func badParameter(name, why string) problem {
	p := badQuery("parameter " + quoted(name) + ": " + why)
	p.field = plainName(name)
	return p
}

// badHeader is the problem of one header of a request.
func badHeader(name, why string) problem {
	p := badQuery("header " + name + ": " + why)
	p.field = name
	return p
}

// unescapeOf undoes the percent-encoding of a parameter's value: printable ASCII of at most
// 3*queryValue bytes as sent, except for a subject, which is any text that a token can have.
func unescapeOf(name string, value []byte) ([]byte, bool) {
	if name == "subject" {
		text, ok := unescape(value, 3*gate.MaxTokenBytes)
		return text, ok && utf8.Valid(text)
	}
	text, ok := unescape(value, 3*queryValue)
	return text, ok && printable(text, len(text))
}

// unescape undoes percent-encoding. The result has no control characters.
//
// A plus sign stays a plus sign: this is no form. An empty value is refused, and so is a text of
// more than limit bytes before decoding.
func unescape(value []byte, limit int) ([]byte, bool) {
	if len(value) > limit {
		return nil, false
	}
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		ch := value[i]
		if ch == '%' {
			if i+2 >= len(value) {
				return nil, false
			}
			hi, lo := unhex(value[i+1]), unhex(value[i+2])
			if hi > 15 || lo > 15 {
				return nil, false
			}
			ch = hi<<4 | lo
			i += 2
		}
		if ch < ' ' || ch == 0x7f {
			return nil, false
		}
		out = append(out, ch)
	}
	return out, len(out) > 0
}

// unhex is the value of a hexadecimal digit, 255 for any other byte.
func unhex(ch byte) byte {
	switch {
	case ch >= '0' && ch <= '9':
		return ch - '0'
	case ch|0x20 >= 'a' && ch|0x20 <= 'f':
		return ch | 0x20 - 'a' + 10
	}
	return 255
}

// number reads a whole number of lo to hi. There are no signs and no leading zeros.
func number(value []byte, lo, hi uint64) (uint64, bool) {
	n, ok := parseUint(value)
	return n, ok && n >= lo && n <= hi
}

// listQuery is the part of a query that every list of an account's rows has.
type listQuery struct {
	list    byte // of its cursors
	account uint32
	asked   bool // for one account
	// limit is 1 to maxPage, how many rows the answer may have.
	limit int
	after uint64 // the last row that was shown
}

func newListQuery(list byte) listQuery { return listQuery{list: list, limit: defaultPage} }

// read takes one parameter, if it is one of the query's.
//
// ok is false for a parameter that is not its own: the list then asks its other filters.
func (l *listQuery) read(name string, value []byte) (ok bool) {
	var n uint64
	switch name {
	case "accountId":
		n, ok = number(value, 0, 1<<32-1)
		l.account, l.asked = uint32(n), ok
	case "limit":
		n, ok = number(value, 1, maxPage)
		l.limit = int(n)
	case "cursor":
		l.after, ok = parseCursor(value, l.list)
	}
	return ok
}

// The lists that a cursor can belong to.
const (
	cursorOrders    byte = 'o'
	cursorPositions byte = 'p'
	cursorTrades    byte = 't'
	cursorNewest    byte = 'n' // trades, the newest first
	cursorContracts byte = 'c'
	cursorCredit    byte = 'r'
)

// appendCursor appends an opaque cursor as a JSON string: the list it belongs to, where the next
// page goes on, and a check byte.
//
//	byte 0      the list
//	bytes 1-8   the last item shown; of credit the first account to come; big-endian
//	byte 9      checkByte of the nine before
//
// It is base64 for URLs, without padding. A client must not read it: it may change with the build.
func appendCursor(b []byte, list byte, last uint64) []byte {
	var raw [10]byte
	raw[0] = list
	binary.BigEndian.PutUint64(raw[1:9], last)
	raw[9] = checkByte(raw[:9])
	b = append(b, '"')
	b = base64.RawURLEncoding.AppendEncode(b, raw[:])
	return append(b, '"')
}

// parseCursor reads a cursor of the given list.
//
// ok is false for every text that appendCursor would not have written for this list. A cursor is no
// secret and carries no right: the list checks the caller on each page.
func parseCursor(value []byte, list byte) (last uint64, ok bool) {
	var raw [16]byte
	if len(value) != base64.RawURLEncoding.EncodedLen(10) {
		return 0, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], value)
	if err != nil || n != 10 || raw[0] != list || raw[9] != checkByte(raw[:9]) {
		return 0, false
	}
	return binary.BigEndian.Uint64(raw[1:9]), true
}

// checkByte finds a cursor that was cut or mistyped. It protects against accidents alone.
func checkByte(b []byte) byte {
	sum := byte(0x5a)
	for _, ch := range b {
		sum = sum<<1 | sum>>7
		sum ^= ch
	}
	return sum
}

// statusOf reads the name of an order's state.
//
// The case counts. An unknown name is false.
func statusOf(value string) (matcher.OrderStatus, bool) {
	for s := matcher.StatusNew; s <= matcher.StatusRejected; s++ {
		if s.String() == value {
			return s, true
		}
	}
	return 0, false
}
