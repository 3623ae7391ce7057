package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
)

// The layout that doc.go draws is enough for a client in another language.
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
	if out, err := exec.Command(cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", binary,
		"testdata/client.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := newRig(t, enforced)
	out, err := exec.Command(binary, r.o.Socket, "1", "1", r.token(false, 1)).CombinedOutput()
	want := "correlation=1 code=0 status=0 reason=0 sequence=1 order=1 qty=5 leaves=5\n" +
		"correlation=2 code=0 status=3 reason=0 sequence=2 order=1 qty=5 leaves=5\n"
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
	out, err = exec.Command(binary, r.o.Socket, "1", "1", "no token").CombinedOutput()
	if err == nil || string(out) != "refused: status 3\n" {
		t.Errorf("without a token: %v\n%s", err, out)
	}
}
