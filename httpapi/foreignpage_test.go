package httpapi

import "testing"

// TestPagesOfOtherOriginsCannotWrite where a write needs no token: the browser names the page's
// origin. Clients that are no browsers, and a token that was verified, are not concerned.
func TestPagesOfOtherOriginsCannotWrite(t *testing.T) {
	r := newRig(t)
	seed(r)
	accounts := newAccountRig(t, auth{})
	for name, tt := range map[string]struct {
		origin, site string
		token        bool
		refused      bool
	}{
		"no browser":                     {},
		"another host":                   {origin: "http://evil.example", refused: true},
		"another port":                   {origin: "http://test:1", refused: true},
		"a sandboxed frame":              {origin: "null", refused: true},
		"a name that contains the host":  {origin: "http://test.evil.example", refused: true},
		"no scheme":                      {origin: "test", refused: true},
		"its own origin":                 {origin: "https://TEST"},
		"cross-site":                     {site: "cross-site", refused: true},
		"cross-site, as its own origin":  {origin: "http://test", site: "cross-site", refused: true},
		"same-site, of another port":     {origin: "http://test:1", site: "same-site", refused: true},
		"same-origin":                    {origin: "http://test", site: "same-origin"},
		"same-origin, behind a proxy":    {origin: "http://desk.example", site: "same-origin"},
		"the address bar":                {site: "none"},
		"a token, which no page can add": {origin: "http://a.example", site: "cross-site", token: true},
	} {
		q := request{method: "POST", header: map[string]string{}}
		if tt.origin != "" {
			q.header["Origin"] = tt.origin
		}
		if tt.site != "" {
			q.header["Sec-Fetch-Site"] = tt.site
		}
		if tt.token {
			q.token = r.token("", 1)
		}
		want := func(a answer, status int) {
			t.Helper()
			if !tt.refused {
				a.want(t, status, "")
			} else if a.want(t, 403, CodeForeignOrigin); a.field(t, "sequenced") != false {
				t.Errorf("%s: %s", name, a.body)
			}
		}
		before := r.sequence()
		q.path, q.body = "/orders", goodOrder
		want(r.call(q), 201)
		if tt.refused && r.sequence() != before {
			t.Errorf("%s: something was sequenced", name)
		}
		q.path, q.body = "/account/", `{"id":9,"displayName":"Nine"}`
		want(accounts.call(q), 200)
		q.path, q.body, q.method = "/positions", "", "GET" // a page cannot read the answer
		r.call(q).want(t, 200, "")
	}
	r.serve(func(d *Deps) { d.Enforced = true })
	a := r.call(request{method: "POST", path: "/orders", body: goodOrder, token: r.token("", 1),
		header: map[string]string{"Sec-Fetch-Site": "cross-site"}})
	a.want(t, 201, "")
}
