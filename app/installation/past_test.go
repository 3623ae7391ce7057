package installation

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/journal/asof"
	"posttrade/ring/must"
)

// pastFlow sends a random history to a server, and keeps what the server answers about its state.
type pastFlow struct {
	t      *testing.T
	rnd    *rand.Rand
	post   func(path, body string) (status int, answer string)
	get    func(path string) string // an answer of the server that the commands go to
	head   func() uint64            // its last sequence
	policy int
	orders int
	seen   map[uint64]map[string]string
}

var (
	pastTickers  = []string{"AAPL", "MSFT", "IBM"}
	pastAccounts = []int{22214, 11413, 42422}
)

// pastPaths are the endpoints that have a past. The first names are those of the live ones.
func (f *pastFlow) paths() []string {
	paths := []string{"/positions", "/credit", "/orders?status=all&limit=1000",
		"/risk/control/snapshot", "/contracts", fmt.Sprintf("/orders/ord-%d", 1+f.rnd.IntN(f.orders+1)),
		fmt.Sprintf("/orders?accountId=%d&status=open", pick(f.rnd, pastAccounts)),
		fmt.Sprintf("/positions?accountId=%d", pick(f.rnd, pastAccounts))}
	for _, ticker := range pastTickers {
		paths = append(paths, "/book/"+ticker+"?depth=5")
	}
	return paths
}

func pick[T any](rnd *rand.Rand, of []T) T { return of[rnd.IntN(len(of))] }

// command sends one random command.
func (f *pastFlow) command() {
	account, ticker := pick(f.rnd, pastAccounts), pick(f.rnd, pastTickers)
	side := pick(f.rnd, []string{"Buy", "Sell"})
	px := func() string { return strconv.Itoa(95 + f.rnd.IntN(11)) }
	qty := 1 + f.rnd.IntN(50)
	switch n := f.rnd.IntN(100); {
	case n < 50:
		f.send("/orders", fmt.Sprintf(
			`{"accountId":%d,"security":%q,"side":%q,"quantity":%d,"limitPrice":%s,"timeInForce":%q}`,
			account, ticker, side, qty, px(), pick(f.rnd, []string{"GTC", "GTC", "GTC", "IOC", "FOK"})))
	case n < 55:
		f.send("/orders", fmt.Sprintf(
			`{"accountId":%d,"security":%q,"side":%q,"quantity":%d,"type":"MARKET"}`, account, ticker, side,
			qty))
	case n < 65:
		f.send(fmt.Sprintf("/orders/ord-%d/cancel", 1+f.rnd.IntN(f.orders+1)), "")
	case n < 73:
		f.send(fmt.Sprintf("/orders/ord-%d/replace", 1+f.rnd.IntN(f.orders+1)),
			fmt.Sprintf(`{"quantity":%d,"limitPrice":%s}`, qty, px()))
	case n < 79:
		f.send("/prices", fmt.Sprintf(`[{"security":%q,"price":%s}]`, ticker, px()))
	case n < 84:
		f.send("/trades", fmt.Sprintf(`{"accountId":%d,"security":%q,"side":%q,"quantity":%d}`,
			account, ticker, side, qty))
	case n < 87:
		f.send("/risk/control/account", fmt.Sprintf(`{"accountId":%d,"enabled":%t}`, account,
			f.rnd.IntN(4) > 0))
	case n < 90:
		f.send("/risk/control/security", fmt.Sprintf(`{"security":%q,"enabled":true,"halted":%t}`,
			ticker, f.rnd.IntN(4) == 0))
	case n < 92:
		f.send("/risk/control/restriction", fmt.Sprintf(`{"security":%q,"restricted":%t}`, ticker,
			f.rnd.IntN(3) == 0))
	case n < 93:
		f.policy++
		path, collar := "/risk/control/limits", 100+f.rnd.IntN(900)
		credit := 1_000_000_000 + 1000*collar
		if f.rnd.IntN(2) == 0 {
			path = fmt.Sprintf("/risk/control/accounts/%d/limits", account)
		}
		f.send(path, fmt.Sprintf(
			`{"policyVersion":%d,"limits":{"maxOrderQuantity":%d,"priceCollarBps":%d,`+
				`"creditLimit":%d}}`, f.policy, 30+f.rnd.IntN(30), collar, credit))
	case n < 95:
		f.policy++
		f.send("/risk/control/policy", fmt.Sprintf(
			`{"policyVersion":%d,"killSwitch":false,"maxPositionQuantity":%d}`, f.policy,
			100+f.rnd.IntN(1000)))
	default:
		f.send("/swaps", fmt.Sprintf(`{"accountId":%d,"payReceive":"Pay","notional":%d,"fixedRate":0.04,`+
			`"effectiveDate":"2026-03-04","maturityDate":"2031-03-04","conventions":"USD-SOFR-1Y-ACT360"}`,
			account, 1000+qty))
	}
}

// send sends a command and notes the order that it made, if it made one.
func (f *pastFlow) send(path, body string) {
	f.t.Helper()
	status, answer := f.post(path, body)
	if status >= 500 {
		f.t.Fatalf("POST %s %s: %d %s", path, body, status, answer)
	}
	var made struct{ OrderID string }
	if err := json.Unmarshal([]byte(answer), &made); err != nil {
		f.t.Fatalf("POST %s: %d %s: %v", path, status, answer, err)
	}
	if n, ok := strings.CutPrefix(made.OrderID, "ord-"); ok {
		number, _ := strconv.Atoi(n)
		f.orders = max(f.orders, number)
	}
}

// look keeps what the server shows now.
func (f *pastFlow) look() {
	head, now := f.head(), map[string]string{}
	for _, path := range f.paths() {
		now[path] = f.get(path)
	}
	f.seen[head] = now
}

// decided removes from an answer of now what no sequence decides.
func decided(t *testing.T, path, answer string) string {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(answer))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v: %s", path, err, answer)
	}
	if path == "/risk/control/snapshot" {
		delete(v.(map[string]any), "ready")
		delete(v.(map[string]any), "sources")
	}
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// compare asks for moments that were looked at, in random order.
func (f *pastFlow) compare(most int, get func(path string) (int, http.Header, string)) {
	f.t.Helper()
	moments := slices.Sorted(maps.Keys(f.seen))
	f.rnd.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
	moments = moments[:min(most, len(moments))]
	for _, at := range moments {
		for path, want := range f.seen[at] {
			status, header, answer := get(fmt.Sprintf("/as-of/%d%s", at, path))
			if strings.Contains(want, `"status":404`) {
				if status != 404 || answer != want {
					f.t.Fatalf("as of %d %s: %d %s, then %s", at, path, status, answer, want)
				}
				continue
			}
			if status != 200 || header.Get("X-As-Of-Sequence") != strconv.FormatUint(at, 10) {
				f.t.Fatalf("as of %d %s: %d %v %s", at, path, status, header, answer)
			}
			if answer == want && json.Valid([]byte(answer)) {
				continue
			}
			if got, want := decided(f.t, path, answer), decided(f.t, path, want); got != want {
				f.t.Fatalf("as of %d %s:\n%s\nthe answer at that time:\n%s", at, path, got, want)
			}
		}
	}
}

// pastMoments is how many moments are compared.
const pastMoments = 1000

// ask makes one request with a token.
func ask(t *testing.T, method, url, token, body string) (int, http.Header, string) {
	t.Helper()
	request := must.Get(http.NewRequest(method, url, strings.NewReader(body)))(t)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	status, header, text := answerTo(t, request)
	return status, header, strings.TrimSpace(text)
}

// answerTo makes a request and reads its answer.
func answerTo(t *testing.T, request *http.Request) (int, http.Header, string) {
	t.Helper()
	answer := must.Get(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	text := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, answer.Header, string(text)
}

// TestPastIsWhatWasAnsweredThen compares every endpoint of the past with what the server answered
// when the sequence was its head: orders, positions, books, controls and contracts, before and
// after a restart, then from checkpoints.
func TestPastIsWhatWasAnsweredThen(t *testing.T) {
	data := t.TempDir()
	options := []string{"sidecars.enabled", "false", "journal.durability", "os"}
	in := install(t, data, options...)
	base := func(path string) string { return "http://" + in.at("order-matcher") + path }
	f := &pastFlow{t: t, rnd: rand.New(rand.NewPCG(*daySeed, 1)), seen: map[uint64]map[string]string{},
		head: func() uint64 { return in.Core.Views.Applied() },
		post: func(path, body string) (int, string) {
			status, _, answer := ask(t, "POST", base(path), in.token, body)
			return status, answer
		},
		get: func(path string) string {
			_, _, answer := ask(t, "GET", base(path), in.token, "")
			return answer
		}}
	for len(f.seen) < pastMoments {
		f.command()
		f.look()
		if len(f.seen)%50 == 0 {
			f.credit()
		}
	}
	past := func(path string) (int, http.Header, string) {
		return ask(t, "GET", base(path), in.token, "")
	}
	f.compare(100, past)
	f.commandLine(data, past, slices.Max(slices.Collect(maps.Keys(f.seen))))
	dense := must.Get(asof.New(in.Core.Journal,
		asof.Options{Dir: filepath.Join(data, "asof"), Interval: 100}))(t)
	apptest.Until(t, "checkpoints", func() (bool, any) { // of what is on stable storage
		must.OK(t, dense.Checkpoint(t.Context()))
		n, _ := dense.Checkpoints()
		return uint64(n) >= in.Core.Journal.Answered()/100, n
	})
	must.OK(t, dense.Close())
	in.stop()

	in = install(t, data, options...)
	if n, bytes := in.past.Checkpoints(); n < 5 || bytes == 0 {
		t.Errorf("%d checkpoints of %d bytes", n, bytes)
	}
	f.compare(pastMoments, past)
	_, metrics := in.get("admin", "/metrics")
	if !strings.Contains(string(metrics), "svc_asof_bytes ") || in.past.Bytes() == 0 ||
		in.past.Warm() > asof.MaxWarm {
		t.Errorf("%d engines of %d bytes are kept", in.past.Warm(), in.past.Bytes())
	}
}

// commandLine compares what the program prints, beside the running server, with what the server
// answers, and decides the whole history anew.
func (f *pastFlow) commandLine(data string, get func(path string) (int, http.Header, string),
	head uint64) {
	f.t.Helper()
	run := func(args ...string) string {
		code, out, errs := apptest.Run(args[0], append(args[1:], "--data.dir="+data)...)
		if code != 0 {
			f.t.Fatalf("%v: %d %s", args, code, errs)
		}
		return strings.TrimSpace(out)
	}
	at := strconv.FormatUint(head/2, 10)
	for _, tt := range [][2]string{{"book AAPL --depth=5", "/book/AAPL?depth=5"},
		{"positions", "/positions?limit=1000"}, {"controls", "/risk/control/snapshot"}} {
		_, _, want := get("/as-of/" + at + tt[1])
		args := append([]string{"inspect", "--at=" + at}, strings.Fields(tt[0])...)
		if got := run(args...); got != want {
			f.t.Errorf("%v:\n%s\nthe server answers\n%s", args, got, want)
		}
	}
	_, _, want := get("/orders/ord-7/why")
	if got := run("why", "ord-7"); got != want || !strings.Contains(got, `"orderId":"ord-7"`) {
		f.t.Errorf("why:\n%s\nthe server answers\n%s", got, want)
	}
	if got := run("what-if", "--from=1"); !strings.Contains(got, "\nno difference\n") {
		f.t.Errorf("what if nothing changes: %s", got)
	}
}

// TestPastOfAFollower compares what a follower shows of the past with what the leader answered.
func TestPastOfAFollower(t *testing.T) {
	c := newThree(t)
	c.start()
	leader := c.leader()
	f := &pastFlow{t: t, rnd: rand.New(rand.NewPCG(*daySeed, 2)), seen: map[uint64]map[string]string{},
		head: func() uint64 { return c.members[leader].open().Core.Views.Applied() },
		post: func(path, body string) (int, string) { return c.post(leader, path, body) },
		get: func(path string) string {
			_, _, answer := ask(t, "GET", "http://"+c.http[leader]+path, c.token(), "")
			return answer
		}}
	for len(f.seen) < pastMoments {
		f.command()
		f.look()
	}
	c.alike()
	f.compare(pastMoments, func(path string) (int, http.Header, string) {
		return ask(t, "GET", "http://"+c.http[(leader+1)%3]+path, c.token(), "")
	})
}

// TestPastTradesAndAccounts compares the trades and the accounts of the past with what the
// trade-processor and the account-service answered, without what no sequence decides.
func TestPastTradesAndAccounts(t *testing.T) {
	in := install(t, t.TempDir())
	url := func(service, path string) string { return "http://" + in.at(service) + path }
	apptest.Until(t, "the seeds are in SQL and the gate knows them", func() (bool, any) {
		_, _, accounts := ask(t, "GET", url("account-service", "/account/"), in.token, "")
		_, _, known := ask(t, "GET", url("order-matcher", "/risk/control/snapshot"), in.token, "")
		status, answer := in.get("admin", "/readyz")
		return status == 200 && accounts != "[]" && strings.Contains(known, "40122"), string(answer)
	})
	f := &pastFlow{t: t, rnd: rand.New(rand.NewPCG(*daySeed, 3)), seen: map[uint64]map[string]string{},
		head: func() uint64 { return in.Core.Views.Applied() },
		post: func(path, body string) (int, string) {
			status, _, answer := ask(t, "POST", url("order-matcher", path), in.token, body)
			return status, answer
		}}
	paths := map[string]string{"/accounts": "account-service",
		"/trades?security=IBM": "trade-processor"}
	for _, account := range pastAccounts {
		paths[fmt.Sprintf("/trades?accountId=%d&limit=1000", account)] = "trade-processor"
	}
	for range 30 {
		for range 8 {
			f.command()
		}
		apptest.Until(t, "every fill is in SQL", func() (bool, any) {
			done, _ := in.Beside.Load().projection.Projected()
			return done == in.tradeSeq(), done
		})
		now := map[string]string{}
		for path, service := range paths {
			live := path
			if path == "/accounts" {
				live = "/account/"
			}
			_, _, now[path] = ask(t, "GET", url(service, live), in.token, "")
		}
		f.seen[f.head()] = now
	}
	trades := 0
	for at, now := range f.seen {
		for path, want := range now {
			_, _, got := ask(t, "GET", url("order-matcher", fmt.Sprintf("/as-of/%d%s", at, path)), in.token,
				"")
			if want = without(t, want, "displayName", "status", "settlementDate", "updatedAt"); got != want {
				t.Fatalf("as of %d %s:\n%s\nthe answer at that time:\n%s", at, path, got, want)
			}
			trades += strings.Count(got, `"tradeSeq"`)
		}
	}
	if trades == 0 {
		t.Error("nothing has traded")
	}
}

// without removes members from the objects of an answer, and keeps the text of the others.
func without(t *testing.T, answer string, names ...string) string {
	t.Helper()
	for _, name := range names {
		answer = regexp.MustCompile(`,"`+name+`":("[^"]*"|null)`).ReplaceAllString(answer, "")
	}
	return answer
}
