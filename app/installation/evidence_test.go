package installation

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
)

// aProof reads a proof from a running installation.
func (i *installed) aProof(query string) []byte {
	i.t.Helper()
	status, body := i.get("order-matcher", "/evidence/proof?"+query)
	if status != http.StatusOK {
		i.t.Fatalf("%s: %d %s", query, status, body)
	}
	return body
}

// TestAStrangerChecksATrade goes the whole way: a trade, its proof over HTTP and from the data
// directory, and its verification in an empty folder with nothing but the public key.
func TestAStrangerChecksATrade(t *testing.T) {
	data, empty := t.TempDir(), t.TempDir()
	quickly := []string{"sidecars.enabled", "false", "evidence.interval", "10ms"}
	i := install(t, data, quickly...)
	i.trade(3)
	code, key, stderr := apptest.Run("evidence", "key", "--data.dir", data)
	if key = strings.TrimSpace(key); code != 0 || !strings.HasPrefix(key, "posttrade/") {
		t.Fatalf("%d %s %s", code, key, stderr)
	}
	verify := func(text []byte) (code int, said string) {
		t.Helper()
		name := filepath.Join(empty, "p.json")
		must.OK(t, os.WriteFile(name, text, 0o600))
		code, stdout, stderr := apptest.Run("evidence", "verify", name, "--key", key)
		return code, stdout + stderr
	}
	for _, query := range []string{"tradeId=trd-1", "tradeId=trd-6", "orderId=ord-2", "inputSeq=1"} {
		text := i.aProof(query)
		if code, said := verify(text); code != 0 || !strings.HasPrefix(said, "proven ") {
			t.Errorf("%s: exit %d: %s", query, code, said)
		}
		for _, change := range [][2]string{{`"quantity":5`, `"quantity":6`},
			{`"version":1`, `"version":2`}, {`"inputSeq":`, `"inputSeq":1`}} {
			bad := strings.Replace(string(text), change[0], change[1], 1)
			code, said := verify([]byte(bad))
			if bad != string(text) && (code != 3 || !strings.Contains(said, "not proven: ")) {
				t.Errorf("%s %v: exit %d: %s", query, change, code, said)
			}
		}
	}
	for _, bad := range []string{"", "hello", "{}", "[]"} {
		if code, said := verify([]byte(bad)); code != 1 {
			t.Errorf("%q: exit %d: %s", bad, code, said)
		}
	}
	noKey := filepath.Join(empty, "no.vkey")
	must.OK(t, os.WriteFile(noKey, []byte("hello"), 0o600))
	for _, tt := range []struct {
		exit int
		args []string
	}{{2, nil}, {2, []string{"--key", "a+b"}}, {2, []string{"--key", key + "x"}},
		{2, []string{"--key", noKey}}, {2, []string{"--key", key, "--witness-key", key}},
		{2, []string{"--key", filepath.Join(empty, "absent")}}, {2, []string{"--key", "garbage"}},
		{2, []string{"--key", key, "--witness-key", "garbage"}}, {1, []string{"--key", empty}}} {
		code, stdout, stderr := apptest.Run("evidence", append([]string{"verify",
			filepath.Join(empty, "p.json")}, tt.args...)...)
		if code != tt.exit || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d: %s%s", tt.args, code, stdout, stderr)
		}
	}
	genesis, _ := i.Core.Journal.Genesis()
	_, report := i.get("order-matcher", "/regulatory/report?toSeq=1")
	if !strings.Contains(string(genesis), `"evidenceKey":"`) ||
		strings.Contains(string(report), "evidenceKey") {
		t.Errorf("the secret is not in the genesis record alone: %s", report)
	}
	i.stop()
	code, text, stderr := apptest.Run("evidence", "proof", "trd-1", "ord-1", "2", "--data.dir", data)
	if code != 0 || strings.Count(text, "\n") != 3 {
		t.Fatalf("exit %d: %s %s", code, text, stderr)
	}
	if code, said := verify([]byte(text)); code != 0 || strings.Count(said, "proven ") != 3 {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, _, stderr := apptest.Run("evidence", "proof", "trd-7", "--data.dir", data); code != 1 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestAnAuditorChecksALog: older heads against the folder and the running server, a range with its
// report, and what is said of changed ones, each by its exit code.
func TestAnAuditorChecksALog(t *testing.T) {
	data, desk := t.TempDir(), t.TempDir()
	i := install(t, data, "sidecars.enabled", "false", "evidence.interval", "10ms")
	at := func(name string) string { return filepath.Join(desk, name) }
	put := func(name string, text []byte) string {
		t.Helper()
		must.OK(t, os.WriteFile(at(name), text, 0o600))
		return at(name)
	}
	head := func(name string) string {
		t.Helper()
		i.aProof("inputSeq=1")
		_, note := i.get("order-matcher", "/log/checkpoint")
		return put(name, note)
	}
	i.trade(2)
	i.aProof("tradeId=trd-4")
	old := head("old")
	i.trade(200)
	i.aProof("tradeId=trd-404")
	newer := head("new")
	_, report := i.get("order-matcher", "/regulatory/report?fromSeq=3")
	put("report", report)
	put("wrong-report", []byte(strings.Replace(string(report), `"quantity":5`, `"quantity":6`, 1)))
	_, key, _ := apptest.Run("evidence", "key", "--data.dir", data)
	log := "http://" + i.at("order-matcher") + "/log"
	folder, bundle := filepath.Join(data, "evidence"), at("bundle")
	want := func(exit int, said string, args ...string) {
		t.Helper()
		code, stdout, stderr := apptest.Run("evidence", append(args, "--key", strings.TrimSpace(key))...)
		if code != exit || !strings.Contains(stdout+stderr, said) {
			t.Errorf("%v: exit %d, want %d: %s%s", args, code, exit, stdout, stderr)
		}
	}
	want(0, "is a prefix", "verify", "--checkpoint", old, folder)
	want(0, "is a prefix", "verify", "--checkpoint", old, newer, "--log", log)
	want(3, "its tail is cut off", "verify", "--checkpoint", newer, old, "--log", log)
	want(0, "every tile", "verify", folder)
	want(1, "", "verify", "--checkpoint", at("nothing"), folder)
	want(1, "", "verify", "--checkpoint", old, newer, "--log", "http://127.0.0.1:1")
	want(2, "--log", "verify", "--checkpoint", old, newer)
	if code, _, stderr := apptest.Run("evidence", "export", bundle, "--data.dir", data); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	want(0, "every decision and fill", "verify", bundle)
	want(0, "is a prefix", "verify", bundle, "--checkpoint", old)
	want(0, "every byte", "verify", "--report", at("report"), bundle)
	want(3, "not proven: ", "verify", "--report", at("report"), "--from", "2", "--to", "3", bundle)
	wrong := at("wrong-report")
	want(3, "not proven: "+wrong+": byte ", "verify", "--report", wrong, bundle)
	must.OK(t, os.WriteFile(filepath.Join(bundle, "more.csv"), []byte("trd-1"), 0o600))
	want(0, `nothing is proven of "more.csv"`, "verify", bundle)
	manifest := filepath.Join(bundle, "bundle.json")
	whole := must.Get(os.ReadFile(manifest))(t)
	renamed := strings.Replace(string(whole), `"edges"`, `"edgex"`, 1)
	must.OK(t, os.WriteFile(manifest, []byte(renamed), 0o600))
	want(3, `it names "edgex"`, "verify", bundle)
	must.OK(t, os.WriteFile(manifest, nil, 0o600))
	want(1, "is not a manifest", "verify", bundle)
	must.OK(t, os.WriteFile(manifest, whole, 0o600))
	genesis := filepath.Join(bundle, "genesis.json")
	text := must.Get(os.ReadFile(genesis))(t)
	text[len(text)/2] ^= 1
	must.OK(t, os.WriteFile(genesis, text, 0o600))
	want(3, "not proven: ", "verify", bundle)
	if code, _, _ := apptest.Run("evidence", "export", bundle, "--data.dir", data); code != 1 {
		t.Errorf("an export into a folder that is not empty: exit %d", code)
	}
}

// TestProofsAreMadeBesideAServerThatTrades: the head that a proof is made against must not be newer
// than the journal as the command sees it.
func TestProofsAreMadeBesideAServerThatTrades(t *testing.T) {
	data := t.TempDir()
	i := install(t, data, "sidecars.enabled", "false", "evidence.interval", "2ms")
	i.trade(1)
	i.aProof("tradeId=trd-2")
	end := during(t, func(ctx context.Context) {
		for ctx.Err() == nil {
			i.trade(1)
		}
	})
	for n := range 6 {
		newest := strconv.FormatUint(i.evidence.source.State().Signed, 10) // in the open leaf
		code, _, stderr := apptest.Run("evidence", "proof", newest, "trd-1", "--data.dir", data)
		if code != 0 {
			t.Errorf("proof: exit %d: %s", code, stderr)
		}
		bundle := filepath.Join(t.TempDir(), strconv.Itoa(n))
		if code, _, stderr := apptest.Run("evidence", "export", bundle, "--data.dir", data); code != 0 {
			t.Errorf("export: exit %d: %s", code, stderr)
		}
	}
	end()
}

// refusedStart is the error of a start that is refused.
func refusedStart(t *testing.T, data string, nameValue ...string) string {
	t.Helper()
	c := apptest.Settled(t, append(append(anyPorts(data), quick...), nameValue...)...)
	in, err := Open(t.Context(), c, EngineOptions(c), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err == nil {
		t.Fatal("the start is not refused", in.Stop())
	}
	return err.Error()
}

// TestAStartAndTheLogAgree: a start refuses a journal that ends before a signed head, by name; a
// tile that contradicts the journal stops the log, is named on /readyz and counted, and orders go
// on.
func TestAStartAndTheLogAgree(t *testing.T) {
	data := t.TempDir()
	quickly := []string{"sidecars.enabled", "false", "evidence.interval", "10ms"}
	i := install(t, data, quickly...)
	i.stop()
	old := t.TempDir()
	copyTree(t, filepath.Join(data, "journal"), filepath.Join(old, "journal"))
	i = install(t, data, quickly...)
	i.trade(2)
	if ready, detail := i.part("evidence"); !ready {
		t.Error(detail)
	}
	i.stop()
	tile := filepath.Join(data, "evidence", "tile", "0", "000.p")
	names, err := os.ReadDir(tile)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	name := filepath.Join(tile, names[0].Name())
	text, err := os.ReadFile(name)
	must.OK(t, err)
	text[5] ^= 1
	must.OK(t, os.WriteFile(name, text, 0o600))
	i = install(t, data, quickly...)
	apptest.Until(t, "the log has stopped", func() (bool, any) {
		status, part := readyPart(i, "evidence")
		return status == http.StatusOK && !part.Ready && strings.Contains(part.Detail, name), part
	})
	i.awaitMetrics("svc_evidence_divergence_total 1")
	i.trade(1)
	i.stop()
	must.OK(t, os.RemoveAll(filepath.Join(data, "journal")))
	copyTree(t, filepath.Join(old, "journal"), filepath.Join(data, "journal"))
	if err := refusedStart(t, data, quickly...); !strings.Contains(err, "evidence file ") ||
		!strings.Contains(err, "checkpoints") {
		t.Errorf("%s", err)
	}
}
