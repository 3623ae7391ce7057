package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

const sourceNow = 1_790_000_000_000

// commit writes n changes of a source, one transaction each.
func commit(t *testing.T, db *store.DB, source string, n int) {
	t.Helper()
	for range n {
		inTx(t, db, func(tx *store.Tx) error {
			_, err := change(tx, source, func(epoch, version uint64) []byte {
				return fmt.Appendf(nil, "%d/%d", epoch, version)
			})
			return err
		})
	}
}

// change takes a version and adds the outbox row that payload renders for it.
func change(tx *store.Tx, source string,
	payload func(epoch, version uint64) []byte) (version uint64, err error) {
	epoch, version, err := tx.NextVersion(source, sourceNow)
	if err != nil {
		return 0, err
	}
	return version, tx.AddOutbox(source, epoch, version, payload(epoch, version), sourceNow)
}

func inTx(t *testing.T, db *store.DB, fn func(*store.Tx) error) {
	t.Helper()
	must.OK(t, db.Write(t.Context(), fn))
}

// outboxText renders a source's outbox: version@sequence, v- superseded, v? waiting.
func outboxText(t *testing.T, db *store.DB, source string) string {
	t.Helper()
	var words []string
	inTx(t, db, func(tx *store.Tx) error {
		words = nil
		return tx.OutboxFrom(source, 0, 1000, func(r store.OutboxRow) error {
			switch {
			case r.Published && r.StreamSequence == 0:
				words = append(words, fmt.Sprintf("%d-", r.Version))
			case r.Published:
				words = append(words, fmt.Sprintf("%d@%d", r.Version, r.StreamSequence))
			default:
				words = append(words, fmt.Sprintf("%d?", r.Version))
			}
			return nil
		})
	})
	return strings.Join(words, " ")
}

func TestSourcesCountApart(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		inTx(t, db, func(tx *store.Tx) error {
			if _, _, found, err := tx.Source("account"); found || err != nil {
				t.Errorf("found %v, %v", found, err)
			}
			return nil
		})
		commit(t, db, "account", 3)
		inTx(t, db, func(tx *store.Tx) error {
			if err := tx.DrawEpoch("security", sourceNow+5); err != nil {
				return err
			}
			return tx.DrawEpoch("security", sourceNow+9) // a second draw changes nothing
		})
		inTx(t, db, func(tx *store.Tx) error {
			epoch, version, err := tx.LockSource("security", sourceNow+9)
			if epoch != sourceNow+5 || version != 0 || err != nil {
				t.Errorf("epoch %d, version %d, %v", epoch, version, err)
			}
			return err
		})
		commit(t, db, "security", 2)
		for source, want := range map[string]string{"account": "1? 2? 3?", "security": "1? 2?"} {
			if got := outboxText(t, db, source); got != want {
				t.Errorf("%s: %s, want %s", source, got, want)
			}
		}
	})
}

// A roll-back returns its version, and the writer that waits behind it gets that version.
func TestRolledBackVersionsAreGivenAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		no := errors.New("no")
		var wg sync.WaitGroup
		var mu sync.Mutex
		var given []uint64
		for w := range 8 {
			wg.Go(func() {
				for i := range 25 {
					var version uint64
					err := db.Write(t.Context(), func(tx *store.Tx) (err error) {
						version, err = change(tx, "account", func(_, v uint64) []byte { return fmt.Append(nil, v) })
						if err == nil && (w+i)%3 == 0 {
							err = no
						}
						return err
					})
					if err == nil {
						mu.Lock()
						given = append(given, version)
						mu.Unlock()
					} else if !errors.Is(err, no) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		slices.Sort(given)
		for i, version := range given {
			if version != uint64(i+1) {
				t.Fatalf("version %d at place %d", version, i+1)
			}
		}
		inTx(t, db, func(tx *store.Tx) error {
			_, version, _, err := tx.Source("account")
			if version != uint64(len(given)) {
				t.Errorf("the counter is at %d after %d commits", version, len(given))
			}
			return err
		})
	})
}

func TestEpochsOnlyRise(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		commit(t, db, "account", 2)
		for _, step := range []struct {
			above uint64
			now   int64
			want  uint64
		}{
			{0, sourceNow + 100, sourceNow + 100},
			{0, sourceNow + 100, sourceNow + 101}, // within a millisecond
			{0, 1, sourceNow + 102},               // the clock has gone back
			{sourceNow + 900, sourceNow + 200, sourceNow + 901},
			{0, -1, sourceNow + 902},
		} {
			inTx(t, db, func(tx *store.Tx) error {
				epoch, err := tx.BumpEpoch("account", step.above, step.now)
				if epoch != step.want {
					t.Errorf("above %d at %d: epoch %d, want %d", step.above, step.now, epoch, step.want)
				}
				return err
			})
		}
		inTx(t, db, func(tx *store.Tx) error {
			if epoch, version, err := tx.NextVersion("account", sourceNow); epoch != sourceNow+902 ||
				version != 3 || err != nil {
				t.Errorf("epoch %d, version %d, %v", epoch, version, err)
			}
			if err := tx.RaiseVersion("account", 2); err != nil { // the counter is above that already
				return err
			}
			if err := tx.RaiseVersion("account", 40); err != nil {
				return err
			}
			if _, version, err := tx.NextVersion("account", sourceNow); version != 41 || err != nil {
				t.Errorf("version %d after 40, %v", version, err)
			}
			for _, n := range []int{0, 5} { // 0 leaves the counter as it is
				if _, first, err := tx.NextVersions("account", n, sourceNow); first != 42 || err != nil {
					t.Errorf("%d versions from %d, %v", n, first, err)
				}
			}
			_, version, _, err := tx.Source("account")
			if version != 46 {
				t.Errorf("the counter is at %d", version)
			}
			return err
		})
	})
}

func TestMarksOfTheOutbox(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const s = "security"
		commit(t, db, "account", 9) // which no step below may change
		commit(t, db, s, 6)
		steps := []struct {
			name string
			do   func(tx *store.Tx) error
			want string
			rows uint64 // that are waiting
			last uint64 // with a sequence
		}{
			{"nothing", func(*store.Tx) error { return nil }, "1? 2? 3? 4? 5? 6?", 6, 0},
			{"one", func(tx *store.Tx) error {
				return tx.MarkPublished(s, 1, 1, 5, 1)
			}, "1@5 2? 3? 4? 5? 6?", 5, 1},
			{"a run", func(tx *store.Tx) error {
				return tx.MarkPublished(s, 2, 4, 7, 1)
			}, "1@5 2@7 3@8 4@9 5? 6?", 2, 4},
			{"a lost tail", func(tx *store.Tx) error {
				n, err := tx.MarkLost(s, 3, sourceNow)
				if n != 2 {
					t.Errorf("%d rows wait again", n)
				}
				return err
			}, "1@5 2@7 3? 4? 5? 6?", 4, 2},
			{"superseded", func(tx *store.Tx) error {
				n, err := tx.Supersede(s, 4, 5, 1)
				if n != 2 {
					t.Errorf("%d rows", n)
				}
				return err
			}, "1@5 2@7 3? 4- 5- 6?", 4, 2},
			{"older epoch lost", func(tx *store.Tx) error {
				n, err := tx.MarkLost(s, 1, sourceNow+1)
				if n != 0 {
					t.Errorf("%d rows of an older epoch wait again", n)
				}
				return err
			}, "1- 2- 3? 4- 5- 6?", 4, 0},
			{"the stream's word on a row", func(tx *store.Tx) error {
				return tx.PutStreamRow(s,
					store.OutboxRow{Version: 6, Epoch: 77, Payload: []byte("theirs"), StreamSequence: 60}, 1)
			}, "1- 2- 3? 4- 5- 6@60", 4, 0},
			{"the stream's word on no row", func(tx *store.Tx) error {
				if _, err := tx.Supersede(s, 1, 6, 1); err != nil {
					return err
				}
				return tx.PutStreamRow(s,
					store.OutboxRow{Version: 9, Epoch: 77, Payload: []byte("theirs"), StreamSequence: 90}, 1)
			}, "1- 2- 3- 4- 5- 6@60 9@90", 0, 9},
		}
		for _, step := range steps {
			inTx(t, db, step.do)
			if got := outboxText(t, db, s); got != step.want {
				t.Fatalf("%s: %s, want %s", step.name, got, step.want)
			}
			inTx(t, db, func(tx *store.Tx) error {
				at, err := tx.OutboxBacklog(s)
				if err != nil {
					return err
				}
				if at.Rows != step.rows || at.Version != 6 || at.Epoch != sourceNow ||
					at.Rows > 0 && at.OldestMillis != sourceNow {
					t.Errorf("%s: backlog %+v, want %d rows", step.name, at, step.rows)
				}
				last, found, err := tx.LastPublished(s)
				if last.Version != step.last || found != (step.last > 0) {
					t.Errorf("%s: last published is %+v, %v", step.name, last, found)
				}
				return err
			})
		}
		inTx(t, db, func(tx *store.Tx) error {
			before, found, err := tx.OutboxBefore(s, 9)
			if before.Version != 6 || before.Epoch != 77 || string(before.Payload) != "theirs" || !found {
				t.Errorf("before 9 is %+v, %v", before, found)
			}
			if _, found, _ := tx.OutboxBefore(s, 1); found {
				t.Error("there is a row before the first")
			}
			return err
		})
		if got := outboxText(t, db, "account"); got != "1? 2? 3? 4? 5? 6? 7? 8? 9?" {
			t.Errorf("the other source's rows: %s", got)
		}
	})
}

func TestUnpublishedRowsComeInOrder(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		commit(t, db, "account", 20)
		inTx(t, db, func(tx *store.Tx) error { return tx.MarkPublished("account", 1, 3, 1, 1) })
		inTx(t, db, func(tx *store.Tx) error {
			var got []uint64
			err := tx.Unpublished("account", 5, func(r store.OutboxRow) error {
				if want := fmt.Sprintf("%d/%d", r.Epoch, r.Version); string(r.Payload) != want || r.Published ||
					r.CreatedAt != sourceNow {
					t.Errorf("row %+v, want payload %s", r, want)
				}
				got = append(got, r.Version)
				return nil
			})
			if !slices.Equal(got, []uint64{4, 5, 6, 7, 8}) {
				t.Errorf("got %v", got)
			}
			return err
		})
	})
}

// A payload is stored once per version, and each source has its own versions.
func TestOutboxRefusesAVersionTwice(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		commit(t, db, "account", 1)
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			return tx.AddOutbox("account", sourceNow, 1, []byte("x"), sourceNow)
		})
		if err == nil {
			t.Error("version 1 is there twice")
		}
		for _, edit := range []string{
			"insert into accounts (id, display_name, enabled, version) values (0, 'x', true, 1)",
			"insert into accounts (id, display_name, enabled, version) values (4294967296, 'x', true, 1)",
			"insert into outbox (source, version, epoch, payload, created_at) values ('account', 0, " +
				"1, 'x', 1)",
			"update outbox set stream_sequence = 0",
			"update sources set epoch = 0",
		} {
			if err := db.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(edit)
				return err
			}); err == nil {
				t.Errorf("taken: %s", edit)
			}
		}
	})
}
