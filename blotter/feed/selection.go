package feed

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Topics are the topics without a security, one bit each.
type Topics uint8

// The topics without a security.
const (
	Trades Topics = 1 << iota
	Orders
	Prices
	Controls
	Contracts
)

// topicNames lacks the topics of books and best levels, which have a ticker (ParseTopics).
var topicNames = map[string]Topics{"trades": Trades, "orders": Orders, "prices": Prices,
	"controls": Controls, "contracts": Contracts}

// Selection is what a reader gets. The zero value selects nothing. Accounts ascend, each once.
type Selection struct {
	Topics   Topics
	Books    Securities
	BBOs     Securities
	Accounts []uint32 // whose orders, fills and contracts; nil: all

	key string // that of Key, once it was asked for
}

// Securities is a set of securities.
type Securities struct {
	All bool
	IDs []uint32 // ascending, each once; not used when All
}

// any reports that the set is not empty.
func (s *Securities) any() bool { return s.All || len(s.IDs) > 0 }

// Several reports that there may be more than one.
func (s *Securities) Several() bool { return s.All || len(s.IDs) > 1 }

// among yields the ids of the set that are not above count: a later one is not registered yet.
func (s *Securities) among(count uint32) iter.Seq[uint32] {
	return func(yield func(id uint32) bool) {
		if s.All {
			for id := uint32(1); id <= count && yield(id); id++ {
			}
			return
		}
		for _, id := range s.IDs {
			if id > count || !yield(id) {
				return
			}
		}
	}
}

func (s *Securities) has(id uint32) bool {
	if s.All {
		return true
	}
	_, found := slices.BinarySearch(s.IDs, id)
	return found
}

// add keeps the ids ascending and each once, so that equal sets have one Key.
func (s *Securities) add(id uint32) {
	if at, found := slices.BinarySearch(s.IDs, id); !found {
		s.IDs = slices.Insert(s.IDs, at, id)
	}
}

// TopicError reports a topic that there is not; Security is set when its security is unknown. Its
// text is for the client.
type TopicError struct{ Topic, Security string }

func (e *TopicError) Error() string {
	if e.Security != "" {
		return fmt.Sprintf("no such security: %s", e.Security)
	}
	return fmt.Sprintf("no such topic: %q", e.Topic)
}

// ParseTopics reads a list of topics, separated by commas: book:<ticker>, bbo:<ticker>, with * for
// every security, trades, orders, prices, controls, contracts. security finds the id of a ticker. A
// topic may be there twice. The error is a *TopicError. Accounts are the caller's to set.
func ParseTopics(list string, security func(ticker []byte) (uint32, bool)) (s Selection,
	err error) {
	for topic := range strings.SplitSeq(list, ",") {
		name, ticker, of := strings.Cut(topic, ":")
		set := map[string]*Securities{"book": &s.Books, "bbo": &s.BBOs}[name]
		switch bit := topicNames[name]; {
		case bit != 0 && !of:
			s.Topics |= bit
		case set == nil || ticker == "":
			return s, &TopicError{Topic: topic}
		case ticker == "*":
			set.All = true
		default:
			id, known := security([]byte(ticker))
			if !known {
				return s, &TopicError{Topic: topic, Security: ticker}
			}
			set.add(id)
		}
	}
	return s, nil
}

// Key is the same for selections that select the same. It is kept after the first call, so it must
// not be asked for before the selection is complete, nor by two goroutines at once.
func (s *Selection) Key() string {
	if s.key == "" {
		s.key = fmt.Sprint(s.Topics, s.Books.All, s.Books.IDs, s.BBOs.All, s.BBOs.IDs,
			s.Accounts == nil, s.Accounts)
	}
	return s.key
}

// has reports whether an event of a kind about a security and an account is selected.
func (s *Selection) has(kind Kind, security, account uint32) bool {
	switch kind {
	case Book, Snapshot:
		return s.Books.has(security)
	case BBO:
		return s.BBOs.has(security)
	case Trade:
		return s.Topics&Trades != 0
	case Order, Fill:
		return s.Topics&Orders != 0 && s.mine(account)
	case Price:
		return s.Topics&Prices != 0
	case Control:
		return s.Topics&Controls != 0
	case Contract:
		return s.Topics&Contracts != 0 && s.mine(account)
	}
	return false
}

// mine reports whether an account's own events are selected.
func (s *Selection) mine(account uint32) bool {
	if s.Accounts == nil {
		return true
	}
	_, found := slices.BinarySearch(s.Accounts, account)
	return found
}
