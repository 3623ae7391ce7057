package installation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/backups"
	"posttrade/app/settings"
	"posttrade/journal/backup"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// program runs a subcommand that must succeed, and returns what it prints.
func program(t *testing.T, command string, args ...string) string {
	t.Helper()
	code, out, stderr := apptest.Run(command, args...)
	if code != settings.ExitOK {
		t.Fatalf("%s %v: exit %d, %s", command, args, code, stderr)
	}
	return out
}

// programFails runs a subcommand that must fail with one line.
func programFails(t *testing.T, code int, want string, command string, args ...string) {
	t.Helper()
	got, _, stderr := apptest.Run(command, args...)
	if got != code || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%s %v: exit %d, %q, want %d and %q", command, args, got, stderr, code, want)
	}
}

var statePattern = regexp.MustCompile(`(?m)^state +([0-9a-f]{64})$`)

// announced writes the file by which programs find the server.
func (i *installed) announced(data string) {
	i.t.Helper()
	must.OK(i.t, writePorts(filepath.Join(data, "ports.json"), i.listeners.addresses()))
}

// resource is an answer of a service, decoded.
func (i *installed) resource(service, path string) (v any) {
	i.t.Helper()
	status, body := i.get(service, path)
	if err := json.Unmarshal(body, &v); err != nil || status != http.StatusOK {
		i.t.Fatalf("%s %s: %d %s", service, path, status, body)
	}
	return v
}

// A backup of a running server is restored to the same commands, state, rows, blotter, accounts and
// stocks, from one directory or from a chain, up to its end or to a sequence within. What was
// settled by hand stays settled, and the sources begin a new epoch.
func TestBackupOfARunningServerIsRestored(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data, nights := t.TempDir(), t.TempDir()
		// A trade is settled by hand: its date is far away, and there is one sweep, at the start.
		settled := func(data string) *installed {
			return install(t, data, append(databaseFlags(t, d),
				"settlement.sweep.interval-ms", "86400000", "settlement.t-plus-days", "365")...)
		}
		in := settled(data)
		in.announced(data)
		night := func(n int) string { return filepath.Join(nights, fmt.Sprint("night", n)) }
		_, end := ordersFlow(t, in, 1)
		awaitFills(t, in, 200)
		program(t, "backup", night(1), "--data.dir="+data)
		awaitFills(t, in, 400)
		in.awaitProjected(300)
		must.Get(in.processor.ForceSettlement(t.Context(), "trd-300"))(t)
		program(t, "backup", night(2), "--since="+night(1), "--data.dir="+data)
		awaitFills(t, in, 500)
		end()
		in.awaitMatched()
		program(t, "backup", night(3), "--since", night(2), "--data.dir="+data)
		programFails(t, settings.ExitUsage, night(2), "backup", night(2), "--data.dir="+data)
		rows := madeAgain(in)
		accounts := in.resource("account-service", "/account/")
		stocks := in.resource("reference-data", "/stocks")
		before := epochs(in)
		in.stop()
		state := statePattern.FindString(program(t, "journal", "verify", "--data.dir="+data))
		history := export(t, apptest.Program(t), data)

		chain := []string{night(1), night(2), night(3)}
		copied := filepath.Join(t.TempDir(), "data")
		out := program(t, "restore", append(chain, "--data.dir="+copied)...)
		if got := statePattern.FindString(out); got == "" || got != state {
			t.Errorf("restored to %q, want %q", got, state)
		}
		if !slices.Equal(export(t, apptest.Program(t), copied), history) {
			t.Error("the commands differ")
		}
		programFails(t, settings.ExitUsage, "not empty", "restore", night(1), "--data.dir="+copied)
		again := settled(copied)
		apptest.Until(t, "nothing is left to do", func() (bool, any) {
			left, err := backup.Restored(copied)
			return left == nil && err == nil, left
		})
		again.awaitMatched()
		if got := madeAgain(again); !slices.Equal(got, rows) {
			t.Errorf("%d rows, %d before", len(got), len(rows))
		}
		if row := again.rows()[299]; row.Status != store.Settled {
			t.Errorf("what was settled by hand is %+v", row)
		}
		tr := replayJournal(t, again.Core)
		tr.checkBlotter(t, again)
		for _, resource := range []struct {
			service, path string
			want          any
		}{{"account-service", "/account/", accounts}, {"reference-data", "/stocks", stocks}} {
			if got := again.resource(resource.service, resource.path); fmt.Sprint(got) !=
				fmt.Sprint(resource.want) {
				t.Errorf("%s: %.200s, before %.200s", resource.path, fmt.Sprint(got), fmt.Sprint(resource.want))
			}
		}
		for name, epoch := range epochs(again) {
			if epoch <= before[name] {
				t.Errorf("source %s: epoch %d after %d", name, epoch, before[name])
			}
		}
		for _, side := range []string{"Sell", "Buy"} {
			status, body := call(t, "POST", "http://"+again.at("order-matcher")+"/orders", fmt.Sprintf(
				`{"accountId":3,"security":"ZTS","side":%q,"quantity":5,"limitPrice":10}`, side))
			if status != http.StatusCreated {
				t.Fatalf("order: %d %s", status, body)
			}
		}
		wantWhole(t, again)
		again.stop()

		earlier := filepath.Join(t.TempDir(), "data")
		to := len(history) * 2 / 3
		program(t, "restore", append(chain, "--data.dir="+earlier, fmt.Sprint("--to-seq=", to))...)
		if !slices.Equal(export(t, apptest.Program(t), earlier), history[:to]) {
			t.Error("the commands up to a sequence differ")
		}
		back := settled(earlier)
		wantWhole(t, back)
	})
}

// madeAgain are the rows as any making of them from the journal gives them.
func madeAgain(in *installed) []store.Trade {
	in.t.Helper()
	rows := booked(in)
	for i := range rows {
		rows[i].BookedAt, rows[i].UpdatedAt = 0, 0
	}
	return rows
}

// epochs are the epochs of the control sources.
func epochs(in *installed) map[string]uint64 {
	in.t.Helper()
	all := map[string]uint64{}
	err := in.Beside.Load().Db.Read(in.t.Context(), func(tx *store.Tx) (err error) {
		for _, name := range control.Sources() {
			if all[string(name)], _, _, err = tx.Source(string(name)); err != nil {
				return err
			}
		}
		return nil
	})
	must.OK(in.t, err)
	return all
}

// awaitProjected waits until a trade has its row.
func (i *installed) awaitProjected(trade uint64) {
	i.t.Helper()
	apptest.Until(i.t, "a trade has its row", func() (bool, any) {
		rows := i.rows()
		return uint64(len(rows)) >= trade, len(rows)
	})
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestBackupOfAMember takes a backup of each member of a cluster, over HTTP from elsewhere. Each is
// the agreed history, and one of them begins a new cluster with it. A part goes on from the same
// member only.
func TestBackupOfAMember(t *testing.T) {
	c := newThree(t)
	c.start()
	order := func(c *three, n int) {
		t.Helper()
		if status, answer := c.post(n, "/orders", fmt.Sprintf(
			`{"clientOrderId":"m%d","accountId":1,"security":"AAPL","side":"Buy","quantity":1,`+
				`"limitPrice":1}`,
			n)); status != http.StatusCreated {
			t.Fatalf("order: %d %s", status, answer)
		}
	}
	for n := range 60 {
		order(c, n)
	}
	head := c.alike()
	nights := t.TempDir()
	token := filepath.Join(nights, "token")
	must.OK(t, os.WriteFile(token, []byte(c.token()+"\n"), 0o600))
	from := func(i int) []string {
		return []string{"--token-file=" + token,
			"--server=http://" + c.members[i].open().listeners.addresses()["admin"]}
	}
	var want []string
	for i := range 3 {
		night, data := filepath.Join(nights, fmt.Sprint(i)), filepath.Join(t.TempDir(), "data")
		code, out, stderr := apptest.Run("backup", append(from(i), night)...)
		if code != settings.ExitOK || !strings.Contains(out, "rows       none") ||
			!strings.Contains(stderr, "warning: the backup has no rows: ") { // there is no database
			t.Fatalf("exit %d, %s%s", code, out, stderr)
		}
		program(t, "restore", night, "--data.dir="+data)
		lines := export(t, apptest.Program(t), data)
		if want == nil {
			want = lines
		}
		if uint64(len(lines)) != head || !slices.Equal(lines, want) {
			t.Errorf("member %d: %d commands, want %d", i+1, len(lines), head)
		}
	}
	order(c, 60)
	head = c.alike()
	one, other := filepath.Join(nights, "0"), filepath.Join(nights, "part")
	for i := 1; i < 3; i++ {
		// The chain hashes what one member wrote at a time. Another one's parts need not fit.
		part := filepath.Join(nights, fmt.Sprint("x", i))
		code, _, stderr := apptest.Run("backup", append(from(i), part, "--since="+one)...)
		if code != settings.ExitOK && !strings.Contains(stderr, one) {
			t.Errorf("member %d: exit %d, %s", i+1, code, stderr)
		}
	}
	program(t, "backup", append(from(0), other, "--since="+one)...)
	c.stop()

	again := newThree(t)
	again.members[0].data = filepath.Join(t.TempDir(), "data")
	again.members[0].settings = append(again.members[0].settings, "cluster.adopt", "true")
	program(t, "restore", one, other, "--data.dir="+again.members[0].data)
	again.start()
	order(again, 60) // it is known: the same answer
	order(again, 61)
	if got := again.alike(); got <= head {
		t.Errorf("sequence %d, want more than %d", got, head)
	}
	again.stop()
	if lines := export(t, apptest.Program(t), again.members[2].data); !slices.Equal(
		lines[:len(want)], want) {
		t.Error("another history on a member that has joined")
	}
}

// stop stops every member.
func (c *three) stop() {
	for _, m := range c.members {
		m.stop()
	}
}

// TestBackupNeedsAnAdministrator: reaching the loopback is not enough.
func TestBackupNeedsAnAdministrator(t *testing.T) {
	data := t.TempDir()
	in := install(t, data)
	in.trade(3)
	at := "http://" + in.at("admin")
	plain := gate.Mint([]byte(must.Get(in.config.JWTSecret())(t)), gate.Claims{Subject: "x"},
		"", time.Hour, time.Now())
	for _, path := range []string{backups.JournalPath, backups.TablesPath} {
		for token, want := range map[string]int{"": 401, "x": 401, plain: 403, in.token: 200} {
			if status, body := getWith(t, at+path, token); status != want {
				t.Errorf("%s with %.10q: %d %.200s", path, token, status, body)
			}
		}
	}
	seed := fmt.Sprintf("%x", in.Core.Journal.Seed())
	for query, want := range map[string]string{
		"sequence=x": "400 sequence", "sequence=0": "400 sequence", "seq=1": "400 seq:",
		"sequence=1&sequence=1": "400 sequence", "sequence=1": "400 trade",
		"sequence=1&trade=0&chain=00&genesis=":                                    "400 chain",
		"sequence=1&trade=0&genesis=00&chain=" + zeros:                            "400 genesis",
		"sequence=1&trade=0&genesis=" + zeros + "&chain=" + zeros:                 "409 BASE_UNKNOWN",
		"sequence=1&trade=0&genesis=" + seed + "&chain=" + zeros:                  "409 BASE_UNKNOWN",
		"sequence=1&trade=0&genesis=" + strings.ToUpper(seed) + "&chain=" + zeros: "409 BASE_UNKNOWN",
		"sequence=9999&trade=0&genesis=" + seed + "&chain=" + zeros:               "409 BASE_UNKNOWN",
	} {
		status, body := getWith(t, at+backups.JournalPath+"?"+query, in.token)
		code, text, _ := strings.Cut(want, " ")
		if fmt.Sprint(status) != code || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s, want %s", query, status, body, want)
		}
	}
	in.awaitMetrics("svc_backup_streams_total 1", "svc_backup_last_sequence 6")
	bad := filepath.Join(t.TempDir(), "token")
	must.OK(t, os.WriteFile(bad, []byte(plain), 0o600))
	in.announced(data)
	night := filepath.Join(t.TempDir(), "night")
	programFails(t, settings.ExitFailed, "ADMIN_REQUIRED", "backup", night, "--data.dir="+data,
		"--token-file="+bad)
	programFails(t, settings.ExitFailed, "token-file", "backup", night, "--data.dir="+data,
		"--token-file="+bad+"x")
	programFails(t, settings.ExitUsage, "usage", "backup", "--data.dir="+data)
	programFails(t, settings.ExitUsage, "usage", "restore", night)
	programFails(t, settings.ExitUsage, night, "restore", night, "--data.dir="+t.TempDir())
	programFails(t, settings.ExitUsage, night, "backup", night+"2", "--since="+night,
		"--data.dir="+data)
	programFails(t, settings.ExitUsage, bad, "backup", bad, "--data.dir="+data)
	programFails(t, settings.ExitUsage, bad, "backup", night, "--since="+bad, "--data.dir="+data)
	programFails(t, settings.ExitUsage, bad, "restore", bad, "--data.dir="+night)
	programFails(t, settings.ExitFailed, "no server has run here", "backup", night,
		"--data.dir="+t.TempDir())
	program(t, "backup", night, "--data.dir="+data)
	other := t.TempDir()
	second := install(t, other)
	second.trade(20)
	second.announced(other)
	programFails(t, settings.ExitUsage, "since dir="+night, "backup", night+"3", "--since="+night,
		"--data.dir="+other)
	second.stop()
	alone := night + "-alone"
	if out := program(t, "backup", alone, "--journal-only", "--data.dir="+data); !strings.Contains(out,
		"rows       none: left out") {
		t.Errorf("%s", out)
	}
	program(t, "backup", "--check", alone, night)
	in.trade(3)
	part := night + "-part"
	program(t, "backup", part, "--since="+night, "--journal-only", "--data.dir="+data)
	for from, want := range map[string]string{
		alone:              "rows       none in any backup (left out)",
		night:              "rows       of " + night + "\n",
		night + " " + part: "rows       of " + night + ", up to sequence ",
	} {
		to := "--data.dir=" + filepath.Join(t.TempDir(), "data")
		if out := program(t, "restore", append(strings.Fields(from), to)...); !strings.Contains(out,
			want) {
			t.Errorf("%s", out)
		}
	}
	stream := filepath.Join(night, "journal.stream")
	text := must.Get(os.ReadFile(stream))(t)
	text[len(text)/2] ^= 1
	must.OK(t, os.WriteFile(stream, text, 0o600))
	programFails(t, settings.ExitMismatch, stream, "backup", "--check", night)
	broken := filepath.Join(t.TempDir(), "data")
	programFails(t, settings.ExitMismatch, stream, "restore", night, "--data.dir="+broken)
	if _, line := openFails(t, broken); !strings.Contains(line, "restore") {
		t.Errorf("a start on what a failed restore has left: %s", line)
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// getWith reads a resource with a token.
func getWith(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	request := must.Get(http.NewRequest("GET", url, nil))(t)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	status, _, body = answerTo(t, request)
	return status, body
}
