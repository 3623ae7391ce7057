package feeds

import (
	"fmt"
	"sync"

	"posttrade/matcher/gate"
	"posttrade/sidecars/control"
)

// Capacity is the engine's room for the records of a source, as the gate's image shows it. A
// service checks it before it writes a new record. Any goroutine.
//
// It keeps no state: every call reads the gate's image. The image lags behind the commands that are
// under way, and package source allows for that.
type Capacity struct {
	Source control.Source
	Gate   *gate.Gate
}

// Places returns how many records the engine holds, and how many it can hold.
func (r Capacity) Places() (held, capacity int) {
	name := gate.AccountSource
	if r.Source == control.Security {
		name = gate.SecuritySource
	}
	held, capacity, err := r.Gate.Places(name)
	if err != nil {
		panic(err) // the gate knows both sources: a bug
	}
	return held, capacity
}

// Holds reports whether the engine already has a place for the record.
//
// A record that the source does not have any more still holds its place.
func (r Capacity) Holds(record *control.Record) bool {
	if r.Source == control.Account {
		return r.Gate.AccountKnown(record.ID)
	}
	_, ok := r.Gate.Security([]byte(record.Ticker))
	return ok
}

// unknownRecords are the records of a source for which the engine has no room. The sink's goroutine
// changes them, any goroutine reads them.
//
// keys has the keys of control.Record.Key. The zero value is empty and ready for use.
type unknownRecords struct {
	mu    sync.Mutex
	keys  map[string]bool
	first string // one of them, "" for none
}

// add adds records and returns the first that was new, "" for none.
//
// The caller logs once for a call, however many records are new.
func (u *unknownRecords) add(keys []string) (first string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range keys {
		if u.keys[key] {
			continue
		}
		if u.keys == nil {
			u.keys = map[string]bool{}
		}
		u.keys[key] = true
		if first == "" {
			first = key
		}
	}
	u.pick()
	return first
}

// remove removes records that have found room.
func (u *unknownRecords) remove(keys []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range keys {
		delete(u.keys, key)
	}
	u.pick()
}

// only removes all records that the source does not have.
//
// records are all of the source's. The cost is a walk over them, but nothing while no record is
// unknown.
func (u *unknownRecords) only(records []control.Record, s control.Source) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.keys) == 0 {
		return
	}
	there := make(map[string]bool, len(records))
	for i := range records {
		there[records[i].Key(s)] = true
	}
	for key := range u.keys {
		if !there[key] {
			delete(u.keys, key)
		}
	}
	u.pick()
}

// pick makes first one of the keys. The caller holds mu.
func (u *unknownRecords) pick() {
	if u.keys[u.first] {
		return
	}
	u.first = ""
	for key := range u.keys {
		u.first = key
		return
	}
}

// Count returns how many there are.
func (u *unknownRecords) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.keys)
}

// Detail describes how many records are unknown, "" for none.
//
// setting is the name of the setting that an operator has to raise.
func (u *unknownRecords) Detail(setting string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.keys) == 0 {
		return ""
	}
	return fmt.Sprintf("%d records are unknown to the gate, because the engine has no room for them, "+
		"such as %s: raise %s and start again", len(u.keys), u.first, setting)
}
