package httpapi

import (
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"posttrade/blotter/feed"
	"posttrade/ring/must"
)

// TestReadsTakeWhatTheDocumentsSay: the headers that make a read wait, the bounds of the numbers in
// a query, and a status for a token that is good for metrics alone.
func TestReadsTakeWhatTheDocumentsSay(t *testing.T) {
	m := newRig(t, enforced)
	m.serve(func(d *Deps) {
		d.AsOf, d.Feed = newPast(t), feed.New(feed.Options{})
		d.Acts, d.Evidence = fakeActs{}, &fakeEvidence{note: []byte("a note\n")}
	})
	p := newProcessorRig(t)
	for _, s := range []struct {
		api  api
		call func(q request) answer
		now  int64
	}{
		{matcherAPI, m.call, m.now.Load()},
		{processorAPI, p.call, p.now.Load()},
		{accountAPI, newAccountRig(t, auth{}).call, testStart},
		{referenceAPI, newReferenceRig(t, auth{}).call, testStart},
	} {
		admin := namedToken(s.now, "admin")
		scraper := namedToken(s.now, "metrics")
		for path, item := range must.Get(s.api.load())(t).Paths.Map() {
			if item.Get == nil {
				continue
			}
			at := instances.Replace(path)
			s.call(request{method: "GET", path: at, token: scraper}) // call checks the status
			// refused reports that a request is 400 for what it says under a name.
			refused := func(name, query string, header map[string]string) bool {
				a := s.call(request{method: "GET", path: at + query, token: admin, header: header})
				return a.status == 400 && strings.Contains(string(a.body), `"field":"`+name+`"`)
			}
			for _, name := range []string{headerMinSequence, headerMinVersion} {
				documented := item.Get.Parameters.GetByInAndName("header", name) != nil
				if taken := refused(name, "", map[string]string{name: "x"}); taken != documented {
					t.Errorf("GET %s takes %s: %v, documented: %v", path, name, taken, documented)
				}
			}
			for _, parameter := range item.Get.Parameters {
				q := parameter.Value
				if q.In != "query" || !q.Schema.Value.Type.Is(openapi3.TypeInteger) {
					continue
				}
				most := uint64(1<<64 - 1)
				if q.Schema.Value.Max != nil {
					most = uint64(*q.Schema.Value.Max) + 1
				}
				over := "?" + q.Name + "=" + strconv.FormatUint(most, 10)
				if bound := q.Schema.Value.Max != nil; refused(q.Name, over, nil) != bound {
					t.Errorf("GET %s%s: refused: %v, documented: %v", path, over, !bound, bound)
				}
			}
		}
	}
}
