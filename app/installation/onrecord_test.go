package installation

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/journal/quorum"
	"posttrade/matcher/gate"
	"posttrade/matcher/note"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// acted reads GET /audit of the server that runs on data.
func acted(t *testing.T, data, url, query string) string {
	t.Helper()
	secret := must.Get(apptest.Settled(t, "data.dir", data).JWTSecret())(t)
	token := gate.Mint(secret, gate.Claims{Subject: "auditor", Admin: true}, "", time.Hour, time.Now())
	status, text := getWith(t, url+"/audit"+query, token)
	if status != http.StatusOK {
		t.Fatalf("/audit: %d %s", status, text)
	}
	return text
}

// awaitRecorded returns when no act on the database waits for its record.
func awaitRecorded(i *installed) {
	i.t.Helper()
	apptest.Until(i.t, "no act waits", func() (bool, any) {
		left := int64(-1)
		err := i.Beside.Load().Db.Read(i.t.Context(), func(tx *store.Tx) error {
			return tx.Query("select count(*) from operator_acts", func(r *store.Row) error {
				left = r.Int64(0)
				return nil
			})
		})
		return left == 0 && err == nil, fmt.Sprint(left, err)
	})
}

// TestPendingActIsRecordedOnce: whenever a process ends between the note, and the row that waits
// for it, the act is on record once.
func TestPendingActIsRecordedOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		i := install(t, t.TempDir(), databaseFlags(t, d)...)
		db := i.Beside.Load().Db
		act := func(subject string) store.Act {
			return store.Act{Kind: note.Epoch, Subject: subject, Reason: "why", MadeAt: 1,
				Object: `{"source":"account"}`, New: `{"epoch":8}`}
		}
		wait := func(subject string, sought uint64) {
			t.Helper()
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				a := act(subject)
				if err := tx.PutAct(&a); err != nil || sought == 0 {
					return err
				}
				return tx.SeekAct(a.Number, sought)
			})
			must.OK(t, err)
		}
		count := func(subject string, want int) {
			t.Helper()
			awaitRecorded(i)
			_, text := i.get("order-matcher", "/audit?kind=epoch&subject="+url.PathEscape(subject))
			if got := strings.Count(string(text), "\n"); got != want {
				t.Errorf("%d acts of %s on record, want %d:\n%s", got, subject, want, text)
			}
		}
		wait("Jörg", 0)
		count("Jörg", 1)
		// The process ended before the note was sequenced.
		wait("lost", 1)
		count("lost", 1)
		wait("lost", 1<<40) // and the end of the journal was lost with it
		count("lost", 2)
		// The process ended behind the note.
		a := act("ended")
		must.Get(recorder(i.Core)(t.Context(), &note.Note{Kind: a.Kind, Subject: a.Subject,
			Reason: a.Reason, Object: []byte(a.Object), New: []byte(a.New)}))(t)
		wait("ended", 1)
		count("ended", 1)
	})
}

// TestFlagsOfASourceAreOnRecord: an account or security that is enabled, disabled or halted at its
// source is an operator's act; a new one, a new name and a flag that stays are none.
func TestFlagsOfASourceAreOnRecord(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		i := install(t, t.TempDir(), databaseFlags(t, d)...)
		put := func(service, path, body string) {
			t.Helper()
			request, err := http.NewRequest("POST", "http://"+i.at(service)+path, strings.NewReader(body))
			must.OK(t, err)
			request.Header.Set("Authorization", "Bearer "+i.token)
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("X-Reason", "notice 7")
			answer, err := http.DefaultClient.Do(request)
			must.OK(t, err)
			defer answer.Body.Close()
			if answer.StatusCode/100 != 2 {
				t.Fatalf("%s %s: %d", path, body, answer.StatusCode)
			}
		}
		for _, body := range []string{`{"id":7001,"displayName":"A"}`, `{"id":7001,"displayName":"B"}`,
			`{"id":7001,"displayName":"B","enabled":true}`,
			`{"id":7001,"displayName":"B","enabled":false}`,
			`{"id":7001,"displayName":"C","enabled":false}`} {
			put("account-service", "/account/", body)
		}
		for _, body := range []string{`{"ticker":"NEW","companyName":"N","halted":true}`,
			`{"ticker":"NEW","companyName":"N","halted":false}`,
			`{"ticker":"NEW","companyName":"N","halted":false,"enabled":false}`,
			`{"ticker":"NEW","companyName":"N","enabled":true}`} {
			put("reference-data", "/stocks", body)
		}
		const by = `"subject":"test","address":"127.0.0.1","reason":"notice 7","object":`
		want := []string{
			by + `{"accountId":7001,"source":"account"},"old":{"enabled":true},"new":{"enabled":false}}`,
			by + `{"security":"NEW","source":"security"},"old":{"enabled":true,"halted":true},` +
				`"new":{"enabled":true,"halted":false}}`,
			by + `{"security":"NEW","source":"security"},"old":{"enabled":true,"halted":false},` +
				`"new":{"enabled":false,"halted":false}}`,
			by + `{"security":"NEW","source":"security"},"old":{"enabled":false,"halted":false},` +
				`"new":{"enabled":true,"halted":false}}`,
		}
		var lines []string
		apptest.Until(t, "the acts", func() (bool, any) {
			_, text := i.get("order-matcher", "/audit?subject=test")
			lines = strings.Split(strings.TrimSpace(string(text)), "\n")
			return len(lines) >= len(want), lines
		})
		kinds := []string{note.Disable, note.Halt, note.Disable, note.Enable}
		for n, line := range lines {
			if n >= len(want) || !strings.HasPrefix(line, `{"kind":"`+kinds[n]+`",`) ||
				!strings.HasSuffix(line, want[n]) {
				t.Errorf("act %d is %s", n, line)
			}
		}
		if got := i.acts(note.Disable + "&accountId=7001"); strings.Count(got, "\n") != 1 {
			t.Errorf("of the account are %s", got)
		}
	})
}

// TestFlagsOfASourceNeedAReasonInProduction: as the same act at the order-matcher does. A new
// record, a new name and a flag that stays need none; what is refused changes nothing.
func TestFlagsOfASourceNeedAReasonInProduction(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	writeFile(t, secret, []byte(clusterSecret))
	i := install(t, t.TempDir(), "profile", "production", "risk.entitlement.enforced", "true",
		"reference.write-auth.enforced", "true", "auth.jwt.secret-file", secret)
	put := func(service, path, body, reason string) (status int, said string) {
		t.Helper()
		request := must.Get(http.NewRequest("POST", "http://"+i.at(service)+path,
			strings.NewReader(body)))(t)
		request.Header.Set("Authorization", "Bearer "+i.token)
		request.Header.Set("Content-Type", "application/json")
		if reason != "" {
			request.Header.Set("X-Reason", reason)
		}
		answer := must.Get(http.DefaultClient.Do(request))(t)
		defer answer.Body.Close()
		return answer.StatusCode, string(readAll(t, answer.Body))
	}
	for _, s := range []struct{ service, path, made, renamed, changed string }{
		{"account-service", "/account/", `{"id":7001,"displayName":"A","enabled":false}`,
			`{"id":7001,"displayName":"Second","enabled":false}`,
			`{"id":7001,"displayName":"Third","enabled":true}`},
		{"reference-data", "/stocks", `{"ticker":"NEW","companyName":"A"}`,
			`{"ticker":"NEW","companyName":"Second","halted":false}`,
			`{"ticker":"NEW","companyName":"Third","halted":true}`},
	} {
		for _, body := range []string{s.made, s.renamed} {
			if status, said := put(s.service, s.path, body, ""); status/100 != 2 {
				t.Errorf("%s: %d %s", body, status, said)
			}
		}
		status, said := put(s.service, s.path, s.changed, "")
		if status != http.StatusBadRequest || !strings.Contains(said, `"field":"X-Reason"`) {
			t.Errorf("%s without a reason: %d %s", s.changed, status, said)
		}
		if _, list := i.get(s.service, s.path); !strings.Contains(string(list), `"Second"`) ||
			strings.Contains(string(list), `"Third"`) {
			t.Errorf("%s has changed, of %d bytes", s.service, len(list))
		}
		if status, said := put(s.service, s.path, s.changed, "notice 7"); status/100 != 2 {
			t.Errorf("%s with a reason: %d %s", s.changed, status, said)
		}
	}
}

// TestMembersChangeOnRecord adds and removes a member by the command. The act is on every member,
// and still there when the leader has gone.
func TestMembersChangeOnRecord(t *testing.T) {
	c := newThree(t)
	c.start()
	if status, answer := c.post(0, "/orders", sellOrder); status != http.StatusCreated {
		t.Fatalf("order: %d %s", status, answer)
	}
	list, self := "--cluster.members="+c.members[0].settings[3], "--cluster.member-id=1"
	change := func(said string, args ...string) {
		t.Helper()
		apptest.Until(t, "a leader makes the change", func() (bool, any) {
			code, stdout, stderr := apptest.Run("cluster", append(args, list, self)...)
			if code != settings.ExitOK && !strings.Contains(stderr, "does not lead") &&
				!strings.Contains(stderr, "no leader is known") {
				t.Fatal(stderr)
			}
			if code == settings.ExitOK && !strings.Contains(stdout, said) {
				t.Errorf("%v says %q, want %q", args, stdout, said)
			}
			return code == settings.ExitOK, stderr
		})
	}
	change("member 4 may join from 127.0.0.1:9:", "add", "4=127.0.0.1:9@127.0.0.1:10",
		"--reason=a fourth")
	at := c.leader()
	gone := fmt.Sprint((at+1)%3 + 1)
	server := c.server((at + 1) % 3)
	change("member "+gone+" is removed", "remove", gone, "--reason=it goes")
	there := strings.Split(c.members[0].settings[3], ",")[at]
	programFails(t, settings.ExitFailed, "in this cluster at this address already", "cluster", "add",
		there, list, self, "--reason=again")
	apptest.Until(t, "the leader names it", func() (bool, any) {
		part := c.members[c.leader()].open().Member.parts()[0]
		return part.Ready && strings.HasSuffix(part.Detail, " leads, without a vote: "+gone), part
	})
	removed := c.members[must.Get(strconv.Atoi(gone))(t)-1].open().Member
	apptest.Until(t, "it knows that it has no vote", func() (bool, any) {
		part := removed.vote()
		return !part.Ready && part.Name == "vote", part
	})
	programFails(t, settings.ExitUsage, "reason", "cluster", "remove", gone, list, self,
		"--reason=\t")
	programFails(t, settings.ExitFailed, "not a member", "cluster", "remove", "9", list, self)
	want := []string{
		`{"kind":"member-add",`, `"reason":"a fourth","object":{"member":"4"},"old":null,` +
			`"new":{"id":"","member":"4","address":"127.0.0.1:9","voter":false}}`,
		`{"kind":"member-remove",`, `"subject":"os:`, `"address":"127.0.0.1"`,
		`"reason":"it goes","object":{"member":"` + gone + `"},"old":{"id":"` + server + `"`,
	}
	var leaders string
	for _, m := range []int{at, (at + 2) % 3} {
		apptest.Until(t, "the acts", func() (bool, any) {
			leaders = c.get(m, "/audit")
			for _, w := range want {
				if !strings.Contains(leaders, w) {
					return false, fmt.Sprintf("%s, want %s", leaders, w)
				}
			}
			return true, nil
		})
		if n := strings.Count(leaders, `"kind":"member-`); n != 2 {
			t.Errorf("member %d: %d acts\n%s", m+1, n, leaders)
		}
	}
	c.stop()
	for _, m := range []int{at, (at + 2) % 3} {
		c.members[m].start()
	}
	for _, m := range []int{at, (at + 2) % 3} {
		c.members[m].awaitOpen()
		apptest.Until(t, "the acts after a restart", func() (bool, any) {
			text := c.get(m, "/audit")
			return strings.Count(text, `"kind":"member-`) == 2, text
		})
	}
}

// TestNoteOfAChange: the leader judges what a command line says of the operator.
func TestNoteOfAChange(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    quorum.Change
		need bool
		want string // of the error; "": none
		kind string
	}{
		{"no reason", quorum.Change{Kind: quorum.Removed, Subject: "os:a"}, false, "", note.MemberGone},
		{"no reason in production", quorum.Change{Kind: quorum.Removed}, true, "needs a reason", ""},
		{"another disk", quorum.Change{Kind: quorum.Replaced}, true, "", note.MemberSwap},
		{"a reason of control characters", quorum.Change{Reason: "a\nb"}, true, "control", ""},
		{"a subject of control characters", quorum.Change{Subject: "a\x1bb"}, false, "subject", ""},
		{"a failed one", quorum.Change{Member: "3", Failed: errNoReason}, false, "", note.ActRefused},
	} {
		n, err := noteOfChange(tt.c, tt.need)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) ||
			err == nil && n.Kind != tt.kind {
			t.Errorf("%s: %+v, %v", tt.name, n, err)
		}
	}
}
