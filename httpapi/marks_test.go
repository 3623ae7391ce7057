package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

const (
	putMarksRequest = "PUT /eod/prices/2026-03-02/v1"
	goodMarks       = `[{"security":"AAA","price":100.25},{"security":"BRK.B","price":"0.000001",` +
		`"quality":"OFFICIAL"}]`
)

// marker is the Marks of fakes.
type marker struct{ *fakes }

func (f marker) PutMarks(ctx context.Context, session store.Date, version uint32,
	marks []store.Mark) error {
	if err := f.call(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := fmt.Sprint(session, version)
	if known, ok := f.marks[key]; ok && !slices.Equal(known, marks) {
		return fmt.Errorf("store: put marks: %w", store.ErrConflict)
	}
	if f.marks == nil {
		f.marks = map[string][]store.Mark{}
	}
	f.marks[key] = marks
	return nil
}

// badMarks are bodies that are refused before anything behind the edge is called.
var badMarks = []string{
	``, `[]`, `{}`, `null`, `[null]`, `[[]]`, `[{}]`, `[{"security":"AAA"}]`, `[{"price":1}]`,
	`[{"security":"AAA","price":1}`, `[{"security":"AAA","price":1}]x`,
	`[{"security":"AAA","price":0}]`, `[{"security":"AAA","price":-1}]`,
	`[{"security":"AAA","price":null}]`, `[{"security":"AAA","price":0.0000001}]`,
	`[{"security":"AAA","price":9223372036854.775808}]`, `[{"security":"AAA","price":"1.0 "}]`,
	`[{"security":"AAA","price":NaN}]`,
	`[{"security":"","price":1}]`, `[{"security":"A A","price":1}]`, `[{"security":"A,A","price":1}]`,
	`[{"security":"A\"A","price":1}]`,
	`[{"security":"A\n","price":1}]`, `[{"security":"É","price":1}]`, `[{"security":7,"price":1}]`,
	`[{"security":"` + strings.Repeat("A", 33) + `","price":1}]`,
	`[{"security":"AAA","price":1,"quality":""}]`, `[{"security":"AAA","price":1,"quality":null}]`,
	`[{"security":"AAA","price":1,"quality":"a b"}]`,
	`[{"security":"AAA","price":1,"quality":"` + strings.Repeat("q", 33) + `"}]`,
	`[{"security":"AAA","price":1,"quality":1}]`,
	`[{"security":"AAA","price":1,"extra":1}]`, `[{"security":"AAA","price":1,"price":1}]`,
	`[{"security":"AAA","price":1},{"security":"BBB","price":1},{"security":"AAA","price":1}]`,
}

func marksRows() (rows []row) {
	for _, token := range []string{"", "bad", "expired"} {
		rows = append(rows, row{putMarksRequest, goodMarks, token, 401, CodeUnauthorized})
	}
	for _, path := range []string{"2026-3-2/v1", "2026-02-30/v1", "1969-12-31/v1", "2149-06-07/v1",
		"20260302/v1", "2026-03-02/v0", "2026-03-02/v01",
		"2026-03-02/v4294967296", "2026-03-02/v-1", "2026-03-02/vv1", "2026-03-02/v1.0",
		strings.Repeat("2", 62) + "/v1"} {
		rows = append(rows, row{"PUT /eod/prices/" + path, goodMarks, "admin", 400, CodeBadRequest})
	}
	for _, path := range []string{"", "2026-03-02", "2026-03-02/", "2026-03-02/1", "2026-03-02/v",
		"2026-03-02/v1/", "2026-03-02/v1/x", "2026-03-02/V1"} {
		rows = append(rows, row{"PUT /eod/prices/" + path, goodMarks, "admin", 404, CodeNotFound})
	}
	for _, body := range badMarks {
		rows = append(rows, row{putMarksRequest, body, "admin", 400, CodeMalformedBody})
	}
	return append(rows,
		row{putMarksRequest, goodMarks, "one", 403, CodeAdminRequired},
		row{putMarksRequest, "{", "one", 403, CodeAdminRequired},
		row{"PUT /eod/prices/x/v1", "{", "one", 403, CodeAdminRequired},
		row{putMarksRequest, goodMarks, "admin", 200, ""},
		row{putMarksRequest, goodMarks, "admin", 200, ""},
		row{putMarksRequest, strings.Replace(goodMarks, "100.25", "100.26", 1), "admin", 409,
			CodeMarksDiffer},
		row{"PUT /eod/prices/2026-03-02/v2", strings.Replace(goodMarks, "100.25", "100.26", 1),
			"admin", 200, ""},
		row{"PUT /eod/prices/1970-01-01/v4294967295", goodMarks, "admin", 200, ""},
		row{"PUT /eod/prices/2149-06-06/v1", goodMarks, "admin", 200, ""},
		row{"GET /eod/prices/2026-03-02/v1", "", "admin", 405, CodeMethodNotAllowed},
		row{"POST /eod/prices/2026-03-02/v1", goodMarks, "admin", 405, CodeMethodNotAllowed},
	)
}

// TestMarksArePublishedOnce runs over both databases.
func TestMarksArePublishedOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		sql := &riskextract.SQLMarks{DB: db, Now: func() time.Time { return time.UnixMilli(testStart) }}
		r := newProcessorRig(t, func(d *ProcessorDeps) { d.Marks = sql })
		put := func(path, body string) answer {
			t.Helper()
			return r.call(request{method: "PUT", path: path, body: body,
				token: namedToken(testStart, "admin")})
		}
		const path = "/eod/prices/2026-03-02/v1"
		if got := string(put(path, goodMarks).want(t, 200,
			"").body); got != `{"sessionDate":"2026-03-02","priceVersion":1,"marks":2}` {
			t.Errorf("%s", got)
		}
		swapped := `[{"quality":"OFFICIAL","price":1e-6,"security":"BRK.B"},{"price":"100.250",` +
			`"security":"AAA"}]`
		put(path, swapped).want(t, 200, "") // the same marks, written otherwise
		for _, body := range []string{
			`[{"security":"AAA","price":100.25}]`, strings.Replace(goodMarks, "OFFICIAL", "official", 1),
			strings.Replace(goodMarks, `,"quality":"OFFICIAL"`, "", 1),
			strings.Replace(goodMarks, "AAA", "AAB", 1),
		} {
			put(path, body).want(t, 409, CodeMarksDiffer)
		}
		put("/eod/prices/2026-03-02/v2", `[{"security":"AAA","price":7}]`).want(t, 200, "")
		for version, want := range map[uint32][]store.Mark{
			1: {{Security: "AAA", Price: 100_250_000}, {Security: "BRK.B", Price: 1, Quality: "OFFICIAL"}},
			2: {{Security: "AAA", Price: 7_000_000}},
		} {
			got, found, err := sql.Marks(t.Context(), store.DateOf(2026, 3, 2), version)
			if err != nil || !found || !slices.Equal(got, want) {
				t.Errorf("version %d: %+v %v %v", version, got, found, err)
			}
		}
	})
}

// TestManyMarksAreOneBody publishes more than an ordinary body may hold.
func TestManyMarksAreOneBody(t *testing.T) {
	r := newProcessorRig(t)
	marks := make([]string, 4000)
	for i := range marks {
		marks[i] = fmt.Sprintf(`{"security":"S%d","price":%d}`, i, i+1)
	}
	q := request{method: "PUT", path: "/eod/prices/2026-03-02/v1",
		body: "[" + strings.Join(marks, ",") + "]", token: namedToken(testStart, "admin")}
	if len(q.body) <= maxBodyBytes {
		t.Fatalf("%d bytes", len(q.body))
	}
	if a := r.call(q).want(t, 200, ""); a.field(t, "marks") != "4000" {
		t.Errorf("%s", a.body)
	}
	r.fakes.set(func() { r.fakes.err = fmt.Errorf("store: %w", store.ErrUnavailable) })
	if a := r.call(q).want(t, 503, CodeDatabaseUnavailable); a.field(t, "sequenced") != nil {
		t.Errorf("the outcome is unknown: %s", a.body)
	}
	r.fakes.set(func() { r.fakes.err = fmt.Errorf("store: %w", store.ErrMark) })
	r.call(q).want(t, 400, CodeMalformedBody)
	q.body += strings.Repeat(" ", maxLargeBodyBytes)
	roundTrip(t, r.address, q).want(t, 413, CodeBodyTooLarge)
}
