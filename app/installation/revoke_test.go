package installation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/matcher/note"
	"posttrade/ring/must"
)

// revoking is a real server whose tokens are revoked.
type revoking struct {
	*crashServer
	t     *testing.T
	data  string
	ports map[string]string
}

func (r *revoking) start(binary string) {
	r.t.Helper()
	r.crashServer = startForCrash(r.t, binary, r.data, "--risk.entitlement.enforced=true",
		"--reference.write-auth.enforced=true")
	text, err := os.ReadFile(filepath.Join(r.data, "ports.json"))
	if err == nil {
		err = json.Unmarshal(text, &r.ports)
	}
	must.OK(r.t, err)
}

// ask returns status and body of a request to a service.
func (r *revoking) ask(method, service, path, token, body string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequest(method, "http://"+r.ports[service]+path, strings.NewReader(body))
	must.OK(r.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	must.OK(r.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.OK(r.t, err)
	return answer.StatusCode, string(text)
}

// mint asks the server for a token.
func (r *revoking) mint(subject string, admin bool) string {
	r.t.Helper()
	secret, err := os.ReadFile(filepath.Join(r.data, "dev-token.secret"))
	must.OK(r.t, err)
	request, err := http.NewRequest("POST", "http://"+r.ports["trade-processor"]+"/auth/dev-token",
		strings.NewReader(fmt.Sprintf(`{"subject":%q,"accounts":[1],"admin":%v,"ttlSeconds":3600}`,
			subject, admin)))
	must.OK(r.t, err)
	request.Header.Set("X-Auth-Master-Secret", string(bytes.TrimSpace(secret)))
	request.Header.Set("Accept", "text/plain")
	answer, err := http.DefaultClient.Do(request)
	must.OK(r.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		r.t.Fatalf("mint: %d %s %v", answer.StatusCode, text, err)
	}
	return string(text)
}

// want checks what every service answers to a token with the admin claim.
func (r *revoking) want(when, token string, status int) {
	r.t.Helper()
	for _, q := range []struct{ method, service, path, body string }{
		{"GET", "order-matcher", "/positions?accountId=1", ""},
		{"GET", "order-matcher", "/audit", ""},
		{"GET", "trade-processor", "/recon/status", ""},
		{"POST", "account-service", "/account/", `{"id":1,"displayName":"One"}`},
		{"POST", "reference-data", "/stocks", `{"ticker":"AAPL","companyName":"Apple"}`},
		{"GET", "admin", "/backup/tables", ""},
	} {
		if got, body := r.ask(q.method, q.service, q.path, token, q.body); got != status &&
			(status != http.StatusOK || got/100 != 2) {
			r.t.Errorf("%s: %s%s answers %d %.200s, want %d", when, q.service, q.path, got, body, status)
		}
	}
}

// stream follows the feed until the server ends it, and returns its last event.
func (r *revoking) stream(token string) (begun <-chan struct{}, end <-chan string) {
	r.t.Helper()
	request := must.Get(http.NewRequest("GET",
		"http://"+r.ports["order-matcher"]+"/feed?topics=controls,orders", nil))(r.t)
	request.Header.Set("Authorization", "Bearer "+token)
	started, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		answer, err := http.DefaultClient.Do(request)
		close(started)
		if err != nil {
			ended <- err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body) // what has come tells how it ended
		ended <- fmt.Sprint(answer.StatusCode, " ", string(text[max(0, len(text)-200):]))
	}()
	return started, ended
}

// TestRevocationSurvives revokes the tokens of a subject on a real server: every service refuses
// them, a stream that is under way ends, and later tokens are good. It holds on after kill -9, and
// after a restart from a snapshot, and /audit shows the same act.
func TestRevocationSurvives(t *testing.T) {
	binary := apptest.Program(t)
	r := &revoking{t: t, data: t.TempDir()}
	r.start(binary)
	root, ann := r.mint("root", true), r.mint("ann", true)
	r.want("before", ann, http.StatusOK)
	begun, end := r.stream(ann)
	<-begun
	if status, body := r.ask("POST", "trade-processor", "/auth/revoke", root,
		`{"subject":"ann"}`); status != http.StatusOK || !strings.Contains(body, `"applied":true`) {
		t.Fatalf("revoke: %d %s", status, body)
	}
	r.want("at once", ann, http.StatusUnauthorized)
	again := r.mint("ann", true)
	r.want("a later token", again, http.StatusOK)
	r.want("another subject", root, http.StatusOK)
	select {
	case said := <-end:
		if !strings.HasPrefix(said, "200 ") || !strings.Contains(said, "TOKEN_EXPIRED") {
			t.Errorf("the stream ended with %s", said)
		}
	case <-time.After(apptest.Patience):
		t.Error("the stream goes on")
	}
	audit := func() string {
		t.Helper()
		status, text := r.ask("GET", "order-matcher", "/audit?kind=token-revoke", root, "")
		if status != http.StatusOK || strings.Count(text, "\n") != 1 ||
			!strings.Contains(text, `"subject":"root"`) ||
			!strings.Contains(text, `"object":{"subject":"ann"},"old":null,"new":{"issuedUpTo":`) {
			t.Errorf("audit: %d %s", status, text)
		}
		return text
	}
	first := audit()

	r.cmd.Process.Signal(syscall.SIGKILL)
	<-r.exited
	r.start(binary)
	r.want("after kill -9", ann, http.StatusUnauthorized)
	r.want("a later token after kill -9", again, http.StatusOK)
	if got := audit(); got != first {
		t.Errorf("after kill -9 the act is %s, was %s", got, first)
	}

	r.cmd.Process.Signal(syscall.SIGTERM)
	<-r.exited
	program(t, "snapshot", "--data.dir="+r.data)
	program(t, "journal", "verify", "--data.dir="+r.data)
	if out := program(t, "journal", "export", "--data.dir="+r.data); !strings.Contains(out,
		`"type":"TOKEN_REVOKE"`) {
		t.Error("the export has no revocation")
	}
	r.start(binary)
	if !strings.Contains(r.log.String(), "replayed=0") {
		t.Errorf("not from the snapshot:\n%s", r.log)
	}
	r.want("from a snapshot", ann, http.StatusUnauthorized)
	if got := audit(); got != first {
		t.Errorf("from a snapshot the act is %s, was %s", got, first)
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	<-r.exited
}

// TestRevocationOnEveryMember: all members refuse the tokens, also when the leader has changed, and
// all show the same act.
func TestRevocationOnEveryMember(t *testing.T) {
	c := newThree(t, "risk.entitlement.enforced", "true")
	c.start()
	ann := gate.Mint([]byte(clusterSecret), gate.Claims{Subject: "ann", Admin: true}, "", time.Hour,
		time.Now())
	status := func(at int) int {
		code, _ := getWith(t, "http://"+c.http[at]+"/positions?accountId=1", ann)
		return code
	}
	everywhere := func(when string, without, want int) {
		t.Helper()
		for at := range c.members {
			if at == without {
				continue
			}
			apptest.Until(t, fmt.Sprintf("%s, member %d", when, at+1), func() (bool, any) {
				got := status(at)
				return got == want, got
			})
		}
	}
	everywhere("before", -1, http.StatusOK)
	at := c.leader()
	leader := c.members[at].open()
	n := note.Note{Kind: note.Revoke, Subject: "root", Reason: "left",
		Object: note.Value(map[string]string{"subject": "ann"})}
	must.Get(revocation(leader.Core).Act(t.Context(), &n, matcher.NewTokenRevoke(
		matcher.HashSubject("ann"), time.Now().UnixMilli())))(t)
	everywhere("revoked", -1, http.StatusUnauthorized)
	c.members[at].stop()
	everywhere("after the leader's end", at, http.StatusUnauthorized)
	one, other := c.get((at+1)%3, "/audit"), c.get((at+2)%3, "/audit")
	if !strings.Contains(one, `"reason":"left"`) || one != other {
		t.Errorf("one member shows %s, the other %s", one, other)
	}
}
