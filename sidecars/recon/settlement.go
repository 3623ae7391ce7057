package recon

import (
	"sort"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Rules give settlement dates; *settlement.Calendar fits.
//
// Both depend on their argument only. Any goroutine may call them.
type Rules interface {
	// SettlementDate returns the settlement date of an execution.
	SettlementDate(executedAtMillis int64) store.Date
	// LocalDate returns the date at a moment in the zone where trades settle.
	LocalDate(millis int64) store.Date
}

// settled is the part of a row beside the trade itself.
type settled struct {
	date     store.Date // store.NoDate when the column holds none
	at       int64      // when it was settled, epoch millis; 0: not yet; or one of the two below
	booked   int64      // epoch millis
	order    uint64     // the number of its order; 0: none; noOrder: an invalid id
	sequence uint64     // 0: none, a message booked it
}

const (
	untimely = -1 // an impossible time
	touched  = -2 // it is Processing, and was changed after it was booked
	noOrder  = ^uint64(0)
)

// selectSettled are the columns of a settled. A row that is Processing was not touched since it was
// booked. One that is Settled was settled by its last change.
const selectSettled = "settlement_date, booked_at, " +
	"case when status = 'Processing' and updated_at = booked_at then 0 " +
	"when status = 'Settled' and updated_at >= booked_at and updated_at > 0 then updated_at " +
	"when status = 'Processing' then -2 else -1 end, " +
	"order_id, sequence"

// scanSettled reads the columns of selectSettled, from column i on.
func scanSettled(cells *store.Row, i int) (s settled) {
	var ok bool
	if s.date, ok = cells.Day(i); !ok {
		s.date = store.NoDate
	}
	s.booked, s.at = cells.Int64(i+1), cells.Int64(i+2)
	if s.order, ok = cells.OrderNumber(i + 3); !ok {
		s.order = noOrder
	}
	s.sequence = uint64(cells.Int64(i + 4))
	return s
}

// differing returns the columns beside the trade in which the row is not that of the fill. A row
// that a message of an older build booked has no input sequence, and has the order only if the
// message named it.
func (s *settled) differing(f *matcher.Fill, book *rulebook) (d fieldSet) {
	byMessage := book.byMessage[f.TradeSeq]
	if s.sequence != f.InputSeq && (s.sequence != 0 || !byMessage) {
		d |= fieldSequence
	}
	if s.order != f.Order() && (s.order != 0 || s.sequence != 0 || !byMessage) {
		d |= fieldOrder
	}
	known, booked := book.booked(f.TradeSeq, s.booked)
	if known && s.booked != booked {
		d |= fieldBookedAt
	}
	allowed := book.allows(f.TradeSeq, s)
	if s.at == untimely || s.at == touched && allowed {
		if d |= fieldUpdatedAt; !known {
			d |= fieldBookedAt // no record says which of the two is wrong
		}
	}
	if !book.dates(f, s) {
		d |= fieldSettlementDate
	}
	if !allowed {
		d |= fieldStatus
	}
	return d
}

// rulebook is what is known of the rules of settlement dates, and of the settlements by hand. The
// zero value knows nothing, and reports only values that are impossible under any rules.
//
// One walk uses it. readRules makes it for a chunk, readPage fills in what belongs to a page.
type rulebook struct {
	eras []era

	// Of the page that was read last:
	forces    map[uint64]int64 // the time of each settlement by hand
	byMessage map[uint64]bool  // trades that a message of an older build booked
	batches   []booking        // ascending by their first trade
}

// booking is a batch of the projection. reach is the highest last trade of the batches up to it.
//
// reach makes the search backwards end: no earlier batch has a trade above it.
type booking struct {
	store.Batch
	reach uint64
}

// era is a time during which one set of rules was in force.
//
// The eras are in the order in which they were noted; the last one that fits is in force.
type era struct {
	store.SettlementRules
	rules Rules // nil: unknown to this build
}

// readRules reads which rules were in force, and when. Rules that occur more than once are made
// once.
//
// Rules that this build does not know are kept as nil, and are asked for only once.
func (r *Recon) readRules(tx *store.Tx) (book rulebook, err error) {
	all, err := tx.SettlementRules()
	r.making.Lock()
	defer r.making.Unlock()
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
	book.forces, book.byMessage = make(map[uint64]int64), make(map[uint64]bool)
	return book, err
}

// readPage reads what is recorded of the trades of a page beside their rows.
func (b *rulebook) readPage(tx *store.Tx, page span) error {
	clear(b.forces)
	clear(b.byMessage)
	b.batches = b.batches[:0]
	err := tx.Forces(page.lo, page.hi, func(tradeSeq uint64, at int64) { b.forces[tradeSeq] = at })
	if err != nil {
		return err
	}
	err = tx.ByMessage(page.lo, page.hi, func(tradeSeq uint64) { b.byMessage[tradeSeq] = true })
	if err != nil {
		return err
	}
	return tx.Batches(page.lo, page.hi, func(batch store.Batch) {
		reach := batch.LastSeq
		if n := len(b.batches); n > 0 {
			reach = max(reach, b.batches[n-1].reach)
		}
		b.batches = append(b.batches, booking{batch, reach})
	})
}

// booked returns when the row of a trade was booked: at, if some batch of that moment has it, else
// the latest known moment. known is false when no batch determines it: an older build booked the
// row, or it was there already when its batch was booked.
func (b *rulebook) booked(tradeSeq uint64, at int64) (known bool, booked int64) {
	i := sort.Search(len(b.batches), func(i int) bool { return b.batches[i].FirstSeq > tradeSeq })
	for i--; i >= 0 && b.batches[i].reach >= tradeSeq; i-- {
		if b.batches[i].LastSeq < tradeSeq {
			continue
		}
		if b.batches[i].BookedAt == at {
			return true, at
		}
		if b.batches[i].Whole {
			known, booked = true, max(booked, b.batches[i].BookedAt)
		}
	}
	return known, booked
}

// dates reports whether the settlement date of a row is the one of the rules in force. These are
// the rules of its trade sequence. A row that was booked out of turn, by a message or again after
// an operator had deleted it, has the rules of the time when it was booked.
//
// Either of the two answers is enough, because no record says which way a row was booked.
func (b *rulebook) dates(f *matcher.Fill, s *settled) bool {
	if s.date == store.NoDate {
		return false
	}
	bySeq, byTime := b.inForce(f.TradeSeq, s.booked)
	return b.gives(bySeq, f, s) || byTime != bySeq && b.gives(byTime, f, s)
}

// due returns the settlement date of a fill by the rules of its trade sequence, else by those of
// the time when its row was booked. known is false when this build knows neither.
func (b *rulebook) due(f *matcher.Fill, booked int64) (day store.Date, known bool) {
	bySeq, byTime := b.inForce(f.TradeSeq, booked)
	for _, i := range [...]int{bySeq, byTime} {
		if i >= 0 && b.eras[i].rules != nil {
			return b.eras[i].rules.SettlementDate(f.TimeMillis), true
		}
	}
	return store.NoDate, false
}

// inForce returns the eras of a trade sequence and of a time, -1 for none.
func (b *rulebook) inForce(tradeSeq uint64, booked int64) (bySeq, byTime int) {
	bySeq, byTime = -1, -1
	for i := range b.eras {
		if b.eras[i].FirstSeq <= tradeSeq {
			bySeq = i
		}
		if b.eras[i].BookedFrom <= booked {
			byTime = i
		}
	}
	return bySeq, byTime
}

// mostDays is the most days between an execution and its settlement: the largest number of business
// days that a setting may have takes less than two years.
const mostDays = 2 * 366

// gives reports whether the rules of an era give the date. When they are unknown, it reports
// whether any rules can.
//
// Without any era the database was filled by a build that noted none, and every date is accepted. A
// day is subtracted for zones west of Greenwich.
func (b *rulebook) gives(i int, f *matcher.Fill, s *settled) bool {
	if i < 0 || b.eras[i].rules == nil {
		day := store.Date(f.TimeMillis / (24 * time.Hour).Milliseconds())
		return len(b.eras) == 0 || day-1 <= s.date && s.date <= day+mostDays
	}
	return b.eras[i].rules.SettlementDate(f.TimeMillis) == s.date
}

// allows reports whether the settlement rules lead to the status. A trade is settled when its date
// has come, or by hand, and a settlement by hand is final. A settlement by hand from before such
// settlements were recorded is accepted.
func (b *rulebook) allows(tradeSeq uint64, s *settled) bool {
	if len(b.eras) == 0 || s.at == untimely || s.date == store.NoDate {
		return true
	}
	forcedAt, forced := b.forces[tradeSeq]
	if s.at == 0 || s.at == touched {
		return !forced || forcedAt < s.booked // otherwise the row was booked again since
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
