package installation

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// controls is the part of GET /risk/control/snapshot that these tests read.
type controls struct {
	PolicyVersion int64            `json:"policyVersion"`
	Limits        map[string]int64 `json:"limits"`
	Accounts      []struct {
		ID     uint32           `json:"id"`
		Limits map[string]int64 `json:"limits"`
	} `json:"accounts"`
}

// of returns the limits of all accounts for 0, else those that an account has of its own.
func (c *controls) of(account uint32) map[string]int64 {
	for _, a := range c.Accounts {
		if a.ID == account {
			return a.Limits
		}
	}
	return c.Limits
}

func controlsIn(t *testing.T, text string) (c controls) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return c
}

// everyLimit is a change that sets all limits to one value.
func everyLimit(version, value int) string {
	var members []string
	for id := range matcher.LimitID(matcher.LimitCount) {
		members = append(members, fmt.Sprintf("%q:%d", id.String(), value))
	}
	return fmt.Sprintf(`{"policyVersion":%d,"limits":{%s}}`, version, strings.Join(members, ","))
}

// isEvery reports whether all limits have one value.
func isEvery(limits map[string]int64, value int64) bool {
	same := 0
	for _, v := range limits {
		if v == value {
			same++
		}
	}
	return same == matcher.LimitCount
}

// TestLimitsOutliveARestart changes limits over HTTP, and starts again: from a snapshot, from the
// first command, with settings that say otherwise, and where a change has lost its end. What was
// set is in force, and the log names the setting that has no effect and the endpoint that has one.
func TestLimitsOutliveARestart(t *testing.T) {
	data := t.TempDir()
	i := install(t, data, "risk.max-order-quantity", "1000")
	post := func(path, body string, want int) string {
		t.Helper()
		status, answer := requested(i, i.token, "POST", "order-matcher", path, body)
		if status != want {
			t.Fatalf("%s %s: %d %s, want %d", path, body, status, answer, want)
		}
		return answer
	}
	order := func(account, qty, want int) string {
		t.Helper()
		return post("/orders", fmt.Sprintf(`{"accountId":%d,"security":"AAPL","side":"Buy",`+
			`"quantity":%d,"limitPrice":1}`, account, qty), want)
	}
	image := func() string {
		t.Helper()
		status, text := requested(i, i.token, "GET", "order-matcher", "/risk/control/snapshot", "")
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		return text
	}
	order(1, 1001, 422)
	post("/risk/control/limits", `{"policyVersion":5,"limits":{"maxOrderQuantity":2000,`+
		`"creditLimit":"1e6","priceMaxAgeMs":77}}`, 200)
	post("/risk/control/accounts/1/limits", `{"policyVersion":6,"limits":{"maxOrderQuantity":50}}`,
		200)
	order(1, 51, 422)
	order(2, 2000, 201)
	must.Get(i.Core.Shadow.Take(t.Context()))(t)
	post("/risk/control/accounts/2/limits", `{"policyVersion":8,"limits":{"priceCollarBps":1}}`, 200)
	post("/risk/control/limits", `{"policyVersion":8,"limits":{"priceCollarBps":1}}`, 409)
	want := image()
	// The beginning of a change whose end is lost.
	lost := matcher.LimitsChange{Version: 9, Set: matcher.AllLimits,
		Values: matcher.RiskLimits{1, 1, 1, 1, 1, 1, 1}}
	parts := lost.AppendTo(nil)[:5]
	err := desk.SubmitUntil(t.Context(), i.Core.Desk, len(parts),
		func(n int, cmd *matcher.Command) error {
			*cmd = parts[n]
			return nil
		}, func(a *desk.Answer) error {
			if a.Kind != matcher.EventApplied {
				return fmt.Errorf("a part was refused: %v", a.Reason)
			}
			return nil
		})
	must.OK(t, err)
	i.stop()

	var log waittest.Log
	c := apptest.Settled(t, append(anyPorts(data), "risk.max-order-quantity", "900",
		"risk.credit-limit", "1000000", "risk.price.collar-bps", "7")...)
	in, err := Open(t.Context(), c, EngineOptions(c), slog.New(slog.NewTextHandler(&log, nil)))
	must.OK(t, err)
	if err := in.Stop(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"setting=risk.max-order-quantity value=900 \"in force\"=2000 member=maxOrderQuantity",
		"setting=risk.price.collar-bps value=7 \"in force\"=5000 member=priceCollarBps",
		"POST /risk/control/limits"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "setting=risk.credit-limit") {
		t.Errorf("a setting that agrees with what is in force is in the log:\n%s", log.String())
	}

	i = install(t, data)
	if got := image(); got != want {
		t.Errorf("after a restart: %s\nwant %s", got, want)
	}
	order(1, 51, 422)
	order(2, 2000, 201)
	if err := i.Core.Views.Check(i.Core.Engine); err != nil {
		t.Error(err)
	}
	post("/risk/control/limits", everyLimit(9, 40), 200)
	if got := controlsIn(t, image()); got.PolicyVersion != 9 || !isEvery(got.Limits, 40) {
		t.Errorf("after the next change: %+v", got)
	}
	i.stop()
	if code, out, errs := apptest.Run("journal", "verify", "--data.dir="+data); code !=
		settings.ExitOK {
		t.Errorf("verify: %d %s %s", code, out, errs)
	}
	if code, out, errs := apptest.Run("journal", "export", "--data.dir="+data); code !=
		settings.ExitOK ||
		strings.Count(out, `"type":"LIMITS_CONTROL"`) != 3+1+1+5+7 {
		t.Errorf("export: %d %.300s %s", code, out, errs)
	}
	wantNoStart(t, append(anyPorts(data), "risk.max-open-orders", "7"), "risk.max-open-orders", true)
}

// TestKillWhileLimitsChange kills the real binary with -9 while a client changes all limits at a
// time, of all accounts or of one, and others send orders. After each kill the limits in force are
// those of one change, whole: the last acknowledged one, or the one whose outcome is unknown.
// Replays agree, and the next order obeys.
func TestKillWhileLimitsChange(t *testing.T) {
	binary := apptest.Program(t)
	data := t.TempDir()
	random := rand.New(rand.NewPCG(*crashSeed, 18))
	token := gate.Mint([]byte(clusterSecret), gate.Claims{Subject: "test", Admin: true}, "",
		time.Hour, time.Now())
	sent, acked, changes := 10, map[uint32]int{}, 0
	for cycle := range *crashCycles + 1 {
		server := startForCrash(t, binary, data, "--sidecars.enabled=false",
			"--auth.jwt.secret="+clusterSecret, "--snapshot.interval-commands=50",
			"--journal.durability="+[]string{"os", "fsync"}[cycle%2])
		call := func(method, path, body string) (int, string) {
			request, err := http.NewRequest(method, server.url+path, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return 0, ""
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Authorization", "Bearer "+token)
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return 0, ""
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil {
				return 0, ""
			}
			return answer.StatusCode, string(text)
		}
		_, text := call("GET", "/risk/control/snapshot", "")
		found := controlsIn(t, text)
		if cycle > 0 && found.PolicyVersion != int64(sent) && found.PolicyVersion != int64(sent-1) {
			t.Fatalf("version %d, sent %d", found.PolicyVersion, sent)
		}
		for account, value := range acked {
			unknown := uint32(sent%2) == account && found.PolicyVersion == int64(sent)
			if limits := found.of(account); !isEvery(limits, int64(value)) &&
				!(unknown && isEvery(limits, int64(sent))) {
				t.Fatalf("cycle %d, account %d: limits %v, acknowledged %d, sent %d", cycle, account, limits,
					value, sent)
			} else if status, answer := call("POST", "/orders", fmt.Sprintf(`{"accountId":%d,`+
				`"security":"AAPL","side":"Buy","quantity":%d,"limitPrice":187}`, 2-account,
				limits["maxOrderQuantity"]+1)); !strings.Contains(answer, "ORDER_SIZE") {
				t.Fatalf("account %d: %d %s, limits %v", account, status, answer, limits)
			}
		}
		if found.PolicyVersion == int64(sent) {
			acked[uint32(sent%2)] = sent
		}
		if cycle == *crashCycles {
			break
		}
		var killed atomic.Bool
		var all sync.WaitGroup
		first := make(chan struct{})
		all.Go(func() {
			for !killed.Load() {
				sent++
				path := "/risk/control/limits"
				if sent%2 == 1 {
					path = "/risk/control/accounts/1/limits"
				}
				switch status, answer := call("POST", path, everyLimit(sent, sent)); {
				case status == http.StatusOK:
					acked[uint32(sent%2)] = sent
					if changes++; sent > 3 {
						select {
						case <-first:
						default:
							close(first)
						}
					}
				case status != 0:
					t.Errorf("a change: %d %s", status, answer)
					return
				default:
					return
				}
			}
		})
		for range 2 {
			all.Go(func() { crashClient(server.url, fmt.Sprint("l", random.Uint64()), random, &killed) })
		}
		<-first
		<-time.After(time.Duration(random.IntN(200)) * time.Millisecond)
		server.cmd.Process.Signal(syscall.SIGKILL)
		killed.Store(true)
		all.Wait()
		<-server.exited
		if out, err := exec.Command(binary, "journal", "verify",
			"--data.dir="+data).CombinedOutput(); err != nil {
			t.Fatalf("cycle %d: journal verify: %v\n%s", cycle, err, out)
		}
	}
	t.Logf("%d kills, %d changes acknowledged", *crashCycles, changes)
}

// TestLimitsAreThoseOfEveryMember changes limits through a member that does not lead, then without
// the member that led. Every member shows and obeys them, and so does one whose disk was lost.
func TestLimitsAreThoseOfEveryMember(t *testing.T) {
	c := newThree(t)
	c.start()
	change := func(at int, path, body string, want int) {
		t.Helper()
		if status, answer := c.post(at, path, body); status != want {
			t.Fatalf("%s: %d %s, want %d", body, status, answer, want)
		}
	}
	order := func(at, qty, want int) {
		t.Helper()
		change(at, "/orders", fmt.Sprintf(`{"accountId":1,"security":"AAPL","side":"Buy",`+
			`"quantity":%d,"limitPrice":1}`, qty), want)
	}
	lead := 0
	apptest.Until(t, "a leader", func() (bool, any) {
		for at, m := range c.members {
			if in := m.open(); in != nil && in.Member.Node.Leads() {
				lead = at
				return true, nil
			}
		}
		return false, c.members[0].log.String()
	})
	change(lead+1, "/risk/control/limits", everyLimit(3, 900), 200)
	change(lead+2, "/risk/control/accounts/1/limits",
		`{"policyVersion":4,"limits":{"maxOrderQuantity":20,"creditLimit":"500000"}}`, 200)
	change(lead+2, "/risk/control/limits", everyLimit(4, 5), 409)
	order(lead+1, 21, 422)
	c.alike()
	c.members[lead].stop()
	change(lead+1, "/risk/control/accounts/1/limits",
		`{"policyVersion":5,"limits":{"maxOrderQuantity":30}}`, 200)
	order(lead+2, 30, 201)
	order(lead+1, 31, 422)
	c.members[lead].destroy()
	c.members[lead].start()
	c.members[lead].awaitOpen()
	c.alike()
	want := c.get((lead+1)%3, "/risk/control/snapshot")
	for at := range c.members {
		if got := c.get(at, "/risk/control/snapshot"); got != want {
			t.Errorf("member %d shows %s, another %s", at+1, got, want)
		}
		order(at, 31, 422)
	}
	if got := controlsIn(t, want); got.PolicyVersion != 5 || got.of(1)["maxOrderQuantity"] != 30 ||
		got.of(1)["creditLimit"] != 500_000 || !isEvery(got.of(0), 900) {
		t.Errorf("%s", want)
	}
	c.alike()
	for _, m := range c.members {
		m.stop()
	}
	for _, m := range c.members[1:] {
		if m.hash != c.members[0].hash {
			t.Errorf("member %d has another state than member 1", m.id)
		}
	}
}
