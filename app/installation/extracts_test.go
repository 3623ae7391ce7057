package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/riskextract"
)

// announcement is risk.extract.ready in the form that another program reads.
type announcement struct {
	URI, SHA256, ContractsURI, ContractsSHA256, SessionDate, CutSHA256 string
	ConsensusSequence                                                  uint64
	Schema, Rows, Contracts, ContractsSchema, PriceVersion             int
}

// fileOf reads the file of an announced URI and checks its hash.
func fileOf(t *testing.T, uri, sum string) (path string, text []byte) {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		t.Fatalf("uri %q: %v", uri, err)
	}
	if text, err = os.ReadFile(u.Path); err != nil {
		t.Fatal(err)
	}
	if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != sum {
		t.Errorf("%s has sha256 %x, announced is %s", uri, got, sum)
	}
	return u.Path, text
}

// TestEndOfDayMakesAnExtractThatCanBeRebuilt books a swap of each direction and a swaption,
// publishes the end of the day on the broker, and compares the artifacts with the announcement, the
// cut and a rebuild.
func TestEndOfDayMakesAnExtractThatCanBeRebuilt(t *testing.T) {
	server := brokertest.External(t)
	data := t.TempDir()
	in := install(t, data, "nats.url", server.URL())
	other := newOtherProgram(t, server.URL())
	announced := make(chan announcement, 16)
	stop, err := other.broker.Subscribe(extractReadySubject, func(_ string, text []byte) {
		var a announcement
		if err := json.Unmarshal(text, &a); err != nil {
			t.Errorf("announcement %s: %v", text, err)
		}
		announced <- a
	})
	must.OK(t, err)
	defer stop()

	base := "http://" + in.at("order-matcher")
	for _, order := range []string{sellOrder, buyOrder} {
		if status, body := call(t, "POST", base+"/orders", order); status != 201 {
			t.Fatalf("order: %d %s", status, body)
		}
	}
	before := in.Core.Journal.Answered()
	const terms = `"accountId":1,"notional":10000000,"effectiveDate":"2026-11-23",` +
		`"maturityDate":"2031-11-23","conventions":"USD-SOFR-1Y-ACT360"`
	for i, body := range []string{
		`{"payReceive":"Receive","fixedRate":0.042,` + terms + `}`,
		`{"payReceive":"Pay","fixedRate":0.043,` + terms + `}`,
	} {
		want := fmt.Sprintf(`{"contractId":"SW-%d","sequence":%d,"booked":true}`, before+uint64(i)+1,
			before+uint64(i)+1)
		if status, answer := call(t, "POST", base+"/swaps", body); status != 200 || answer != want {
			t.Fatalf("swap: %d %s, want %s", status, answer, want)
		}
	}
	for _, refused := range []struct {
		body   string
		status int
		moves  uint64
	}{
		{`{"payReceive":"Pay","fixedRate":0.043,` + strings.Replace(terms, `"accountId":1`,
			`"accountId":999`, 1) + `}`, 422, 1},
		{`{"payReceive":"Pay","fixedRate":0,` + terms + `}`, 400, 0},
		{`{"payReceive":"Pay","fixedRate":0.043,` + strings.Replace(terms, "ACT360", "ACT361", 1) + `}`,
			400, 0},
	} {
		at := in.Core.Journal.Answered()
		if status, answer := call(t, "POST", base+"/swaps", refused.body); status != refused.status ||
			in.Core.Journal.Answered() != at+refused.moves {
			t.Errorf("%s: %d %s, %d commands on", refused.body, status, answer,
				in.Core.Journal.Answered()-at)
		}
	}
	if status, answer := call(t, "POST", base+"/swaptions",
		`{"payReceive":"Pay","fixedRate":-0.25,"expiryDate":"2026-11-20",`+
			`"exerciseStyle":"Bermudan",`+terms+`}`); status != 200 || !strings.Contains(answer, `"SWPT-`) {
		t.Fatalf("swaption: %d %s", status, answer)
	}

	// A malformed message is terminated; the next one makes the extract.
	for _, word := range []string{`{"version":1}`,
		`{"sessionDate":"2026-11-20","version":1,"by":"another"}`} {
		apptest.Until(t, "the word is published", func() (bool, any) {
			_, err := other.broker.Publish(t.Context(), eodSubject, []byte(word), broker.PublishOptions{})
			return err == nil, err
		})
	}
	a := <-announced
	if a.SessionDate != "2026-11-20" || a.Rows != 2 || a.Contracts != 3 || a.Schema != 3 ||
		a.ContractsSchema != 2 || a.PriceVersion != 1 || a.ConsensusSequence == 0 {
		t.Errorf("announced %+v", a)
	}
	positions, positionsText := fileOf(t, a.URI, a.SHA256)
	_, contractsText := fileOf(t, a.ContractsURI, a.ContractsSHA256)
	if strings.Contains(string(positionsText), "SW-") || !strings.Contains(string(contractsText),
		fmt.Sprintf("SW-%d,1,RECEIVE_FIXED,10000000,0.042000,", before+1)) ||
		!strings.Contains(string(contractsText), fmt.Sprintf("SW-%d,1,PAY_FIXED,10000000,0.043000,",
			before+2)) {
		t.Errorf("positions:\n%s\ncontracts:\n%s", positionsText, contractsText)
	}
	cut := filepath.Join(filepath.Dir(positions), fmt.Sprintf("seq-%d.cut", a.ConsensusSequence))
	cutText, err := os.ReadFile(cut)
	if sum := sha256.Sum256(cutText); err != nil || hex.EncodeToString(sum[:]) != a.CutSHA256 {
		t.Errorf("%s: sha256 %x, announced is %s; %v", cut, sum, a.CutSHA256, err)
	}

	// A request by hand for the same day is another cut under its own sequence, with the same rows.
	status, answer := call(t, "POST", base+"/risk/extract", `{"sessionDate":"2026-11-20"}`)
	if status != 401 {
		t.Errorf("an extract without a token: %d %s", status, answer)
	}
	in.stop()
	rebuilt := t.TempDir()
	p, c := filepath.Join(rebuilt, "p.csv"), filepath.Join(rebuilt, "c.csv")
	if code, stdout, stderr := apptest.Run("RiskExtractMain", "--rebuild", cut, p,
		c); code != settings.ExitOK {
		t.Fatalf("rebuild: exit %d %s %s", code, stdout, stderr)
	}
	for path, want := range map[string][]byte{p: positionsText, c: contractsText} {
		if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
			t.Errorf("%s is rebuilt as\n%s\nwas\n%s\n%v", path, got, want, err)
		}
	}
	must.OK(t, os.Chmod(cut, 0o600))
	must.OK(t, os.WriteFile(cut,
		[]byte(strings.Replace(string(cutText), "AAPL,-100", "AAPL,-101", 1)+" "), 0o600))
	if code, _, stderr := apptest.Run("risk-extract", "rebuild", cut, p+"2",
		c+"2"); code != settings.ExitMismatch || stderr == "" {
		t.Errorf("rebuild of a damaged cut: exit %d %s", code, stderr)
	}
	for _, args := range [][]string{{}, {"rebuild", cut}, {"render", cut, p, c}} {
		if code, _, stderr := apptest.Run("risk-extract", args...); code != settings.ExitUsage ||
			!strings.Contains(stderr, "usage") {
			t.Errorf("%v: exit %d %s", args, code, stderr)
		}
	}
}

func TestReadEndOfDay(t *testing.T) {
	if day, version,
		err := readEndOfDay([]byte(`{"sessionDate":"2026-11-20","version":3}`)); err != nil ||
		day.String() != "2026-11-20" || version != 3 {
		t.Errorf("%v %d %v", day, version, err)
	}
	for word, want := range map[string]uint32{
		`{"sessionDate":"1970-01-01","version":1}`:          1,
		`{"sessionDate":"2149-06-06","version":4294967295}`: 1<<32 - 1,
	} {
		if _, version, err := readEndOfDay([]byte(word)); err != nil || version != want {
			t.Errorf("%s reads as %d, %v", word, version, err)
		}
	}
	for _, bad := range []string{
		`{"sessionDate":"1969-12-31","version":1}`, `{"sessionDate":"2149-06-07","version":1}`,
		`{"sessionDate":"9999-12-31","version":1}`,
		``, `[]`, `{}`, `{"sessionDate":"2026-11-20"}`, `{"version":1}`,
		`{"sessionDate":"2026-11-31","version":1}`,
		`{"sessionDate":"2026-11-20","version":0}`, `{"sessionDate":"2026-11-20","version":1.5}`,
		`{"sessionDate":20261120,"version":1}`,
		`{"sessionDate":"2026-11-20","version":1,"version":1}`,
		`{"sessionDate":"2026-11-20","version":4294967296}`,
	} {
		if day, version, err := readEndOfDay([]byte(bad)); err == nil {
			t.Errorf("%s reads as %v, %d", bad, day, version)
		}
	}
}

// TestAnotherWordAtTheSameSequenceIsSequenced: the stream was made again before the first message
// was acknowledged, so other messages have its sequence. Only the same message has the same marker.
func TestAnotherWordAtTheSameSequenceIsSequenced(t *testing.T) {
	in := install(t, t.TempDir(), "sidecars.enabled", "false")
	x := NewExtracts(in.config, in.Core, nil, nil, riskextract.RoleSingle, slog.Default())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Extractor.Run(ctx) }()
	defer func() {
		cancel()
		must.OK(t, <-ended)
	}()
	const first = `{"sessionDate":"2026-11-20","version":1}`
	for i, tt := range []struct {
		text      string
		published int64
		markers   int
	}{
		{first, 1, 1},
		{first, 1, 1}, // delivered again
		{first, 2, 2},
		{`{"sessionDate":"2026-11-20","version":2}`, 1, 3},
		{`{"sessionDate":"2026-11-21","version":1}`, 1, 4},
	} {
		word := broker.Message{Sequence: 1, PublishedAt: time.Unix(0, tt.published),
			Data: []byte(tt.text)}
		// The message was not delivered by a consumer, so its acknowledgement fails.
		if err := x.take(ctx, []broker.Message{word}); !errors.Is(err, broker.ErrSettled) {
			t.Fatal(err)
		}
		markers, _, err := x.markers(ctx, 1)
		if err != nil || len(markers) != tt.markers {
			t.Errorf("after message %d there are %d markers, want %d; %v", i, len(markers), tt.markers, err)
		}
	}
}

// TestOneEngineGoesFromCutToCut: the engine of a cut is brought to the next one. An earlier cut has
// another engine, and none is open behind the last one.
func TestOneEngineGoesFromCutToCut(t *testing.T) {
	in := install(t, t.TempDir(), "sidecars.enabled", "false")
	for _, order := range []string{sellOrder, buyOrder} {
		if status, body := call(t, "POST", "http://"+in.at("order-matcher")+"/orders",
			order); status != 201 {
			t.Fatalf("order: %d %s", status, body)
		}
	}
	head := in.Core.Journal.Answered()
	must.OK(t, in.Core.Journal.WaitStable(t.Context(), head))
	x := NewExtracts(in.config, in.Core, nil, nil, riskextract.RoleSingle, slog.Default())
	var before *journal.Shadow
	for _, tt := range []struct {
		seq  uint64
		same bool
	}{{head - 2, false}, {head - 1, true}, {head, true}, {head - 1, false}} {
		state := must.Get(x.engineAt(t.Context(), tt.seq))(t)
		if at := state.(*matcher.Engine).AppliedSeq(); at != tt.seq || (x.shadow == before) != tt.same {
			t.Errorf("the engine for %d is at %d, the one before: %v", tt.seq, at, x.shadow == before)
		}
		before = x.shadow
	}
	for range 2 {
		must.OK(t, x.closeEngine())
	}
	if x.shadow != nil {
		t.Error("an engine is open")
	}
}
