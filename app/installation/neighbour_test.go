package installation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/journal/evidence"
	"posttrade/ring/must"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// trade makes n matches, each of two fills.
func (i *installed) trade(n int) {
	i.t.Helper()
	for range n {
		for _, order := range []string{
			`{"accountId":1,"security":"AAPL","side":"Sell","quantity":5,"limitPrice":10}`,
			`{"accountId":2,"security":"AAPL","side":"Buy","quantity":5,"limitPrice":10}`,
		} {
			status, body := call(i.t, "POST", "http://"+i.at("order-matcher")+"/orders", order)
			if status != http.StatusCreated {
				i.t.Fatalf("order: %d %s", status, body)
			}
		}
	}
}

// copyTree copies a folder.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	must.OK(t, os.CopyFS(to, os.DirFS(from)))
}

// contents are the files below a folder, by name.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range tree(t, root) {
		if text, err := os.ReadFile(path); err == nil { // it is a file, not a folder
			all[strings.TrimPrefix(path, root+"/")] = string(text)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no files below %s", root)
	}
	return all
}

// sameContents compares two readings of a folder.
func sameContents(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	for name := range after {
		if text, ok := before[name]; !ok || text != after[name] {
			t.Errorf("%s: %s has changed, or is new", what, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Errorf("%s: %s is gone", what, name)
		}
	}
}

// agedInstallation is an installation with a folder journal that was restored from a copy:
// everything beside it has four matches, the journal two.
func agedInstallation(t *testing.T, settings ...string) (data string) {
	data = t.TempDir()
	in := install(t, data, settings...)
	in.trade(2)
	in.awaitMatched()
	in.stop()
	older := filepath.Join(t.TempDir(), "journal")
	copyTree(t, filepath.Join(data, "journal"), older)
	in = install(t, data, settings...)
	in.trade(2)
	if status, body := in.extract(); status != http.StatusAccepted {
		t.Fatalf("extract: %d %s", status, body)
	}
	apptest.Until(t, "the extract is there", func() (bool, any) {
		newest, err := riskextract.Newest(in.config.ExtractSink())
		return newest.Seq > 0, err
	})
	in.awaitMatched()
	in.stop()
	putJournal(t, data, older)
	return data
}

// extract asks for a risk extract.
func (i *installed) extract() (int, string) {
	i.t.Helper()
	r := must.Get(http.NewRequest("POST", "http://"+i.at("order-matcher")+"/risk/extract",
		strings.NewReader(`{"sessionDate":"2026-11-23"}`)))(i.t)
	r.Header.Set("Authorization", "Bearer "+i.token)
	answer := must.Get(http.DefaultClient.Do(r))(i.t)
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// putJournal puts a copy of a journal into data.dir; "" takes the journal away.
func putJournal(t *testing.T, data, from string) {
	t.Helper()
	must.OK(t, os.RemoveAll(filepath.Join(data, "journal")))
	if from != "" {
		copyTree(t, from, filepath.Join(data, "journal"))
	}
}

// TestAnOlderJournalIsRefusedByEachNeighbour leaves one neighbour at a time beside an older
// journal, and beside none. The start names the neighbour, with its numbers, and changes no file.
func TestAnOlderJournalIsRefusedByEachNeighbour(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		settings := databaseFlags(t, d)
		aged := agedInstallation(t, settings...)
		tests := []struct {
			keep, want string // what stays beside the journal, and what the refusal names
			numbers    string
		}{
			{"tca", "TCA file ", "sequence 9, the journal ends at sequence 4, trade 4"},
			{"extracts", "extracts in ", "sequence 9, the journal ends at sequence 4, trade 4"},
			{"evidence", "evidence file ", "sequence 9, the journal ends at sequence 4, trade 4"},
			{"posttrade.db", "database ", "trade 8, the journal ends at sequence 4, trade 4"},
		}
		for _, tt := range tests {
			t.Run(tt.keep, func(t *testing.T) {
				data, also := t.TempDir(), []string{"database.url", ""}
				copyTree(t, filepath.Join(aged, "journal"), filepath.Join(data, "journal"))
				from := filepath.Join(aged, tt.keep)
				switch info, err := os.Stat(from); {
				case tt.keep == "posttrade.db" && d == store.Postgres:
					also = settings
				case err != nil:
					t.Fatal(err)
				case info.IsDir():
					copyTree(t, from, filepath.Join(data, tt.keep))
				default:
					for _, end := range []string{"", "-wal", "-shm"} {
						if text, err := os.ReadFile(from + end); err == nil {
							os.WriteFile(filepath.Join(data, tt.keep+end), text, 0o600)
						}
					}
				}
				flags := append(anyPorts(data), also...)
				before := contents(t, filepath.Join(data, "journal"))
				for _, part := range []string{tt.want, tt.numbers, "--accept-older-journal"} {
					wantNoStart(t, flags, part, false)
				}
				sameContents(t, "the refused start", before, contents(t, filepath.Join(data, "journal")))
				putJournal(t, data, "")
				// A new journal beside a database that a setting names is that of another installation.
				foreign := d == store.Postgres && tt.keep == "posttrade.db"
				wantNoStart(t, flags, tt.want, foreign)
			})
		}
	})
}

// TestRemainsWithoutAJournalAreRefused: files without numbers show that there was a journal.
func TestRemainsWithoutAJournalAreRefused(t *testing.T) {
	for _, name := range []string{"broker", "stats", "quorum", "history"} {
		data := t.TempDir()
		must.OK(t, errors.Join(os.Mkdir(filepath.Join(data, name), 0o700),
			os.WriteFile(filepath.Join(data, name, "x"), nil, 0o600)))
		wantNoStart(t, anyPorts(data), name, false)
		wantNoStart(t, anyPorts(data), errOlderJournal.Error(), false)
		startServer(t, data, "accept-older-journal", "true").stop(t)
		startServer(t, data).stop(t)
	}
}

// TestAnOlderJournalIsAcceptedByHand: with the operator's flag the start goes on. Trades that only
// the database knew get other ids and are orphans. Ids that are issued again stand for the new
// trades only. The next start needs no flag.
func TestAnOlderJournalIsAcceptedByHand(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		for _, kept := range []string{"older", "none"} {
			t.Run(kept, func(t *testing.T) {
				settings := databaseFlags(t, d)
				data := agedInstallation(t, settings...)
				void := 4
				if kept == "none" {
					putJournal(t, data, "")
					void = 8
				}
				in := install(t, data, append(settings, "accept-older-journal", "true")...)
				in.trade(3)
				apptest.Until(t, "the projection goes on", func() (bool, any) {
					s, err := in.processor.ReconStatus(t.Context())
					return err == nil && s.Matched == in.tradeSeq(), s
				})
				sweep, err := in.processor.OrphanSweep(t.Context())
				if err != nil || sweep.OrphanCount != uint64(void) {
					t.Errorf("orphan sweep: %+v, %v, want %d orphans", sweep, err, void)
				}
				for _, id := range sweep.OrphanIDs {
					if !strings.HasPrefix(id, "void-") {
						t.Errorf("orphan %s", id)
					}
				}
				for _, b := range allBreaks(t, in) {
					if b.Class != "ORPHAN_IN_PROJECTION" {
						t.Errorf("break %+v", b)
					}
				}
				rows := in.rows()
				replayJournal(t, in.Core).checkRows(t, rows)
				in.stop()
				install(t, data, settings...).stop() // needs no flag any more
				in = install(t, data, settings...)
				if status, body := in.extract(); status != http.StatusAccepted {
					t.Errorf("extract: %d %s", status, body)
				}
				apptest.Until(t, "the extract of the journal as it is now is there", func() (bool, any) {
					newest, err := riskextract.Newest(in.config.ExtractSink())
					return newest.Seq == in.Core.Journal.Answered(), err
				})
				in.stop()
				install(t, data, settings...).stop()
			})
		}
	})
}

// TestANamedKeyDoesNotSignTwoHistories: the key that evidence.key names has signed the history
// that would be given up. The start is refused and changes nothing, until another key is named.
func TestANamedKeyDoesNotSignTwoHistories(t *testing.T) {
	keys := t.TempDir()
	must.Get(evidence.LoadSigner(keys, "", "own.log"))(t)
	key := filepath.Join(keys, "log.key")
	settings := []string{"evidence.origin", "own.log", "evidence.key", key}
	data := agedInstallation(t, settings...)
	accepting := append(anyPorts(data), append(settings, "accept-older-journal", "true")...)
	before := neighbourFiles(t, data)
	wantNoStart(t, accepting, "evidence.key: file="+key, false)
	wantNoStart(t, accepting, "name another key file first", false)
	wantNoStart(t, accepting, evidence.ErrKey.Error(), false)
	sameContents(t, "the refused start", before, neighbourFiles(t, data))

	must.OK(t, os.Remove(key))
	must.Get(evidence.LoadSigner(keys, "", "own.log"))(t)
	install(t, data, append(settings, "accept-older-journal", "true")...).stop()
	must.Get(os.Stat(filepath.Join(data, "evidence.given-up-1", "checkpoints")))(t)
	install(t, data, settings...).stop()
}

// TestAnotherHistoryIsRefused: a journal of another installation, shorter and longer than the one
// that was there. Each neighbour finds it, also with the flag, and no start changes a file. The
// right journal starts afterwards.
func TestAnotherHistoryIsRefused(t *testing.T) {
	for _, trades := range []int{0, 1, 5} {
		t.Run(fmt.Sprint(trades, " trades"), func(t *testing.T) {
			data := t.TempDir()
			in := install(t, data)
			in.trade(2)
			in.awaitMatched()
			in.stop()
			own := filepath.Join(t.TempDir(), "journal")
			must.OK(t, os.Rename(filepath.Join(data, "journal"), own))
			other := t.TempDir()
			in = install(t, other)
			if trades > 0 {
				in.trade(trades)
			}
			in.stop()
			copyTree(t, filepath.Join(other, "journal"), filepath.Join(data, "journal"))
			accepting := append(anyPorts(data), "accept-older-journal", "true")
			before := neighbourFiles(t, data)
			aside := t.TempDir()
			for _, tt := range [][2]string{{"tca", "TCA file"}, {"evidence", "evidence file "},
				{"posttrade.db", "posttrade.db is marked as that of genesis"}} {
				for _, flags := range [][]string{anyPorts(data), accepting} {
					wantNoStart(t, flags, tt[1], false)
					wantNoStart(t, flags, errOtherGenesis.Error(), false)
				}
				if tt[0] != "posttrade.db" { // the next one is found without it
					must.OK(t, os.Rename(filepath.Join(data, tt[0]), filepath.Join(aside, tt[0])))
				}
			}
			for _, name := range []string{"tca", "evidence"} {
				must.OK(t, os.Rename(filepath.Join(aside, name), filepath.Join(data, name)))
			}
			sameContents(t, "the refused starts", before, neighbourFiles(t, data))
			must.OK(t, os.RemoveAll(filepath.Join(data, "journal")))
			must.OK(t, os.Rename(own, filepath.Join(data, "journal")))
			in = install(t, data)
			in.trade(1)
			in.awaitMatched()
			in.stop()
		})
	}
}

// TestNothingIsGivenUpWhenANeighbourIsOfAnotherHistory: the files would accept the older
// journal, the database would not; the flag then changes none of them.
func TestNothingIsGivenUpWhenANeighbourIsOfAnotherHistory(t *testing.T) {
	data, other := agedInstallation(t), t.TempDir()
	in := install(t, other)
	in.trade(3)
	in.awaitMatched()
	in.stop()
	for _, end := range []string{"", "-wal", "-shm"} {
		must.OK(t, os.RemoveAll(filepath.Join(data, "posttrade.db"+end)))
		if text, err := os.ReadFile(filepath.Join(other, "posttrade.db"+end)); err == nil {
			must.OK(t, os.WriteFile(filepath.Join(data, "posttrade.db"+end), text, 0o600))
		}
	}
	before := neighbourFiles(t, data)
	for _, accept := range []string{"false", "true"} {
		flags := append(anyPorts(data), "accept-older-journal", accept)
		wantNoStart(t, flags, "posttrade.db is marked as that of genesis", false)
		wantNoStart(t, flags, errOtherGenesis.Error(), false)
	}
	sameContents(t, "the refused starts", before, neighbourFiles(t, data))
}

// neighbourFiles are the contents of what a start may give up, beside the database, whose file
// changes when it is opened.
func neighbourFiles(t *testing.T, data string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"tca", "evidence", "extracts", "journal"} {
		if _, err := os.Stat(filepath.Join(data, name)); err == nil {
			for file, text := range contents(t, filepath.Join(data, name)) {
				all[filepath.Join(name, file)] = text
			}
		}
	}
	return all
}

// TestADatabaseThatComesLaterStopsAdmission starts an older journal while its database is
// unreachable. Orders go on, until the database is back and knows more. Then orders are refused,
// reads are not, /readyz says why, and nothing was written to the database.
func TestADatabaseThatComesLaterStopsAdmission(t *testing.T) {
	o, proxy := storetest.CutOptions(t)
	settings := []string{"database.url", o.URL}
	data := agedInstallation(t, settings...)
	for _, name := range []string{"tca", "extracts", "evidence"} {
		must.OK(t, os.RemoveAll(filepath.Join(data, name)))
	}
	proxy.Cut()
	in := install(t, data, settings...)
	in.trade(1)
	proxy.Heal()
	order := `{"accountId":1,"security":"AAPL","side":"Sell","quantity":5,"limitPrice":10}`
	apptest.Until(t, "orders are refused", func() (bool, any) {
		status, body := call(t, "POST", "http://"+in.at("order-matcher")+"/orders", order)
		return status == http.StatusServiceUnavailable && strings.Contains(body, "HISTORY_AHEAD"), body
	})
	if status, body := in.get("order-matcher", "/orders?status=all"); status != http.StatusOK {
		t.Errorf("a read: %d %s", status, body)
	}
	if status, body := in.get("admin", "/readyz"); status != http.StatusServiceUnavailable ||
		!strings.Contains(string(body), `"history"`) || !strings.Contains(string(body), "trade 8") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if rows := in.rows(); len(rows) != 8 {
		t.Errorf("%d rows, the database had 8", len(rows))
	}
	in.stop()
	proxy.Cut()
	in = install(t, data, append(settings, "accept-older-journal", "true")...)
	in.trade(1)
	proxy.Heal()
	apptest.Until(t, "what the database alone knew is an orphan", func() (bool, any) {
		sweep, err := in.processor.OrphanSweep(t.Context())
		return err == nil && sweep.OrphanCount == 4, sweep
	})
	apptest.Until(t, "the rest is matched", func() (bool, any) {
		s, err := in.processor.ReconStatus(t.Context())
		return err == nil && s.Matched == in.tradeSeq() && s.FieldMismatch+s.MissingInProjection == 0, s
	})
	replayJournal(t, in.Core).checkRows(t, in.rows())
}

// TestAGuardSaysWhyItWaits: a database that cannot be compared is tried again. The log says the
// error once, not each time and not never.
func TestAGuardSaysWhyItWaits(t *testing.T) {
	data := t.TempDir()
	k := testCore(t, filepath.Join(data, "journal"))
	var text bytes.Buffer
	tries := 0
	db := must.Get(store.Open(store.Options{Dir: data}))(t)
	defer db.Close()
	g := &historyGuard{
		check: startCheck{apptest.Settled(t, "data.dir", data),
			slog.New(slog.NewTextHandler(&text, nil))},
		k: k, db: db, role: riskextract.RoleSingle, done: make(chan struct{}),
		sole: make(chan struct{}),
		w: neighbour{name: "db", look: func(context.Context) (coverage, error) {
			if tries++; tries < 3 {
				return coverage{}, errors.New("planted")
			}
			return coverage{}, nil
		}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-g.sole
		cancel()
	}()
	must.OK(t, g.run(ctx))
	if n := strings.Count(text.String(), "db: planted"); tries != 3 || n != 1 {
		t.Errorf("%d tries, said %d times: %s", tries, n, &text)
	}
	must.OK(t, k.Stop())
}

// TestALeaderIsComparedWithAllThatWasAgreed: the commands that a member's disk lacks come from the
// other members. So the database is compared when the member leads, with all that was agreed.
func TestALeaderIsComparedWithAllThatWasAgreed(t *testing.T) {
	data := t.TempDir()
	in := install(t, data)
	in.trade(2)
	in.awaitMatched()
	in.stop()
	k := testCore(t, filepath.Join(t.TempDir(), "journal"))
	db := must.Get(store.Open(store.Options{Dir: data}))(t)
	defer db.Close()
	// as if the database were this journal's
	must.OK(t, db.Write(t.Context(), (*store.Tx).ForgetHistory))
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c := apptest.Settled(t, "data.dir", data)
	k.Handed.Store(3)
	g := newHistoryGuard(c, k, db, riskextract.RoleLeader, log)
	ended := make(chan error, 1)
	go func() { ended <- g.run(t.Context()) }()
	submit(t, k, 2)
	select {
	case err := <-ended:
		t.Fatalf("compared before what was agreed is there: %v", err)
	default:
	}
	submit(t, k, 1)
	if err := <-ended; !errors.Is(err, errOlderJournal) || !isHeld(k) {
		t.Errorf("compared: %v, held: %v", err, isHeld(k))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if err := g.then(func(context.Context) error { return errors.New("it ran") })(ctx); err != nil {
		t.Error("a writer has run:", err)
	}
	g.release()
	if isHeld(k) {
		t.Error("admission is held by a guard that has been released")
	}
	stopAndHash(t, k)
}

// TestWhatFollowsTheJournalIsNeverAheadOfTheDisk: in mode os the log is synced now and then.
// Commands that are answered, but not synced yet, are not written anywhere outside of the journal:
// after a power cut the journal would be older than that.
func TestWhatFollowsTheJournalIsNeverAheadOfTheDisk(t *testing.T) {
	in := install(t, t.TempDir(), "journal.durability", "os", "journal.flush-interval", "10s")
	d, j := in.Beside.Load(), in.Core.Journal
	durable := uint64(0)
	// the log is synced once in ten seconds
	apptest.Until(t, "a trade is durable and not synced", func() (bool, any) {
		in.trade(1)
		durable, _ = j.Head()
		return j.Stable() < durable, durable
	})
	if _, err := d.projection.Step(t.Context()); err != nil {
		t.Error(err)
	}
	booked, _ := d.projection.Projected()
	applied := d.tca.Applied()
	if input, trade := j.StableHead(); booked > trade || applied > input {
		t.Errorf("trade %d is booked and TCA at sequence %d; on the disk are trade %d, sequence %d",
			booked, applied, trade, input)
	}
	must.OK(t, j.WaitStable(t.Context(), durable))
	in.awaitMatched()
}
