package installation

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/ring/must"
)

// unversioned are the reads that show nothing that a write has made, with the reason.
var unversioned = map[string]string{
	"/health":              "says how far everything is, at once",
	"/openapi.json":        "a file",
	"/actuator/prometheus": "figures of the process",
	"/feed":                "its ids are sequences, and Last-Event-ID is what it waits for",
}

// everyRead is an instance of each GET that a service documents. A new parameter of a path needs a
// value here.
func everyRead(t *testing.T, base string) (paths []string) {
	t.Helper()
	answer := must.Get(http.Get(base + "/openapi.json"))(t)
	defer answer.Body.Close()
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	must.OK(t, json.NewDecoder(answer.Body).Decode(&document))
	values := strings.NewReplacer("{orderId}", "ord-1", "{security}", "AAPL", "{tradeId}", "trd-1",
		"{accountId}", "1", "{ticker}", "AAPL", "{contractId}", "SW-3", "{inputSeq}", "3",
		"{tile}", "0/000")
	queries := map[string]string{"/why": "?inputSeq=1", "/evidence/proof": "?inputSeq=1",
		"/tca/summary": "?accountId=1", "/settlement/calendar": "?from=2026-01-01"}
	for path, methods := range document.Paths {
		if _, gets := methods["get"]; !gets || unversioned[path] != "" {
			continue
		}
		instance := values.Replace(path) + queries[path]
		if strings.Contains(instance, "{") {
			t.Errorf("%s: a parameter without a value", path)
		}
		paths = append(paths, instance)
	}
	slices.Sort(paths)
	return paths
}

// readSince reads with a header that names what must be in the answer.
func readSince(base, path, token, name string, value uint64) (status int, at string, body string,
	err error) {
	request, err := http.NewRequest("GET", base+path, nil)
	if err != nil {
		return 0, "", "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set(name, strconv.FormatUint(value, 10))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header.Get(strings.Replace(name, "Min", "As-Of", 1)),
		string(text), err
}

// checkEveryRead asks each read for what is there, and for what is not.
func checkEveryRead(t *testing.T, base, token, name string, written uint64) {
	t.Helper()
	var running sync.WaitGroup
	defer running.Wait()
	paths := everyRead(t, base)
	if len(paths) == 0 {
		t.Errorf("%s documents no read", base)
	}
	for _, path := range paths {
		running.Go(func() {
			status, at, body, err := readSince(base, path, token, name, written)
			n, _ := strconv.ParseUint(at, 10, 64)
			none := status == 404 && strings.HasPrefix(path, "/log/tile/") // the log is too short for one
			if err != nil || status != 200 && !none || n < written {
				t.Errorf("%s with %s: %d: %d as of %q, %v\n%.300s", path, name, written, status, at, err, body)
			}
			status, _, body, err = readSince(base, path, token, name, written+1_000_000)
			if err != nil || status != 503 || !strings.Contains(body, `"code":"NOT_YET"`) {
				t.Errorf("%s with %s to come: %d, %v\n%.300s", path, name, status, err, body)
			}
		})
	}
	t.Logf("%s: %d reads", base, len(paths))
}

// TestEveryReadHasYourWrites: each read of four services, in memory and in SQL, waits for what it
// is asked for, and says what it has in it.
func TestEveryReadHasYourWrites(t *testing.T) {
	i := install(t, t.TempDir(), "evidence.interval", "10ms")
	i.limit(1, client.Sell, 1, 10)
	i.limit(2, client.Buy, 1, 10)
	swap, err := i.orders.Swap(t.Context(), &client.SwapRequest{AccountID: 1, PayReceive: client.Pay,
		Notional: 1000, FixedRate: 30_000, EffectiveDate: "2026-01-01", MaturityDate: "2027-01-01",
		Conventions: "USD-SOFR-1Y-ACT360"})
	must.OK(t, err)
	must.Get(i.processor.OrphanSweep(t.Context()))(t) // the full history has it
	i.aProof(fmt.Sprint("inputSeq=", swap.Sequence))  // the log has it
	for _, service := range []string{"order-matcher", "trade-processor"} {
		checkEveryRead(t, "http://"+i.at(service), i.token, "X-Min-Sequence", swap.Sequence)
	}
	for service, path := range map[string]string{"account-service": "/account/",
		"reference-data": "/stocks"} {
		base := "http://" + i.at(service)
		_, at, _, err := readSince(base, path, i.token, "X-Min-Version", 0)
		version, bad := strconv.ParseUint(at, 10, 64)
		if err != nil || bad != nil {
			t.Fatalf("%s as of %q: %v", path, at, err)
		}
		checkEveryRead(t, base, i.token, "X-Min-Version", version)
	}
}

// TestAnyMemberHasYourWrites: what one member has answered is in the reads of all members.
func TestAnyMemberHasYourWrites(t *testing.T) {
	c := newThree(t)
	c.start()
	awaitRoles(t, c)
	for n := range 9 {
		o := fmt.Sprintf(`{"accountId":1,"security":"AAPL","side":"Buy","quantity":1,"limitPrice":%d}`,
			10+n)
		r := send(http.DefaultClient, "http://"+c.http[n%3]+"/orders", outcome{body: o})
		if r.status != 201 {
			t.Fatalf("order %d: %+v", n, r)
		}
		for _, at := range c.http {
			status, _, body, err := readSince("http://"+at, "/orders/"+r.orderID, "", "X-Min-Sequence",
				r.sequence)
			if err != nil || status != 200 {
				t.Errorf("%s at %s: %d %v %s", r.orderID, at, status, err, body)
			}
			status, asOf, body, err := readSince("http://"+at, "/book/AAPL", "", "X-Min-Sequence",
				r.sequence)
			if err != nil || status != 200 || !strings.Contains(body, fmt.Sprintf(`"price":%d`, 10+n)) {
				t.Errorf("the book at %s as of %s: %d %v %s", at, asOf, status, err, body)
			}
		}
	}
}

func awaitRoles(t *testing.T, c *three) {
	t.Helper()
	apptest.Until(t, "every member knows a leader", func() (bool, any) {
		for _, at := range c.http {
			if (&killedMember{http: at}).role() == "" {
				return false, at
			}
		}
		return true, nil
	})
}
