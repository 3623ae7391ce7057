package verify

import (
	"encoding/json"
	"strconv"

	"posttrade/matcher/strictjson"
)

// members writes the members of a JSON object, in the order of the calls. The caller adds the
// closing brace.
type members []byte

// raw writes a member whose value is JSON text already. Names are the package's own, so they need
// no escapes.
func (m *members) raw(name string, text []byte) {
	sep := byte(',')
	if len(*m) == 0 {
		sep = '{'
	}
	*m = append(append(append(*m, sep, '"'), name...), '"', ':')
	*m = append(*m, text...)
}

func (m *members) uint(name string, v uint64) { m.raw(name, strconv.AppendUint(nil, v, 10)) }

func (m *members) int(name string, v int64) { m.raw(name, strconv.AppendInt(nil, v, 10)) }

// decimal writes a number of millionths, without trailing zeros.
func (m *members) decimal(name string, v int64) { m.raw(name, strictjson.FormatDecimal(nil, v)) }

// text writes a string, which may come from a client: it is escaped.
func (m *members) text(name, v string) {
	quoted, err := json.Marshal(v)
	if err != nil {
		panic(err) // a string always marshals
	}
	m.raw(name, quoted)
}

// known writes the name of a number, or the number as text: a newer engine may have more of them.
func (m *members) known(name string, names []string, v int) {
	if v < len(names) && names[v] != "" {
		m.text(name, names[v])
		return
	}
	m.text(name, strconv.Itoa(v))
}

// side writes 0 and 1 by the words of the product.
func (m *members) side(name string, v byte, buy, sell string) {
	m.known(name, []string{buy, sell}, int(v))
}
