package installation

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestLookingAtARunningServer asks a server for its reconciliation and for the cost of a trade, as
// an operator does.
func TestLookingAtARunningServer(t *testing.T) {
	data := t.TempDir()
	s := startServer(t, data, "recon.poll.interval-ms", "20", "recon.grace-ms", "50",
		"recon.verify.interval-ms", "100")
	for _, order := range []string{sellOrder, buyOrder} {
		if status, body := call(t, "POST", s.url+"/orders", order); status != 201 {
			t.Fatalf("order: %d %s", status, body)
		}
	}
	look := func(want ...string) {
		t.Helper()
		apptest.Until(t, strings.Join(want, " and "), func() (bool, any) {
			code, out, errs := apptest.Run("recon", "status", "--data.dir="+data)
			for _, w := range want {
				if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
					return false, out + errs
				}
			}
			return code == settings.ExitOK && errs == "", out + errs
		})
	}
	look("compared 2", "matched 2", "missing in projection 0", "field mismatch 0", "orphans 0",
		"lag 0",
		"last orphan sweep never")
	wantRun(t, settings.ExitOK, "class trade fields first seen last seen", "", "recon", "breaks",
		"--data.dir="+data)

	db := storetest.OpenWith(t, store.Options{Dir: data})
	storetest.Edit(t, db, "update trades set quantity = 41, price = 1 where id = 'trd-1'")
	storetest.Edit(t, db, "delete from trades where id = 'trd-2'")
	look("missing in projection 1", "field mismatch 1", "matched 0")
	wantRun(t, settings.ExitOK, "FIELD_MISMATCH trd-1 quantity,price 2", "", "recon", "breaks",
		"--data.dir="+data)
	wantRun(t, settings.ExitOK, "MISSING_IN_PROJECTION trd-2 2", "", "recon", "breaks",
		"--data.dir="+data)
	_, out, _ := apptest.Run("recon", "breaks", "--class=FIELD_MISMATCH", "--data.dir="+data)
	if strings.Contains(out, "MISSING") || !strings.Contains(out, "trd-1") {
		t.Errorf("breaks of one class:\n%s", out)
	}
	storetest.Edit(t, db, "update trades set quantity = 40, price = 187250000 where id = 'trd-1'")
	look("missing in projection 1", "field mismatch 0", "matched 1")

	wantRun(t, settings.ExitOK,
		"trade trd-1 account 2 executed Buy 40 AAPL at 187.25 arrival price none", "",
		"tca", "trd-1", "--data.dir="+data)
	wantRun(t, settings.ExitFailed, "", "404", "tca", "trd-99", "--data.dir="+data)
	wantRun(t, settings.ExitFailed, "", "posttrade: ", "tca", "no trade at all", "--data.dir="+data)
	wantRun(t, settings.ExitFailed, "", "400", "recon", "breaks", "--class=MATCHED",
		"--data.dir="+data)
	export := func(out, errs string, args ...string) { // a slow one also says how far it is
		t.Helper()
		code, gotOut, gotErrs := apptest.Run("export", append(args, "--data.dir="+data)...)
		if code != settings.ExitOK || gotOut != out || !strings.Contains(gotErrs, errs) {
			t.Errorf("%v: %d %q %q", args, code, gotOut, gotErrs)
		}
	}
	const positions = "accountId,security,quantity,averageCost\n1,AAPL,-40,187.25\n2,AAPL,40,187.25\n"
	export(positions, "positions: 2 rows, 75 bytes in ", "positions")
	file := filepath.Join(t.TempDir(), "trades.parquet")
	export("", "trades: ", "trades", "--format=parquet", "--as-of=2100-01-01", "-o", file)
	if text, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(text, []byte("PAR1")) {
		t.Errorf("%.10q %v", text, err)
	}
	if mode := must.Get(os.Stat(file))(t).Mode().Perm(); mode != 0o600 {
		t.Errorf("mode of the export: %o, want what only its owner may read", mode)
	}
	wantRun(t, settings.ExitUsage, "", "as-of: want yyyy-mm-dd", "export", "blotter", "--as-of=today",
		"--data.dir="+data)
	wantRun(t, settings.ExitUsage, "", "usage: posttrade export", "export", "orders",
		"--data.dir="+data)
	repair := func(code int, want, wrong string, args ...string) {
		t.Helper()
		wantRun(t, code, want, wrong, "recon", append([]string{"repair", "--data.dir=" + data},
			args...)...)
	}
	repair(settings.ExitOK, "trd-2 missing compared 2, right 1, to be made again (dry run: "+
		"nothing was "+
		"changed) 1, not projected yet 0", "", "trd-1..trd-2", "--dry-run")
	look("missing in projection 1")
	repair(settings.ExitOK, "trd-2 missing compared 2, right 1, made again 1, not projected yet 0 "+
		"repair 1;", "", "trd-1..trd-2", "--reason=row was deleted")
	look("missing in projection 0", "field mismatch 0", "matched 2")
	repair(settings.ExitOK, "compared 1, right 1, made again 0", "", "trd-2")
	repair(settings.ExitFailed, "", "field to: above the last durable trade", "trd-1..trd-3")
	for _, bad := range []string{"trd-5..trd-1", "trd-0..trd-1", "1..2", "trd-1..", "..trd-1",
		"trd-1..trd-2..trd-3", "trd-1...trd-2", "ext-1", "trd-1..trd-9223372036854775808"} {
		repair(settings.ExitUsage, "", "is not a range of trades", bad)
	}
	wantRun(t, settings.ExitUsage, "", "go with recon repair", "recon", "status", "--dry-run",
		"--data.dir="+data)
	found := ""
	if err := db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Query("select subject, address, reason, repaired, (select fields from "+
			"recon_repaired_rows where repair = 1) from recon_repairs where repair = 1",
			func(r *store.Row) error {
				found = fmt.Sprint(r.Text(0), " ", r.Text(1), " ", r.Text(2), " ", r.Int64(3), " ", r.Text(4))
				return nil
			})
	}); err != nil || found != OSUser()+" 127.0.0.1 row was deleted 1 missing" {
		t.Errorf("the record of the repair is %q, %v", found, err)
	}
	s.stop(t)
	wantRun(t, settings.ExitFailed, "", "posttrade: ", "recon", "status", "--data.dir="+data)
}

// TestLookingWhereNothingRuns tries every request that must fail.
func TestLookingWhereNothingRuns(t *testing.T) {
	empty := t.TempDir()
	for _, args := range [][]string{{"status"}, {"breaks"}} {
		wantRun(t, settings.ExitFailed, "", "no server has run here", "recon",
			append(args, "--data.dir="+empty)...)
	}
	wantRun(t, settings.ExitFailed, "", "no server has run here", "tca", "trd-1", "--data.dir="+empty)
	for _, args := range [][]string{{}, {"sweep"}, {"status", "breaks"}, {"status", "--class"},
		{"status", "--nothing=1"}} {
		wantRun(t, settings.ExitUsage, "", "posttrade: ", "recon",
			append([]string{"--data.dir=" + empty}, args...)...)
	}
	for _, args := range [][]string{{}, {"trd-1", "trd-2"}} {
		wantRun(t, settings.ExitUsage, "", "posttrade: ", "tca",
			append([]string{"--data.dir=" + empty}, args...)...)
	}
	wantRun(t, settings.ExitOK, "usage: posttrade recon", "", "recon", "-h")
	wantRun(t, settings.ExitOK, "usage: posttrade tca", "", "tca", "--help")

	// A server that has ended, or has no trade-processor.
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	gone := listener.Addr().String()
	listener.Close()
	for ports, want := range map[string]string{
		`{"order-matcher":"127.0.0.1:1"}`:                 "sidecars.enabled",
		`{"trade-processor":"` + gone + `"}`:              "refused",
		`{"trade-processor":`:                             "ports.json",
		`{"trade-processor":"127.0.0.1:1","x":"y"} extra`: "ports.json",
	} {
		must.OK(t, os.WriteFile(filepath.Join(empty, "ports.json"), []byte(ports), 0o600))
		wantRun(t, settings.ExitFailed, "", want, "recon", "status", "--data.dir="+empty)
	}
}

// wantRun runs a command. Its output, apart from blanks, must contain out. Its stderr must be one
// line that contains errs, or empty.
func wantRun(
	t *testing.T, code int, out, errs string, command string,
	args ...string,
) {
	t.Helper()
	gotCode, gotOut, gotErrs := apptest.Run(command, args...)
	lines := 0
	if errs != "" {
		lines = 1
	}
	if gotCode != code || !strings.Contains(strings.Join(strings.Fields(gotOut), " "), out) ||
		strings.Count(gotErrs, "\n") != lines || !strings.Contains(gotErrs, errs) ||
		code != settings.ExitOK && gotOut != "" {
		t.Errorf("%v: exit %d, stdout %q, stderr %q; want %d, %q and %q", args, gotCode, gotOut, gotErrs,
			code, out, errs)
	}
}

// TestLookingAtAServerWithTLS: the commands know the server by its own certificate, which no
// authority has signed, and accept no other.
func TestLookingAtAServerWithTLS(t *testing.T) {
	data := t.TempDir()
	certificate, key := selfSigned(t)
	in := install(t, data, "http.tls-cert", certificate, "http.tls-key", key)
	must.OK(t, writePorts(filepath.Join(data, "ports.json"), in.listeners.addresses()))
	own := []string{"--data.dir=" + data, "--http.tls-cert=" + certificate, "--http.tls-key=" + key}
	wantRun(t, settings.ExitOK, "compared 0", "", "recon", append(own, "status")...)
	wantRun(t, settings.ExitOK, "account", "", "source", append(own, "status")...)
	wantRun(t, settings.ExitFailed, "", "404", "tca", append(own, "trd-99")...)
	other, otherKey := selfSigned(t)
	wantRun(t, settings.ExitFailed, "", "another certificate than http.tls-cert", "recon",
		"status", "--data.dir="+data, "--http.tls-cert="+other, "--http.tls-key="+otherKey)
	wantRun(t, settings.ExitFailed, "", "http.tls-cert", "recon",
		"status", "--data.dir="+data, "--http.tls-cert="+other+"x", "--http.tls-key="+otherKey)
}
