package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// schema is a JSON schema as far as the documents use it.
type schema struct {
	Ref        string   `json:"$ref"`
	Type       any      `json:"type"` // a name or several
	Format     string   `json:"format"`
	Encoding   string   `json:"contentEncoding"`
	Enum       []any    `json:"enum"`
	Const      any      `json:"const"`
	OneOf      []schema `json:"oneOf"`
	Items      *schema  `json:"items"`
	Properties map[string]schema
}

// media is a body by its type.
type media map[string]struct{ Schema schema }

// described is an operation of a document.
type described struct {
	ID         string `json:"operationId"`
	Parameters []struct{ Name, In string }
	Body       struct{ Content media } `json:"requestBody"`
	Responses  map[string]struct{ Content media }

	method string
	path   *regexp.Regexp
	asked  map[string]bool // members and parameters that a call has sent
}

// document is a service's OpenAPI document.
type document struct {
	Paths      map[string]map[string]*described
	Components struct{ Schemas map[string]schema }

	byID map[string]*described
}

func readDocument(t *testing.T, service string) *document {
	t.Helper()
	text := must.Get(os.ReadFile("../openapi/" + service + ".json"))(t)
	d := &document{byID: map[string]*described{}}
	must.OK(t, json.Unmarshal(text, d))
	inPath := regexp.MustCompile(`\\\{[a-zA-Z]+\\\}`)
	for path, methods := range d.Paths {
		for method, o := range methods {
			o.method, o.asked = strings.ToUpper(method), map[string]bool{}
			one := "[^/]+"
			if strings.HasSuffix(path, "{tile}") {
				one = ".+" // which the document says
			}
			o.path = regexp.MustCompile("^" + inPath.ReplaceAllString(regexp.QuoteMeta(path), one) + "$")
			d.byID[o.ID] = o
		}
	}
	return d
}

func (d *document) resolve(s schema) schema {
	if s.Ref != "" {
		return d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// example is a value with every member that a schema names; with nulls, null where it may be.
func (d *document) example(s schema, nulls bool) any {
	s = d.resolve(s)
	if slices.ContainsFunc(s.OneOf, func(one schema) bool { return one.Type == "null" }) && nulls {
		return nil
	}
	for _, one := range s.OneOf {
		if one.Type != "null" {
			return d.example(one, nulls)
		}
	}
	kind, _ := s.Type.(string)
	if several, ok := s.Type.([]any); ok {
		kind = several[0].(string)
		if nulls && slices.Contains(several, "null") {
			return nil
		}
	}
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case kind == "array":
		return []any{d.example(*s.Items, nulls)}
	case kind == "object":
		all := map[string]any{}
		for name, member := range s.Properties {
			all[name] = d.example(member, nulls)
		}
		return all
	case kind == "integer":
		return 7.0
	case kind == "number":
		return 1.5
	case kind == "boolean":
		return true
	case s.Format == "date-time":
		return "2026-03-02T10:00:00.001Z"
	case s.Encoding == "base64":
		return "AQI="
	}
	return "2026-03-02"
}

// success is the answer that a call must read.
func (d *document) success(o *described, nulls bool) (status int, body []byte, structured bool) {
	for _, code := range []int{200, 201, 202} {
		answer, ok := o.Responses[map[int]string{200: "200", 201: "201", 202: "202"}[code]]
		if !ok {
			continue
		}
		for _, kind := range []string{"application/json", "application/x-ndjson"} {
			if m, ok := answer.Content[kind]; ok {
				body, _ := json.Marshal(d.example(m.Schema, nulls))
				return code, body, true
			}
		}
		return code, []byte("any text"), false
	}
	return 0, nil, false
}

// check makes a call against a scripted server, and compares it with the document.
func (d *document) check(t *testing.T, o operation) {
	of := d.byID[o.id]
	if of == nil {
		t.Fatal("the document has no such operation")
	}
	status, body, structured := d.success(of, false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, s := scripted(t, Config{Token: "tok"}, reply{status, string(body)})
	c.link.pause = func(context.Context, int) { cancel() }
	got, err := o.call(ctx, c)
	if asked := s.requests()[0]; asked != o.want {
		t.Errorf("asked %s\nwant  %s", asked, o.want)
	}
	d.compareRequest(t, of, s.requests()[0])
	if o.stream {
		return
	}
	text, raw := got.([]byte)
	if !raw {
		text, _ = json.Marshal(got)
	}
	if err != nil || (structured || raw) && !equalJSON(text, body) {
		t.Errorf("%v: read  %s\nof %s", err, text, body)
	}
	checkFailures(t, o, reply{status, string(body)}, raw)
	_, nulls, _ := d.success(of, true)
	c, _ = scripted(t, Config{Token: "tok"}, reply{status, string(nulls)})
	if _, err := o.call(ctx, c); err != nil {
		t.Errorf("%v of %s", err, nulls)
	}
}

// checkFailures looks at what becomes of an answer that is not a success.
func checkFailures(t *testing.T, o operation, good reply, raw bool) {
	ctx := t.Context()
	c, _ := scripted(t, Config{Token: "tok"}, reply{500, "{}"}, reply{299, "{}"},
		reply{good.status, "["})
	var p *Problem
	if _, err := o.call(ctx, c); !errors.As(err, &p) || p.Status != 500 || !Unknown(err) {
		t.Errorf("500: %v", err)
	}
	if _, err := o.call(ctx, c); !errors.As(err, &p) || p.Status != 299 {
		t.Errorf("299: %v", err)
	}
	if _, err := o.call(ctx, c); errors.Is(err, ErrAnswer) == raw {
		t.Errorf("an unreadable answer: %v", err)
	}
	patient := Config{Token: "tok", Retries: 2, Pause: func(context.Context, int) {}}
	c, s := scripted(t, patient, reply{}, reply{504, "{}"}, good)
	if _, err := o.call(ctx, c); (err != nil) != o.once || (len(s.requests()) == 1) != o.once {
		t.Errorf("unknown: %v after %d requests", err, len(s.requests()))
	}
	c, s = scripted(t, patient, reply{503, `{"code":"X","sequenced":false}`}, good)
	if _, err := o.call(ctx, c); err != nil || len(s.requests()) != 2 {
		t.Errorf("not sequenced: %v after %d requests", err, len(s.requests()))
	}
}

func equalJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	one, _ := json.Marshal(x)
	other, _ := json.Marshal(y)
	return bytes.Equal(one, other)
}

// compareRequest compares what was asked with the document, and notes what was sent.
func (d *document) compareRequest(t *testing.T, o *described, asked string) {
	t.Helper()
	method, rest, _ := strings.Cut(asked, " ")
	target, rest, _ := strings.Cut(rest, " ")
	path, query, _ := strings.Cut(target, "?")
	if method != o.method || !o.path.MatchString(path) {
		t.Errorf("%s %s is not %s %s", method, path, o.method, o.path)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Error(err)
	}
	for name := range values {
		o.asked["?"+name] = true
	}
	if _, body, _ := strings.Cut(rest, "tok "); body != "" {
		var v any
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&v); err != nil {
			t.Error(err)
		}
		members("", v, o.asked)
	}
}

// members adds the paths of all members of a value.
func members(at string, v any, to map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			to[at+"."+name] = true
			members(at+"."+name, member, to)
		}
	case []any:
		for _, item := range v {
			members(at, item, to)
		}
	}
}

// everythingAsked: the calls have sent all members and parameters of all operations, and no others.
func (d *document) everythingAsked(t *testing.T) {
	for id, o := range d.byID {
		want := map[string]bool{}
		for _, p := range o.Parameters {
			if p.In == "query" {
				want["?"+p.Name] = true
			}
		}
		if m, ok := o.Body.Content["application/json"]; ok {
			members("", d.example(m.Schema, false), want)
		}
		if !maps.Equal(want, o.asked) {
			t.Errorf("%s: sent %v\nwant %v", id, slices.Sorted(maps.Keys(o.asked)),
				slices.Sorted(maps.Keys(want)))
		}
	}
}
