package settlement

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// Two processes, each with its own connections, two sweeps and two goroutines that force, and one
// that books every trade a second time: each trade is settled once and counted once, under one of
// the two counters of one of the processes.
func TestRaceOfSweepForceAndProcesses(t *testing.T) {
	n := size(10_000, 1_000)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const seed = 11
		random := rand.New(rand.NewPCG(seed, 1))
		trades := make([]store.Trade, n)
		for i := range trades {
			trades[i] = aTrade(uint64(i+1), mustDate(t, "2026-03-06")-store.Date(random.IntN(5)))
		}
		insert(t, db, trades...)
		witness(t, db)
		other := must.Get(db.Twin())(t)
		t.Cleanup(func() {
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		})
		c := newClock(noon("2026-03-06"))
		processes := []*Settlement{newTest(t, db, c, 64), newTest(t, other, c, 64)}
		ctx := bounded(t)
		var work sync.WaitGroup
		for p, s := range processes {
			for worker := range 2 {
				work.Go(func() {
					if _, err := s.Sweep(ctx); err != nil {
						t.Errorf("sweep: %v", err)
					}
				})
				picks := rand.New(rand.NewPCG(seed, uint64(10*p+worker))).Perm(n)[:n/40]
				work.Go(func() {
					for _, i := range picks {
						row, found, err := s.Force(ctx, matcher.TradeID(uint64(i+1)))
						if err != nil || !found || row.Status != store.Settled {
							t.Errorf("seed %d: force of %d: %+v, %v, %v", seed, i+1, row, found, err)
						}
					}
				})
			}
		}
		work.Go(func() {
			for i := 0; i < n; i += 100 {
				err := db.Write(ctx, func(tx *store.Tx) error {
					_, err := tx.InsertTrades(trades[i : i+100])
					return err
				})
				if err != nil {
					t.Errorf("book again: %v", err)
				}
			}
		})
		work.Wait()
		mustSweep(t, processes[0], 0) // no row was skipped for good
		expectOneTransitionEach(t, db, n)
		a, b := processes[0].Metrics(), processes[1].Metrics()
		if sum := a.Swept + a.Forced + b.Swept + b.Forced; sum != uint64(n) ||
			a.Failures+b.Failures != 0 {
			t.Errorf("seed %d: counted %+v and %+v: %d together, want %d", seed, a, b, sum, n)
		}
		t.Logf("%d trades: swept %d and %d, forced %d and %d", n, a.Swept, b.Swept, a.Forced, b.Forced)
	})
}

// A row that another transaction holds does not delay the sweep.
func TestSweepPassesOverHeldRows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.Dialect() != store.Postgres {
			return // one writer: no other session can hold a row
		}
		for seq := range uint64(20) {
			insert(t, db, aTrade(seq+1, mustDate(t, "2026-03-06")))
		}
		s := newTest(t, db, newClock(noon("2026-03-06")), 4)
		holds, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- db.Write(bounded(t), func(tx *store.Tx) error {
				_, err := tx.Exec("update trades set quantity = quantity + 1 where trade_seq in (1, 2, 7)")
				close(holds)
				<-release
				return err
			})
		}()
		<-holds
		mustSweep(t, s, 17)
		close(release)
		must.OK(t, <-done)
		mustSweep(t, s, 3)
	})
}

// A force that waits for a row which another transaction deletes and inserts again, as a repair
// does, settles the new row.
func TestForceOfARowThatIsReplacedMeanwhile(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.Dialect() != store.Postgres {
			return // one writer: no other session can hold a row
		}
		trade := aTrade(1, mustDate(t, "2026-03-06"))
		insert(t, db, trade)
		other := must.Get(db.Twin())(t)
		defer func() { must.OK(t, other.Close()) }()
		s := newTest(t, db, newClock(noon("2026-03-05")), 0)
		done := make(chan error, 1)
		must.OK(t, other.Write(bounded(t), func(tx *store.Tx) error {
			if _, err := tx.Exec("delete from trades where id = $1", trade.ID); err != nil {
				return err
			}
			if _, err := tx.InsertTrades([]store.Trade{trade}); err != nil {
				return err
			}
			go func() {
				row, found, err := s.Force(bounded(t), trade.ID)
				if err == nil && (!found || row.Status != store.Settled) {
					err = fmt.Errorf("found %v: %+v", found, row)
				}
				done <- err
			}()
			waittest.Until(t, "the force waits", func() (waits bool, seen any) {
				return storetest.Awaited(tx)
			})
			return nil
		}))
		if err := <-done; err != nil || rows(t, db)[1].Status != store.Settled {
			t.Errorf("force: %v, then %+v", err, rows(t, db)[1])
		}
		if s.Metrics().Forced != 1 {
			t.Errorf("counted %d, want 1", s.Metrics().Forced)
		}
		var forced uint64
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) (err error) {
			forced, err = tx.LastForce()
			return err
		}))
		if forced != 1 {
			t.Errorf("noted for trade %d, want 1", forced)
		}
	})
}

// Schedules: the clock is stepped by anything between a millisecond and weeks, in either direction,
// while trades arrive. Each trade is settled by the first sweep at which the clock shows its date,
// and by no earlier or later one.
func TestClockStepsNeverSettleEarlyOrTwice(t *testing.T) {
	schedules := size(10_000, 250)
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		const seed = 365
		random := rand.New(rand.NewPCG(seed, uint64(schedules)))
		witness(t, db)
		where := newYork(t)
		c := newClock(noon("2026-03-06"))
		s := newTest(t, db, c, 3)
		model := map[uint64]store.Trade{}
		settled, next := 0, uint64(1)
		for schedule := range schedules {
			var fresh []store.Trade
			for range random.IntN(4) {
				day := store.DateOf(c.Now().In(where).Date()) + store.Date(random.IntN(8)-3)
				trade := aTrade(next, day)
				trade.UpdatedAt = c.Now().UnixMilli() + random.Int64N(2000) - 1000
				fresh, next = append(fresh, trade), next+1
				model[trade.Seq] = trade
			}
			if len(fresh) > 0 {
				insert(t, db, fresh...)
			}
			for range 1 + random.IntN(2) {
				c.step(stepOf(random))
				today := store.DateOf(c.Now().In(where).Date())
				due := 0
				for seq, trade := range model {
					if trade.Status == store.Processing && trade.SettlementDate <= today {
						trade.Status = store.Settled
						trade.UpdatedAt = max(trade.UpdatedAt, c.Now().UnixMilli())
						model[seq] = trade
						due++
					}
				}
				if got, err := s.Sweep(bounded(t)); err != nil || got != due {
					t.Fatalf("seed %d schedule %d at %s: settled %d, %v; want %d", seed, schedule, c.Now(),
						got, err, due)
				}
				settled += due
			}
			if schedule%100 == 99 || schedule == schedules-1 {
				compareAndForget(t, db, model)
			}
		}
		if s.Metrics().Swept != uint64(settled) {
			t.Errorf("seed %d: counted %d, want %d", seed, s.Metrics().Swept, settled)
		}
		c.step(60 * 24 * time.Hour)
		left := must.Get(s.Sweep(bounded(t)))(t)
		expectOneTransitionEach(t, db, settled+left)
		t.Logf("%d schedules, %d trades", schedules, settled+left)
	})
}

// compareAndForget compares the whole table with the model. Then it removes the settled trades of
// the past hundred schedules from the model alone: the witness checks what happens to them.
func compareAndForget(t *testing.T, db *store.DB, model map[uint64]store.Trade) {
	t.Helper()
	lowest := uint64(1 << 62)
	for seq := range model {
		lowest = min(lowest, seq)
	}
	seen := 0
	err := db.Read(bounded(t), func(tx *store.Tx) error {
		return tx.TradesBySeq(lowest, 1<<62, func(row *store.Trade) error {
			want, known := model[row.Seq]
			if known {
				expectRow(t, *row, want)
				seen++
			}
			return nil
		})
	})
	if err != nil || seen != len(model) {
		t.Fatalf("%d rows of %d, %v", seen, len(model), err)
	}
	for seq, trade := range model {
		if trade.Status == store.Settled {
			delete(model, seq)
		}
	}
}

// stepOf draws a step of a clock: mostly forwards.
func stepOf(random *rand.Rand) time.Duration {
	size := []time.Duration{time.Millisecond, time.Minute, time.Hour, 24 * time.Hour,
		9 * 24 * time.Hour}[random.IntN(5)]
	step := time.Duration(random.Int64N(int64(size))) + 1
	if random.IntN(5) < 2 {
		return -step
	}
	return step
}
