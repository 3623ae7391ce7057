//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// ContractRow is one OTC contract, as it was booked. It never changes. Two cache lines.
type ContractRow struct {
	matcher.ContractInfo
	CreatedMillis int64 // the event time of its booking
	clientID      [MaxClientID]byte
	idLen         uint8
	_             [7]uint8
}

// Compile-time check: a row is two cache lines.
var _ = [1]struct{}{}[unsafe.Sizeof(ContractRow{})-128]

// ClientID is the client's own id of the booking, empty if there is none. It points into the row.
func (r *ContractRow) ClientID() []byte { return r.clientID[:r.idLen] }

// contracts holds every contract, ascending by id.
//
// Rows are only appended, and a row does not change once count has passed it. So a reader that
// stays below the count it has loaded needs no lock.
type contracts struct {
	rows     []ContractRow
	accounts []uint32 // of each row: a list by account reads this column
	// Writer: the observer, after the row. It publishes the row.
	count ring.Sequence
}

// add publishes a contract with an id above all others. id is cut at MaxClientID. The engine
// refuses a contract for which there is no room, so a full table is a bug.
func (t *contracts) add(info *matcher.ContractInfo, createdMillis int64, id []byte) {
	at := t.count.Load()
	if int(at) == len(t.rows) {
		noContractLeft(info.ID, len(t.rows))
	}
	row := &t.rows[at]
	row.ContractInfo, row.CreatedMillis = *info, createdMillis
	row.idLen = uint8(copy(row.clientID[:], id))
	t.accounts[at] = info.AccountID
	t.count.Release(at + 1)
}

// booked adds the contract of a booking, and its key.
func (v *Views) booked(ev *matcher.Event, clientID []byte) {
	v.remember(ev, matcher.KeyContract, ev.InputSeq, clientID)
	info := matcher.ContractInfo{ID: ev.InputSeq}
	info.ContractTerms, _ = ev.Cmd().ContractTerms()
	v.contracts.add(&info, ev.TimeMillis, clientID)
}
