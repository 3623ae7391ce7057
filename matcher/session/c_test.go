package session

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
)

// compiled is a C program of source, compiled with some flags; "" without a compiler.
func compiled(t *testing.T, source string, flags ...string) (binary string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no C compiler")
		}
		t.Log("no C compiler: not tested")
		return ""
	}
	binary = filepath.Join(t.TempDir(), "client")
	flags = append(flags, "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", binary, source)
	if out, err := exec.Command(cc, flags...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// TestClientInC compiles the example of posttrade.h, and runs it against a server.
func TestClientInC(t *testing.T) {
	binary := compiled(t, "c/client.c", "-std=gnu11")
	if binary == "" {
		return
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

// TestInterruptedClientInC: a signal changes no result of posttrade.h. A look-up that gave up would
// leave its answer to the next one, and a wait that began anew would have no end.
func TestInterruptedClientInC(t *testing.T) {
	binary := compiled(t, "testdata/interrupted.c", "-std=c11", "-D_DEFAULT_SOURCE")
	if binary == "" {
		return
	}
	r := newRig(t, enforced)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, r.o.Socket, r.token(false, 1),
		r.token(false, 1)).CombinedOutput()
	want := "open 0\nAAA 0 1\nBBB 0 2\nrenew 0\ninterrupted 9 of 18\n" +
		"receive timed out, after its time\nat once timed out\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n got %s\nwant %s", err, out, want)
	}
}

// TestHeaderInC compiles under the strict standards, with the declarations that its comment asks
// for.
func TestHeaderInC(t *testing.T) {
	for _, std := range []string{"c99", "c11"} {
		compiled(t, "c/client.c", "-std="+std, "-D_DEFAULT_SOURCE")
	}
}
