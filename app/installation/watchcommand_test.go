package installation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/ring/must"
)

// watchedLine is a line of `posttrade watch --json`.
type watchedLine struct {
	ID, Event string
	Data      struct {
		OrderID  string
		Security string
	}
}

// TestWatchResumesByItself: `posttrade watch` beside a server that is killed with -9 twice, and has
// another port each time, has printed the one true stream.
func TestWatchResumesByItself(t *testing.T) {
	binary, data := apptest.Program(t), t.TempDir()
	server := startForCrash(t, binary, data, "--sidecars.enabled=false")
	const topics = "book:AAPL,bbo:*,trades,orders"
	printed := filepath.Join(t.TempDir(), "printed")
	out := must.Get(os.Create(printed))(t)
	defer out.Close()
	watch := exec.Command(binary, "watch", topics, "--data.dir="+data)
	var notices bytes.Buffer
	watch.Stdout, watch.Stderr = out, &notices
	must.OK(t, watch.Start())
	t.Cleanup(func() { watch.Process.Kill() })
	lines := func() []string {
		text := must.Get(os.ReadFile(printed))(t)
		return strings.SplitAfter(string(text), "\n")
	}
	apptest.Until(t, "the watch has begun", func() (bool, any) { return len(lines()) > 1, lines() })
	for kill := range 2 {
		loadUntilKilled(t, server, kill, uint64(kill), 200*time.Millisecond)
		server = startForCrash(t, binary, data, "--sidecars.enabled=false")
	}
	last := send(feedClient, server.url+"/orders", outcome{kind: "ORDER_NEW",
		body: `{"accountId":1,"security":"MSFT","side":"Buy","quantity":1,"limitPrice":1}`})
	var got []string
	apptest.Until(t, "the last order is printed", func() (bool, any) {
		got = eventLines(t, lines())
		return strings.Contains(got[len(got)-1], `"bid":{"price":1,`), got[len(got)-1]
	})
	must.OK(t, watch.Process.Signal(os.Interrupt))
	if err := watch.Wait(); err != nil || !strings.Contains(notices.String(), "disconnected") {
		t.Errorf("the watch ended with %v and has said %q", err, notices.String())
	}
	if !strings.Contains(strings.Join(got, ""), last.orderID) {
		t.Errorf("%s is not printed", last.orderID)
	}
	// The first line is the book at the begin: what follows is history now.
	var first watchedLine
	if err := json.Unmarshal([]byte(got[0]), &first); err != nil || first.Event != "snapshot" {
		t.Fatalf("begins with %s: %v", got[0], err)
	}
	code, again, errs := apptest.Run("watch", topics, "--data.dir="+data, "--from="+first.ID,
		fmt.Sprintf("--count=%d", len(got)-1))
	if want := strings.Join(eventLines(t, strings.SplitAfter(again, "\n")), ""); code != 0 ||
		strings.Join(got[1:], "") != want {
		t.Errorf("%d %s: printed beside the kills\n%s\nthe history\n%s", code, errs,
			strings.Join(got[1:], ""), want)
	}
	t.Logf("%d events", len(got))
}

// eventLines are the whole lines that are no marks.
func eventLines(t *testing.T, lines []string) (events []string) {
	t.Helper()
	for _, text := range lines {
		if strings.HasSuffix(text, "\n") && !strings.Contains(text, `"event":"mark"`) {
			events = append(events, text)
		}
	}
	return events
}

// TestWatchNamesWhatIsWrong with its arguments.
func TestWatchNamesWhatIsWrong(t *testing.T) {
	i := install(t, t.TempDir(), "risk.entitlement.enforced", "true")
	order := i.limit(1, client.Sell, 1, 10)
	url := "--url=" + i.feedBase()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"books", url}, 1, `no such topic: "books"`},
		{[]string{"trades", "--from=x.y", url}, 1, "Last-Event-ID"},
		{[]string{"trades", "--from=x", url}, 1, "fromSeq"},
		{[]string{"orders", url}, 1, "401"},
		{[]string{"trades", "orders"}, 2, `unexpected argument "orders"`},
		{[]string{"trades", "--account=x"}, 2, "--account"},
		{[]string{"trades", "--token=x"}, 2, "--token goes with --url"},
		{[]string{"trades", "--url=ftp://x"}, 2, "--url"},
		{[]string{"trades", "--url=http://x,https://y"}, 2, "--url"},
		{[]string{"trades", "--data.dir=" + t.TempDir()}, 1, "no server has run here"},
		{[]string{"orders", "--from=0", "--account=1", "--count=1", "--json=false", url,
			"--token=" + i.token}, 0, order.OrderID + " of account 1  NEW, 1 left"},
	} {
		code, stdout, stderr := apptest.Run("watch", tt.args...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%q: %d %s%s; want %d with %q", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}
