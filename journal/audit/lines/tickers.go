package lines

import (
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// Names is what a report needs of an engine besides its events.
type Names interface {
	Ticker(id uint32) string // empty when there is none of that id
}

// tickers are the names of the securities as JSON text, by id - 1. They grow with the registrations
// in the range itself: an engine that is some commands ahead would name a security before the
// security had its name.
//
// The first index is the id 1: ids are given by the engine, ascending and without a hole.
type tickers [][]byte

// load reads the names that were registered before the range.
func (t *tickers) load(names Names) {
	*t = (*t)[:0]
	for id := uint32(1); ; id++ {
		name := names.Ticker(id)
		if name == "" {
			return
		}
		*t = append(*t, strictjson.AppendString(nil, name))
	}
}

// register adds the name of a SYMBOL_REGISTER that was applied. Ids are given without a hole, so an
// id that is not the next one is a name that is known already.
func (t *tickers) register(ev *matcher.Event) {
	if name, err := ev.Cmd().Symbol(); err == nil && ev.SecurityID == uint32(len(*t))+1 {
		*t = append(*t, strictjson.AppendString(nil, name))
	}
}

// text is the name as JSON, null for an id without one.
func (t tickers) text(id uint32) []byte {
	if id-1 < uint32(len(t)) {
		return t[id-1]
	}
	return null
}
