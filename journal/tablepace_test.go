package journal

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// A table may grow by twice the log and by paceFloor a second; one that is closed does not wait.
func TestTablesAreWrittenAtThePaceOfTheLog(t *testing.T) {
	l := newLazyFS(vfs.NewMem())
	create := func(name string) vfs.File {
		return must.Get(l.Create(name, vfs.WriteCategoryUnspecified))(t)
	}
	log := create("000001.log")
	must.Get(log.Write(make([]byte, 1<<20)))(t)
	table, ok := create("000002.sst").(*pacedFile)
	if !ok {
		t.Fatal("a table is not paced")
	}
	if _, paced := create("MANIFEST-000003").(*pacedFile); paced {
		t.Error("a manifest waits")
	}
	if !l.tables.off.Load() {
		t.Error("tables wait while the journal opens")
	}
	for _, step := range []struct {
		log, table int64
		want       time.Duration
	}{
		{0, 0, 0},
		{0, paceFloor, time.Second},
		{paceFloor / 4, 0, time.Second / 2},
		{paceFloor, 0, 0},
		{0, 2 * paceFloor, time.Second / 2},
	} {
		l.tables.logged.Add(step.log)
		table.written += step.table
		if got := table.ahead(); got != step.want {
			t.Errorf("%+v: %v", step, got)
		}
	}
	table.written = 1 << 40
	l.tables.off.Store(true)
	if _, err := table.Write([]byte("row")); err != nil { // or the test hangs
		t.Fatal(err)
	}
}

// Tables wait from the start of a journal with a tail until it closes.
func TestTablesWaitWhileAJournalIsOpen(t *testing.T) {
	j := must.Get(Open(t.TempDir(), Options{Durability: DurabilityFsync, Tail: true,
		Fatal: func(err error) { t.Error(err) }}))(t)
	must.OK(t, j.Create([]byte(`{"version":1}`)))
	if j.lazy.tables.off.Load() {
		t.Error("tables do not wait")
	}
	must.OK(t, j.Close())
	if !j.lazy.tables.off.Load() {
		t.Error("tables wait while the journal closes")
	}
}
