package recon

import (
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Rules date settlements; *settlement.Calendar fits.
type Rules interface {
	// SettlementDate dates the settlement of an execution.
	SettlementDate(executedAtMillis int64) store.Date
	// LocalDate is the date at a moment where trades settle.
	LocalDate(millis int64) store.Date
}

// What a row says beside the trade itself.
type settled struct {
	date     store.Date // store.NoDate when the column holds none
	at       int64      // when it was settled, epoch millis; 0: not yet; untimely: it cannot be
	booked   int64      // epoch millis
	order    uint64     // the number of its order, 0 for none, noOrder for an id that is none
	sequence uint64     // 0 for none: a message booked it
}

const (
	untimely = -1
	noOrder  = ^uint64(0)
)

// selectSettled are the columns of a settled: a row that is Processing was not touched since it
// was booked, and one that is Settled was settled by its last change.
const selectSettled = "settlement_date, booked_at, " +
	"case when status = 'Processing' and updated_at = booked_at then 0 " +
	"when status = 'Settled' and updated_at >= booked_at and updated_at > 0 then updated_at else -1 end, " +
	"order_id, sequence"

// scanSettled reads the columns of selectSettled, from column i on.
func scanSettled(cells *store.Row, i int) (s settled) {
	var ok bool
	if s.date, ok = cells.Day(i); !ok {
		s.date = store.NoDate
	}
	s.booked, s.at = cells.Int64(i+1), cells.Int64(i+2)
	if s.order, ok = cells.Numbered(i+3, "ord-"); !ok {
		s.order = noOrder
	}
	s.sequence = uint64(cells.Int64(i + 4))
	return s
}

// differing returns in which of the columns beside the trade the row is not that of the fill.
// A row that a message booked knows no input sequence, and the order only if it was named.
func (s *settled) differing(f *matcher.Fill, book *rulebook) (d fieldSet) {
	if s.sequence != f.InputSeq && s.sequence != 0 {
		d |= fieldSequence
	}
	if s.order != f.Order() && (s.order != 0 || s.sequence != 0) {
		d |= fieldOrder
	}
	if s.at == untimely {
		d |= fieldBookedAt | fieldUpdatedAt
	}
	if !book.dates(f, s) {
		d |= fieldSettlementDate
	}
	if !book.allows(f.TradeSeq, s) {
		d |= fieldStatus
	}
	return d
}

// rulebook is what is known of how settlement dates were computed, and who settled by hand.
// Its zero value knows nothing, and finds fault with no more than what cannot be.
type rulebook struct {
	eras   []era
	forces map[uint64]int64 // of the page: when each was settled by hand
}

// era is the time for which one set of rules was in force.
type era struct {
	store.SettlementRules
	rules Rules // nil: not known to this build
}

// readRules reads what was in force, and when. Rules that come again are made once.
func (r *Recon) readRules(tx *store.Tx) (book rulebook, err error) {
	all, err := tx.SettlementRules()
	for _, s := range all {
		rules, made := r.rules[s.Rules]
		if !made {
			if r.o.Rules != nil && s.Rules != "" {
				if known, ok := r.o.Rules(s.Rules); ok {
					rules = known
				}
			}
			r.rules[s.Rules] = rules
		}
		book.eras = append(book.eras, era{s, rules})
	}
	book.forces = make(map[uint64]int64)
	return book, err
}

// readForces reads which trades of a page were settled by hand.
func (b *rulebook) readForces(tx *store.Tx, page span) error {
	clear(b.forces)
	return tx.Forces(page.lo, page.hi, func(tradeSeq uint64, at int64) { b.forces[tradeSeq] = at })
}

// dates reports whether the rules that were in force give the settlement date of a row. Those
// are the rules of its trade sequence; a row that was booked out of turn, by a message or once
// more after an operator had deleted it, has those of the time when it was booked.
func (b *rulebook) dates(f *matcher.Fill, s *settled) bool {
	if s.date == store.NoDate {
		return false
	}
	bySeq, byTime := -1, -1
	for i := range b.eras {
		if b.eras[i].FirstSeq <= f.TradeSeq {
			bySeq = i
		}
		if b.eras[i].BookedFrom <= s.booked {
			byTime = i
		}
	}
	return b.gives(bySeq, f, s) || byTime != bySeq && b.gives(byTime, f, s)
}

// mostDays is how many days a settlement can be after its execution: as many business days as
// a setting may name take less than two years.
const mostDays = 2 * 366

// gives reports whether the rules of an era give the date; where they are not known, whether
// any rules can.
func (b *rulebook) gives(i int, f *matcher.Fill, s *settled) bool {
	if i < 0 || b.eras[i].rules == nil {
		day := store.Date(f.TimeMillis / (24 * time.Hour).Milliseconds())
		return len(b.eras) == 0 || day-1 <= s.date && s.date <= day+mostDays
	}
	return b.eras[i].rules.SettlementDate(f.TimeMillis) == s.date
}

// allows reports whether the settlement rules lead to the status: a trade is settled when its
// date has come, or by hand, and what was settled by hand stays so. A hand that acted before
// such acts were noted is believed.
func (b *rulebook) allows(tradeSeq uint64, s *settled) bool {
	if len(b.eras) == 0 || s.at == untimely || s.date == store.NoDate {
		return true
	}
	forcedAt, forced := b.forces[tradeSeq]
	if s.at == 0 {
		return !forced || forcedAt < s.booked // else it was booked once more since
	}
	if forced || s.at < b.eras[0].ForcesFrom {
		return true
	}
	for i := range b.eras {
		if rules := b.eras[i].rules; rules == nil || s.date <= rules.LocalDate(s.at) {
			return true
		}
	}
	return false
}
