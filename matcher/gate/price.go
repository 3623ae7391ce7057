//perf:hot

package gate

import "sync/atomic"

// priceCell is a price x 1e6 and its event time. Its words are atomic, because a reader may load
// them while the writer fills the cell again; stamp tells the reader to drop what it has.
type priceCell struct{ px, time atomic.Int64 }

// priceTries bounds the tries of price. It loses one try for every two prices that are written
// while it reads one, so a second try is rare, and the last one is not expected to be used.
const priceTries = 8

// price returns the last price (x 1e6) and its event time. known is false when there is none yet.
// It is also false when the price changes faster than it can be read: the engine decides then.
// stamp tells the two apart.
//
// The writer fills the cell that no stamp names at the moment, so a reader gets a wrong cell only
// if two prices come while it reads; then stamp has changed and it tries again.
func (s *security) price() (px, timeMillis int64, known bool) {
	for range priceTries {
		stamp := s.stamp.Load()
		if stamp == 0 {
			return 0, 0, false
		}
		cell := &s.cells[stamp&1]
		px, timeMillis = cell.px.Load(), cell.time.Load()
		if s.stamp.Load() == stamp {
			return px, timeMillis, true
		}
	}
	return 0, 0, false
}

// setPrice publishes a price. The caller holds writers.prices, so there is one writer; the store of
// stamp comes last and publishes the cell.
func (s *security) setPrice(px, timeMillis int64) {
	stamp := s.stamp.Load() + 1
	cell := &s.cells[stamp&1]
	cell.px.Store(px)
	cell.time.Store(timeMillis)
	s.stamp.Store(stamp)
}

// Price returns the last price of a security (x 1e6) and its event time, false when there is none.
// The two belong together. Any goroutine; no lock.
func (g *Gate) Price(id uint32) (px, timeMillis int64, ok bool) {
	t := g.tables.Load()
	if uint64(id) >= uint64(len(t.securities)) {
		return 0, 0, false
	}
	return t.securities[id].price()
}

// Now returns the event time for a price of this moment, in epoch milliseconds: the clock's time,
// or the time of the market price where the clock has been set back. Otherwise no price could
// replace the price of a clock that once ran ahead, until the clock reaches that time again.
func (g *Gate) Now(id uint32, clock int64) int64 {
	_, last, ok := g.Price(id)
	if !ok {
		return clock
	}
	return max(clock, last)
}
