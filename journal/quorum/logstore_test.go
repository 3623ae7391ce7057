package quorum

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"posttrade/journal"
	"posttrade/ring/must"
)

// openLog opens a log and fails the test at the log's first failure.
func openLog(t testing.TB, fs vfs.FS) *logStore {
	t.Helper()
	s, err := openLogStore("raft", logStoreOptions{FS: fs, Fatal: func(err error) { t.Error(err) }})
	must.OK(t, err)
	return s
}

// logEntry is the entry that every test stores at an index.
func logEntry(index, term uint64) *raft.Log {
	return &raft.Log{
		Index: index, Term: term, Data: fmt.Appendf(nil, "entry %d of term %d", index, term),
		AppendedAt: time.Unix(0, int64(index)),
	}
}

func logEntries(lo, hi, term uint64) []*raft.Log {
	var logs []*raft.Log
	for i := lo; i <= hi; i++ {
		logs = append(logs, logEntry(i, term))
	}
	return logs
}

// expectLog compares the whole log, entry by entry, with those of lo..hi.
func expectLog(t *testing.T, s *logStore, lo, hi uint64, term func(uint64) uint64) {
	t.Helper()
	first := must.Get(s.FirstIndex())(t)
	last := must.Get(s.LastIndex())(t)
	if first != lo || last != hi {
		t.Fatalf("log is %d..%d, want %d..%d", first, last, lo, hi)
	}
	for i := lo; i <= hi && i > 0; i++ {
		var got raft.Log
		must.OK(t, s.GetLog(i, &got))
		if diff := cmp.Diff(*logEntry(i, term(i)), got); diff != "" {
			t.Fatal(diff)
		}
	}
	for _, i := range []uint64{0, lo - 1, hi + 1, 1 << 63} {
		if i < lo || i > hi {
			must.Be(t, s.GetLog(i, new(raft.Log)), raft.ErrLogNotFound)
		}
	}
}

func term(n uint64) func(uint64) uint64 { return func(uint64) uint64 { return n } }

// TestLogIsWhatTheLibraryExpects makes the library's calls, and after each step compares the whole
// log, as it is and opened anew.
func TestLogIsWhatTheLibraryExpects(t *testing.T) {
	type step struct {
		name           string
		storeLo        uint64
		storeHi        uint64
		deleteLo       uint64
		deleteHi       uint64
		wantLo, wantHi uint64
	}
	steps := []step{
		{name: "empty"},
		{name: "nothing is deleted from nothing", deleteLo: 1, deleteHi: 9},
		{name: "first entry", storeLo: 1, storeHi: 1, wantLo: 1, wantHi: 1},
		{name: "a batch", storeLo: 2, storeHi: 50, wantLo: 1, wantHi: 50},
		{name: "compaction", deleteLo: 1, deleteHi: 20, wantLo: 21, wantHi: 50},
		{name: "compaction from before the start", deleteLo: 5, deleteHi: 25, wantLo: 26, wantHi: 50},
		{name: "compaction of what is gone", deleteLo: 1, deleteHi: 25, wantLo: 26, wantHi: 50},
		{name: "another leader's entries", deleteLo: 41, deleteHi: 50, wantLo: 26, wantHi: 40},
		{name: "deletion beyond the end", deleteLo: 39, deleteHi: 99, wantLo: 26, wantHi: 38},
		{name: "goes on", storeLo: 39, storeHi: 45, wantLo: 26, wantHi: 45},
		{name: "behind an installed snapshot", storeLo: 101, storeHi: 103, wantLo: 101, wantHi: 103},
		{name: "all", deleteLo: 101, deleteHi: 103},
		{name: "starts behind a snapshot", storeLo: 501, storeHi: 501, wantLo: 501, wantHi: 501},
		{name: "an inverted range is empty", deleteLo: 501, deleteHi: 500, wantLo: 501, wantHi: 501},
		{name: "exactly all by compaction", deleteLo: 1, deleteHi: 501},
		{name: "a lower start, after all was deleted", storeLo: 3, storeHi: 4, wantLo: 3, wantHi: 4},
	}
	for _, cached := range []bool{true, false} {
		fs := vfs.NewMem()
		s := openLog(t, fs)
		for _, tt := range steps {
			t.Run(fmt.Sprintf("%s cached %v", tt.name, cached), func(t *testing.T) {
				if tt.storeLo > 0 {
					must.OK(t, s.StoreLogs(logEntries(tt.storeLo, tt.storeHi, 1)))
				}
				if tt.deleteHi > 0 {
					must.OK(t, s.DeleteRange(tt.deleteLo, tt.deleteHi))
				}
				if !cached {
					s.tail = newLogTail(1, 1)
				}
				expectLog(t, s, tt.wantLo, tt.wantHi, term(1))
				must.OK(t, s.Close())
				s = openLog(t, fs)
				expectLog(t, s, tt.wantLo, tt.wantHi, term(1))
			})
		}
		must.OK(t, s.Close())
	}
}

func TestReplacedEntriesAreTheNewOnes(t *testing.T) {
	fs := vfs.NewMem()
	s := openLog(t, fs)
	must.OK(t, s.StoreLogs(logEntries(1, 10, 1)))
	must.OK(t, s.DeleteRange(6, 10))
	must.OK(t, s.StoreLogs(logEntries(6, 8, 2)))
	want := func(i uint64) uint64 { return 1 + i/6 }
	expectLog(t, s, 1, 8, want)
	must.OK(t, s.Close())
	s = openLog(t, fs)
	expectLog(t, s, 1, 8, want)
	must.OK(t, s.Close())
}

func TestDisorderIsRefusedAndChangesNothing(t *testing.T) {
	s := openLog(t, vfs.NewMem())
	must.OK(t, s.StoreLogs(nil))
	must.OK(t, s.StoreLogs(logEntries(1, 5, 1)))
	for name, logs := range map[string][]*raft.Log{
		"an entry again":    {logEntry(5, 1)},
		"index zero":        {logEntry(0, 1)},
		"a hole":            {logEntry(6, 1), logEntry(8, 1)},
		"twice in a batch":  {logEntry(6, 1), logEntry(6, 1)},
		"backwards":         {logEntry(7, 1), logEntry(6, 1)},
		"hole behind a gap": {logEntry(10, 1), logEntry(12, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			must.Be(t, s.StoreLogs(logs), ErrLogOrder)
			expectLog(t, s, 1, 5, term(1))
		})
	}
	must.Be(t, s.DeleteRange(2, 4), ErrLogMiddle)
	expectLog(t, s, 1, 5, term(1))
	must.OK(t, s.StoreLog(logEntry(6, 1)))
	expectLog(t, s, 1, 6, term(1))
	if !s.IsMonotonic() {
		t.Error("not monotonic")
	}
	must.OK(t, s.Close())
}

func TestStableValues(t *testing.T) {
	fs := vfs.NewMem()
	s := openLog(t, fs)
	_, err := s.Get([]byte("absent"))
	if err == nil || err.Error() != "not found" {
		t.Errorf("absent key: %v, want the text that the library knows", err)
	}
	_, err = s.GetUint64([]byte("absent"))
	if err == nil || err.Error() != "not found" {
		t.Errorf("absent number: %v, want the text that the library knows", err)
	}
	must.OK(t, s.Set([]byte("name"), []byte("first")))
	must.OK(t, s.Set([]byte("name"), []byte("second")))
	must.OK(t, s.Set([]byte("empty"), nil))
	must.OK(t, s.SetUint64([]byte("number"), 1<<63+5))
	for range 2 {
		if v, err := s.Get([]byte("name")); err != nil || string(v) != "second" {
			t.Errorf("name: %q, %v", v, err)
		}
		if v, err := s.Get([]byte("empty")); err != nil || len(v) != 0 {
			t.Errorf("empty: %q, %v", v, err)
		}
		if n, err := s.GetUint64([]byte("number")); err != nil || n != 1<<63+5 {
			t.Errorf("number: %d, %v", n, err)
		}
		_, err := s.GetUint64([]byte("name"))
		must.Be(t, err, ErrLogDamaged)
		expectLog(t, s, 0, 0, term(1)) // values are no entries
		must.OK(t, s.Close())
		s = openLog(t, fs)
	}
	must.OK(t, s.Close())
}

func TestClosedLogAnswersNothing(t *testing.T) {
	s := openLog(t, vfs.NewMem())
	must.OK(t, s.StoreLog(logEntry(1, 1)))
	must.OK(t, s.Close())
	for name, err := range logCalls(s) {
		t.Run(name, func(t *testing.T) { must.Be(t, err, ErrLogClosed) })
	}
	must.Be(t, s.Close(), ErrLogClosed)
}

// logCalls makes every call once and returns the errors.
func logCalls(s *logStore) map[string]error {
	errs := map[string]error{
		"GetLog":      s.GetLog(1, new(raft.Log)),
		"StoreLog":    s.StoreLog(logEntry(1<<40, 1)),
		"StoreLogs":   s.StoreLogs(nil),
		"DeleteRange": s.DeleteRange(1, 1),
		"Set":         s.Set([]byte("k"), nil),
		"SetUint64":   s.SetUint64([]byte("k"), 1),
	}
	_, errs["FirstIndex"] = s.FirstIndex()
	_, errs["LastIndex"] = s.LastIndex()
	_, errs["Get"] = s.Get([]byte("k"))
	_, errs["GetUint64"] = s.GetUint64([]byte("k"))
	return errs
}

// damagedLog makes a log of ten entries and calls damage to change its store.
func damagedLog(t *testing.T, fs vfs.FS, damage func(db *pebble.DB) error) {
	t.Helper()
	s := openLog(t, fs)
	must.OK(t, s.StoreLogs(logEntries(1, 10, 3)))
	must.OK(t, damage(s.db))
	must.OK(t, s.Close())
}

func logKey(index uint64) []byte { return putLogKey(make([]byte, logKeyBytes), index) }

func TestDamagedLogIsRefusedByIndex(t *testing.T) {
	flipped := func(index uint64) []byte {
		v := logBytes(logEntry(index, 3))
		v[len(v)-1] ^= 0x10
		return v
	}
	for _, tt := range []struct {
		name   string
		damage func(db *pebble.DB) error
		want   error
		names  string
	}{
		{"a flipped bit", func(db *pebble.DB) error { return db.Set(logKey(4), flipped(4), pebble.Sync) },
			ErrLogDamaged, "index=4:"},
		{"an entry in another's place", func(db *pebble.DB) error {
			return db.Set(logKey(4), logBytes(logEntry(5, 3)), pebble.Sync)
		}, ErrLogDamaged, "index=4:"},
		{"a hole", func(db *pebble.DB) error { return db.Delete(logKey(7), pebble.Sync) }, ErrLogDamaged,
			"after index=6:"},
		{"a foreign key", func(db *pebble.DB) error { return db.Set([]byte("e!"), nil, pebble.Sync) },
			ErrLogDamaged, "after index=10:"},
		{"an entry of index zero", func(db *pebble.DB) error {
			return db.Set(logKey(0), logBytes(logEntry(0, 3)), pebble.Sync)
		}, ErrLogDamaged, "after index=0:"},
		{"a lost end", func(db *pebble.DB) error { return db.Delete(logKey(10), pebble.Sync) },
			ErrLogShortened, "index=9, anchor has 10"},
		{"everything lost", func(db *pebble.DB) error {
			return db.DeleteRange(logKey(0), logKey(99), pebble.Sync)
		}, ErrLogShortened, "index=0, anchor has 10"},
		{"an end of another history", func(db *pebble.DB) error {
			return db.Set(logKey(10), logBytes(logEntry(10, 2)), pebble.Sync)
		}, ErrLogDamaged, "index=10: term 2, anchor has 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			damagedLog(t, fs, tt.damage)
			for range 2 { // refused once, refused again
				_, err := openLogStore("raft", logStoreOptions{FS: fs, Fatal: func(error) {}})
				must.Be(t, err, tt.want)
				if !strings.Contains(err.Error(), tt.names) {
					t.Errorf("%v does not say %q", err, tt.names)
				}
			}
		})
	}
}

// TestADamagedTableIsTheLogs: the store that keeps the log is one of the journal's kind, whose own
// error would name the journal.
func TestADamagedTableIsTheLogs(t *testing.T) {
	fs := vfs.NewMem()
	damagedLog(t, fs, (*pebble.DB).Flush)
	flipped := false
	for _, name := range must.Get(fs.List("raft/" + logStoreDir))(t) {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		flipped = true
		path := "raft/" + logStoreDir + "/" + name
		f := must.Get(fs.Open(path))(t)
		b := must.Get(io.ReadAll(f))(t)
		must.OK(t, f.Close())
		b[10] ^= 0x10
		f = must.Get(fs.Create(path, vfs.WriteCategoryUnspecified))(t)
		must.Get(f.Write(b))(t)
		must.OK(t, f.Close())
	}
	if !flipped {
		t.Fatal("there is no table")
	}
	_, err := openLogStore("raft", logStoreOptions{FS: fs, Fatal: func(error) {}})
	must.Be(t, err, ErrLogDamaged)
}

func TestLogWithoutItsAnchorIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(fs vfs.FS) error
		want   error
	}{
		{"missing", func(fs vfs.FS) error { return fs.Remove("raft/anchor") }, journal.ErrAnchorMissing},
		{"damaged", func(fs vfs.FS) error {
			f, err := fs.Create("raft/anchor", vfs.WriteCategoryUnspecified)
			if err == nil {
				err = f.Close()
			}
			return err
		}, journal.ErrAnchorDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			damagedLog(t, fs, func(*pebble.DB) error { return nil })
			must.OK(t, tt.damage(fs))
			_, err := openLogStore("raft", logStoreOptions{FS: fs, Fatal: func(error) {}})
			must.Be(t, err, tt.want)
		})
	}
}

// TestDamageMetWhileReadingEndsTheMember reads an entry that has become damaged in the store: the
// member must not continue and answer from the rest.
func TestDamageMetWhileReadingEndsTheMember(t *testing.T) {
	for name, damage := range map[string]func(db *pebble.DB) error{
		"flipped": func(db *pebble.DB) error {
			v := logBytes(logEntry(4, 3))
			v[20] ^= 1
			return db.Set(logKey(4), v, pebble.Sync)
		},
		"missing": func(db *pebble.DB) error { return db.Delete(logKey(4), pebble.Sync) },
	} {
		t.Run(name, func(t *testing.T) {
			var fatal []error
			s, err := openLogStore("raft", logStoreOptions{FS: vfs.NewMem(),
				Fatal: func(err error) { fatal = append(fatal, err) }})
			must.OK(t, err)
			must.OK(t, s.StoreLogs(logEntries(1, 10, 3)))
			must.OK(t, damage(s.db))
			s.tail = newLogTail(1, 1)
			must.OK(t, s.GetLog(3, new(raft.Log)))
			err = s.GetLog(4, new(raft.Log))
			must.Be(t, err, ErrLogDamaged)
			if !strings.Contains(err.Error(), "index=4") || len(fatal) != 1 {
				t.Errorf("%v, fatal %v", err, fatal)
			}
			for name, err := range logCalls(s) {
				t.Run(name, func(t *testing.T) { must.Be(t, err, journal.ErrPoisoned) })
			}
			must.Be(t, s.Close(), journal.ErrPoisoned)
		})
	}
}

func TestStoreLogsDoesNotAllocatePerEntry(t *testing.T) {
	s := openLog(t, vfs.NewMem())
	next := uint64(1)
	run := func(n uint64) float64 {
		batches := make([][]*raft.Log, 0, 51)
		for range cap(batches) {
			batches = append(batches, logEntries(next, next+n-1, 1))
			next += n
		}
		i := -1
		return testing.AllocsPerRun(len(batches)-1, func() {
			i++
			must.OK(t, s.StoreLogs(batches[i]))
		})
	}
	run(64) // buffers grow
	one, many := run(1), run(65)
	perEntry := (many - one) / 64
	t.Logf("%.1f allocations a call, %.2f an entry", one, perEntry)
	if one > 40 || perEntry > 0.5 {
		t.Errorf("%.1f allocations a call and %.2f an entry, want 40 and none", one, perEntry)
	}
	must.OK(t, s.Close())
}

// TestTheTermOfTheLastEntry: of an empty log, of one that only a snapshot stands for, and of
// entries behind it.
func TestTheTermOfTheLastEntry(t *testing.T) {
	s := openLog(t, vfs.NewMem())
	want := func(term uint64) {
		t.Helper()
		if got := s.endTerm(); got != term {
			t.Errorf("term %d, want %d", got, term)
		}
	}
	want(0)
	s.Base(10, 3)
	want(3)
	must.OK(t, s.StoreLog(&raft.Log{Index: 11, Term: 5}))
	want(5)
	must.OK(t, s.Close())
}
