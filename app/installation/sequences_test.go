package installation

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"posttrade/httpapi/client"
	"posttrade/ring/must"
)

// TestReadYourWrites: a read with the sequence of a write shows it, in memory and in SQL.
//
// The grace is long: an entry that is missing for longer than the grace has a class, and the
// reconciliation's sequence passes it.
func TestReadYourWrites(t *testing.T) {
	i := install(t, t.TempDir(), "recon.grace-ms", "600000")
	read := func(service, path, min string) (int, http.Header, string) {
		request := must.Get(http.NewRequest("GET", "http://"+i.at(service)+path, nil))(t)
		request.Header.Set("Authorization", "Bearer "+i.token)
		request.Header.Set("X-Min-Sequence", min)
		return answerTo(t, request)
	}
	for n := range 5 {
		i.limit(1, client.Sell, 1, 10)
		buy := i.limit(2, client.Buy, 1, 10)
		min := strconv.FormatUint(buy.Sequence, 10)
		taker := "trd-" + strconv.Itoa(2*n+1)
		for _, tt := range []struct{ service, path, want string }{
			{"order-matcher", "/orders?status=all&limit=1000", buy.OrderID},
			{"order-matcher", "/positions?accountId=2", `"quantity":` + strconv.Itoa(n+1)},
			{"trade-processor", "/trades/" + taker, taker},
			{"trade-processor", "/trades?limit=1000", taker},
			{"trade-processor", "/recon/status", `"matched":` + strconv.Itoa(2*n+2)},
			{"trade-processor", "/recon/breaks", `"items":[]`},
		} {
			status, header, body := read(tt.service, tt.path, min)
			at, _ := strconv.ParseUint(header.Get("X-As-Of-Sequence"), 10, 64)
			if status != 200 || at < buy.Sequence || !strings.Contains(body, tt.want) {
				t.Errorf("%s %s from %s: %d as of %d, want %s\n%s", tt.service, tt.path, min, status, at,
					tt.want, body)
			}
		}
	}
	for _, service := range []string{"order-matcher", "trade-processor"} {
		path := map[string]string{"order-matcher": "/orders", "trade-processor": "/trades"}[service]
		if status, _, body := read(service, path, "1000000"); status != 503 ||
			!strings.Contains(body, `"code":"NOT_YET"`) {
			t.Errorf("%s: %d %s, want NOT_YET", service, status, body)
		}
		if status, _, body := read(service, path, "x"); status != 400 ||
			!strings.Contains(body, "X-Min-Sequence") {
			t.Errorf("%s: %d %s, want 400", service, status, body)
		}
	}
}

// TestReadYourVersions: the same of the two control sources.
func TestReadYourVersions(t *testing.T) {
	i := install(t, t.TempDir())
	for _, tt := range []struct{ service, list, body string }{
		{"account-service", "/account/", `{"id":777,"displayName":"Seven"}`},
		{"reference-data", "/stocks", `{"ticker":"ZZTOP","companyName":"Z"}`},
	} {
		ask := func(method, min, body string) (int, uint64) {
			request := must.Get(http.NewRequest(method, "http://"+i.at(tt.service)+tt.list,
				strings.NewReader(body)))(t)
			request.Header.Set("Authorization", "Bearer "+i.token)
			if request.Header.Set("Content-Type", "application/json"); min != "" {
				request.Header.Set("X-Min-Version", min)
			}
			answer := must.Get(http.DefaultClient.Do(request))(t)
			defer answer.Body.Close()
			version, _ := strconv.ParseUint(answer.Header.Get("X-As-Of-Version"), 10, 64)
			return answer.StatusCode, version
		}
		status, written := ask("POST", "", tt.body)
		if status/100 != 2 || written == 0 {
			t.Fatalf("%s: write: %d, version %d", tt.service, status, written)
		}
		if status, at := ask("GET", strconv.FormatUint(written, 10), ""); status != 200 || at < written {
			t.Errorf("%s: read from %d: %d as of %d", tt.service, written, status, at)
		}
		if status, _ := ask("GET", strconv.FormatUint(written+1000, 10), ""); status != 503 {
			t.Errorf("%s: a version to come: %d, want 503", tt.service, status)
		}
		if status, _ := ask("GET", "x", ""); status != 400 {
			t.Errorf("%s: no version: %d, want 400", tt.service, status)
		}
	}
}
