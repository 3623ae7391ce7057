package source_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
	"posttrade/sidecars/securities"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service holds the operations of both services, with a number as the key.
type service struct {
	source   control.Source
	upsert   func(ctx context.Context, key int, name string, enabled bool) (version uint64, err error)
	snapshot func(ctx context.Context) (control.Snapshot, error)
	seed     func(ctx context.Context, n int) (int, error)
	bump     func(ctx context.Context, last store.OutboxRow,
		record func(tx *store.Tx, was, is uint64) error) (uint64, error)
}

func ticker(key int) string { return fmt.Sprintf("T%d.X", key) }

// serviceOf returns one of the services on a database.
func serviceOf(s control.Source, o source.Options) service {
	if s == control.Account {
		a := accounts.New(o)
		return service{
			source: s, snapshot: a.Snapshot, bump: a.BumpEpoch,
			upsert: func(ctx context.Context, key int, name string, enabled bool) (uint64, error) {
				return a.Upsert(ctx, accounts.Account{ID: uint32(key), DisplayName: name, Enabled: enabled})
			},
			seed: func(ctx context.Context, n int) (int, error) {
				rows := make([]accounts.Account, n)
				for i := range rows {
					rows[i] = accounts.Account{ID: uint32(i + 1),
						DisplayName: fmt.Sprint("seed ", i), Enabled: i%3 > 0}
				}
				return a.Seed(ctx, rows)
			},
		}
	}
	x := securities.New(o)
	return service{
		source: s, snapshot: x.Snapshot, bump: x.BumpEpoch,
		upsert: func(ctx context.Context, key int, name string, enabled bool) (uint64, error) {
			_, version, _, err := x.Upsert(ctx,
				securities.Stock{Ticker: ticker(key), CompanyName: name, Enabled: enabled, Halted: key%2 == 0})
			return version, err
		},
		seed: func(ctx context.Context, n int) (int, error) {
			rows := make([]securities.Stock, n)
			for i := range rows {
				rows[i] = securities.Stock{Ticker: ticker(i + 1), CompanyName: fmt.Sprint("seed ", i),
					Enabled: true, Halted: i%3 == 0}
			}
			return x.Seed(ctx, rows)
		},
	}
}

// pause makes some commits slow.
func pause(random *rand.Rand) {
	if random.IntN(8) == 0 {
		<-time.After(time.Duration(random.IntN(1500)) * time.Microsecond)
	}
}

// names are names that are hard to write in canonical form.
var names = []string{"Plain", "Ünïcødé ☃ 😀", `quote " and \ slash /`,
	"<a href='x'>&</a>", "DEL\x7f", "D'Arcy & Sons"}

// write is one of several writers: n upserts of random records, some in slow transactions, some of
// which are rolled back. It returns the committed versions; changed is called for each.
func write(t *testing.T, db *store.DB, s control.Source, changed func(), random *rand.Rand,
	keys, n int) (committed map[uint64]string) {
	committed = map[uint64]string{}
	var cancel context.CancelFunc
	roll := false
	// Now runs inside of the transaction.
	one := serviceOf(s, source.Options{DB: db, Changed: changed, Now: func() time.Time {
		pause(random)
		if roll {
			cancel()
		}
		return time.Now()
	}})
	for i := range n {
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		roll = random.IntN(6) == 0
		name := fmt.Sprintf("%s %d", names[random.IntN(len(names))], i)
		version, err := one.upsert(ctx, 1+random.IntN(keys), name, random.IntN(2) == 0)
		cancel()
		switch {
		case err == nil && !roll:
			committed[version] = name
		case err == nil:
			t.Errorf("version %d was committed by a transaction whose context had ended", version)
		case !roll:
			t.Errorf("upsert: %v", err)
		}
	}
	return committed
}

// writers runs 16 writers and returns all versions.
func writers(t *testing.T, db *store.DB, s control.Source, changed func(), seed uint64,
	keys, each int) map[uint64]string {
	all := map[uint64]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range uint64(16) {
		wg.Go(func() {
			committed := write(t, db, s, changed, rand.New(rand.NewPCG(seed, w)), keys, each)
			mu.Lock()
			defer mu.Unlock()
			for version := range committed {
				if _, twice := all[version]; twice {
					t.Errorf("version %d was given twice", version)
				}
			}
			maps.Copy(all, committed)
		})
	}
	wg.Wait()
	return all
}

// rows reads a source's outbox.
func rows(t *testing.T, db *store.DB, s control.Source) (all []store.OutboxRow) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *store.Tx) error {
		all = nil
		return tx.OutboxFrom(string(s), 1, 1<<30, func(row store.OutboxRow) error {
			all = append(all, row)
			return nil
		})
	})
	must.OK(t, err)
	return all
}

// delta reads the payload of a row, which must be of the row's version and epoch.
func delta(t *testing.T, s control.Source, row *store.OutboxRow) control.Delta {
	t.Helper()
	d := must.Get(control.ParseDelta(s, row.Payload))(t)
	if d.Version != row.Version || d.Epoch != row.Epoch {
		t.Fatalf("row %d of epoch %d says %s", row.Version, row.Epoch, row.Payload)
	}
	return d
}

// checksum computes the checksum that a snapshot's JSON should have, with the maps and escapes of
// the standard library. Those are the RFC's for the names above.
func checksum(t *testing.T, text []byte) (given, want string) {
	t.Helper()
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	var m map[string]any
	must.OK(t, reader.Decode(&m))
	given, _ = m["checksum"].(string)
	delete(m, "checksum")
	delete(m, "count")
	var canonical bytes.Buffer
	writer := json.NewEncoder(&canonical)
	writer.SetEscapeHTML(false)
	must.OK(t, writer.Encode(m))
	sum := sha256.Sum256(bytes.TrimSuffix(canonical.Bytes(), []byte("\n")))
	return given, "sha256:" + hex.EncodeToString(sum[:])
}
