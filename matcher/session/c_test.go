package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
)

// TestClientInC compiles the example of posttrade.h, and runs it against a server.
func TestClientInC(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no C compiler")
		}
		t.Log("no C compiler: not tested")
		return
	}
	binary := filepath.Join(t.TempDir(), "client")
	if out, err := exec.Command(cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
		"-o", binary, "c/client.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := newRig(t, enforced)
	out, err := exec.Command(binary, r.o.Socket, "1", "AAA", r.token(false, 1)).CombinedOutput()
	want := "correlation=1 code=DECIDED status=NEW reason=ACCEPTED sequence=1 order=1 " +
		"qty=5 leaves=5\ncorrelation=2 code=DECIDED status=CANCELED reason=ACCEPTED sequence=2 order=1 " +
		"qty=5 leaves=5\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n got %s\nwant %s", err, out, want)
	}
	if row, ok := r.views.Order(1); !ok || string(row.ClientID()) != "from-c" {
		t.Errorf("order %+v", row)
	}
	trader := r.dial(r.token(true), client.Options{})
	send(t, trader, 1, with(order(), func(c *matcher.Command) { c.SecurityID = bbb }), "")
	out, err = exec.Command(binary, r.o.Socket, "market", r.token(false)).CombinedOutput()
	if want := "security=2 bid=5x100000000 ask=0x0\n"; err != nil || string(out) != want {
		t.Errorf("%v\n got %s\nwant %s", err, out, want)
	}
	out, err = exec.Command(binary, r.o.Socket, "1", "ZZZ", r.token(false, 1)).CombinedOutput()
	if err == nil || string(out) != "no security ZZZ\n" {
		t.Errorf("an unknown ticker: %v\n%s", err, out)
	}
	out, err = exec.Command(binary, r.o.Socket, "2", "AAA", r.token(false, 1)).CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "correlation=1 code=NOT_ENTITLED ") {
		t.Errorf("another account: %v\n%s", err, out)
	}
	out, err = exec.Command(binary, r.o.Socket, "1", "AAA", "no token").CombinedOutput()
	if err == nil || string(out) != "refused: status 3\n" {
		t.Errorf("without a token: %v\n%s", err, out)
	}
}
