package settlement

import (
	"math/rand/v2"
	"testing"
	"time"

	"posttrade/sidecars/store"
)

// zones have every form of offset change: at midnight, a minute after it, by half an hour, by most
// of an hour, by a whole day, in the middle of Ramadan, by law in one year and by rule for ever,
// north and south.
var zones = []string{
	"UTC", "America/New_York", "Europe/London", "Europe/Berlin", "Asia/Tokyo", "Asia/Kolkata",
	"Asia/Kathmandu",
	"Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia", "Pacific/Kiritimati",
	"Pacific/Kwajalein",
	"Pacific/Chatham", "America/St_Johns", "America/Sao_Paulo", "America/Havana", "Africa/Casablanca",
	"Africa/Monrovia", "Antarctica/Troll", "Asia/Beirut", "Asia/Pyongyang", "Etc/GMT+12", "Etc/GMT-14",
}

// dateSlowly is the date of the standard library, limited to the tables.
func dateSlowly(where *time.Location, millis int64) store.Date {
	end := store.DateOf(lastYear+2, time.December, 31)
	millis = min(max(millis, 0), int64(end)*dayMillis-1)
	return store.DateOf(time.UnixMilli(millis).In(where).Date())
}

func TestLocalDatesAreThoseOfTheStandardLibrary(t *testing.T) {
	const seed = 20261121
	random := rand.New(rand.NewPCG(seed, 1))
	compared, stride, draws := 0, 1, 20_000
	if testing.Short() {
		stride, draws = 17, 1_000
	}
	for _, name := range zones {
		where := mustZone(t, name)
		c := mustCalendar(t, "weekdays", where, 0)
		check := func(millis int64) {
			if got, want := c.LocalDate(millis), dateSlowly(where, millis); got != want {
				t.Fatalf("seed %d: %s: date of %d is %s, want %s", seed, name, millis, got, want)
			}
			compared++
		}
		for _, s := range c.zone.spans[1 : len(c.zone.spans)-1] { // each change, and the day around it
			for _, by := range []int64{-dayMillis, -3600_000, -1, 0, 1, 3600_000, dayMillis} {
				check(s.fromMillis + by)
			}
		}
		// midnight in UTC and in the zone
		for day := int64(0); day < int64(len(c.zone.spanAt)); day += int64(stride) {
			check(day * dayMillis)
			local := time.UnixMilli(day * dayMillis).In(where)
			midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, where).UnixMilli()
			check(midnight)
			check(midnight - 1)
		}
		for range draws {
			check(random.Int64N(c.zone.lastMillis+2*dayMillis) - dayMillis)
		}
	}
	t.Logf("%d dates compared", compared)
}

// settlesOneByOne counts business days one by one.
func settlesOneByOne(c *Calendar, day store.Date, tPlus int) store.Date {
	for range tPlus {
		for day++; !c.businessDay(day); day++ {
		}
	}
	for !c.businessDay(day) {
		day++
	}
	return day
}

func TestSettlementDatesAreCountedOverEveryOffsetChange(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 2))
	for _, name := range names {
		for _, zoneName := range zones {
			tPlus := random.IntN(8)
			where := mustZone(t, zoneName)
			c := mustCalendar(t, name, where, tPlus)
			for range 2000 {
				at := c.zone.spans[random.IntN(len(c.zone.spans)-1)].fromMillis +
					random.Int64N(4*dayMillis) - 2*dayMillis
				at = min(at, time.Date(lastYear, 12, 31, 0, 0, 0, 0, where).UnixMilli())
				if got, want := c.SettlementDate(at), settlesOneByOne(c, dateSlowly(where, at),
					tPlus); got != want {
					t.Fatalf("seed %d: %s in %s T+%d of %d: %s, want %s", seed, name, zoneName, tPlus,
						at, got, want)
				}
			}
		}
	}
}

func FuzzSettlementDate(f *testing.F) {
	f.Add(int64(1_700_000_000_000), uint16(1), uint8(0), uint8(1))
	f.Add(int64(-1), uint16(0), uint8(1), uint8(9))
	f.Add(int64(7_258_118_400_000), uint16(365), uint8(2), uint8(20))
	f.Add(int64(1_325_203_200_000), uint16(2), uint8(3), uint8(9)) // 2011-12-30, which Samoa skipped
	f.Fuzz(func(t *testing.T, millis int64, tPlus uint16, calendar, zone uint8) {
		n := int(tPlus) % (MaxTPlus + 1)
		where := mustZone(t, zones[int(zone)%len(zones)])
		c := mustCalendar(t, names[int(calendar)%len(names)], where, n)
		day := min(dateSlowly(where, millis), store.DateOf(lastYear, time.December, 31))
		if got, want := c.SettlementDate(millis), settlesOneByOne(c, day, n); got != want {
			t.Errorf("%s in %s T+%d of %d: %s, want %s", c.Version(), where, n, millis, got, want)
		}
	})
}

func TestSettlementDateDoesNotAllocate(t *testing.T) {
	c := mustCalendar(t, "US-SETTLEMENT", newYork(t), 1)
	at, sum := int64(1_700_000_000_000), store.Date(0)
	if n := testing.AllocsPerRun(1000, func() {
		sum += c.SettlementDate(at)
		at += 7_777_777
	}); n != 0 {
		t.Errorf("SettlementDate allocates %v times, want 0", n)
	}
}

func BenchmarkCalendar(b *testing.B) {
	c := mustCalendar(b, "US-SETTLEMENT", newYork(b), 1)
	b.Run("op=settlement-date", func(b *testing.B) {
		at, sum := int64(1_700_000_000_000), store.Date(0)
		for b.Loop() {
			sum += c.SettlementDate(at)
			at += 7_777
		}
		_ = sum
	})
	b.Run("op=new", func(b *testing.B) {
		for b.Loop() {
			mustCalendar(b, "US-SETTLEMENT", time.UTC, 1)
		}
	})
}
