package installation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/journaltest"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// memberOnBadDisk names the environment variable that makes the test binary a member in a process
// of its own, with a disk that fails on command. The variable has the member's settings; its
// standard input has the folders that fail from then on.
const memberOnBadDisk = "POSTTRADE_TEST_MEMBER_ON_BAD_DISK"

// anyOrder has no client order id, so that each send is another order.
const anyOrder = `{"accountId":1,"security":"AAPL","side":"Sell","quantity":1,"limitPrice":187.25}`

// TestMemberWhoseDiskFailsSaysOneLine makes the disk of a running member fail below its journal,
// below its consensus log, and below both at once. Each time the member writes one line and ends
// with exit code 1, whatever the other members send meanwhile. The others go on, and the member
// comes back.
func TestMemberWhoseDiskFailsSaysOneLine(t *testing.T) {
	if settings := os.Getenv(memberOnBadDisk); settings != "" {
		os.Exit(serveOnBadDisk(t, settings))
	}
	c := newThree(t, "cluster.heartbeat-ms", "40")
	for _, m := range c.members[1:] {
		m.start()
	}
	stop := during(t, func(ctx context.Context) {
		for at := 1; ctx.Err() == nil; at++ {
			// A leader with a failing disk does not know the outcome of an order.
			if status, answer := c.post(at, "/orders", anyOrder); status != 201 && status < 500 {
				t.Errorf("order: %d %s", status, answer)
				return
			}
		}
	})
	defer stop()
	for _, folders := range []string{"journal/", "quorum/", "journal/ quorum/", "quorum/log/store"} {
		m := startOnBadDisk(t, c.members[0])
		apptest.Until(t, "the member follows", func() (bool, any) {
			return c.follows(0), m.stderr.String()
		})
		m.fail(folders)
		m.wantOneLine(folders)
	}
}

// follows reports that a member knows the leader and has every booking.
func (c *three) follows(at int) bool {
	answer, err := http.Get("http://" + c.http[at] + "/health")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var health struct {
		Leader  string
		Applied uint64
	}
	err = json.NewDecoder(answer.Body).Decode(&health)
	return err == nil && health.Leader != "" && health.Applied > 0
}

// badDisk is that process.
type badDisk struct {
	t      *testing.T
	cmd    *exec.Cmd
	orders io.WriteCloser
	stderr waittest.Log
}

func startOnBadDisk(t *testing.T, m *memberOfTest) *badDisk {
	t.Helper()
	settings, err := json.Marshal(append(anyPorts(m.data), m.settings...))
	must.OK(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemberWhoseDiskFailsSaysOneLine$")
	b := &badDisk{t: t, cmd: cmd}
	b.cmd.Env = append(os.Environ(), memberOnBadDisk+"="+string(settings))
	b.cmd.Stderr = &b.stderr
	if b.orders, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	must.OK(t, b.cmd.Start())
	t.Cleanup(func() { b.cmd.Process.Kill() })
	return b
}

func (b *badDisk) fail(folders string) {
	must.Get(io.WriteString(b.orders, folders+"\n"))(b.t)
}

// wantOneLine waits for the end: exit 1, and one line after what was logged before.
func (b *badDisk) wantOneLine(folders string) {
	b.t.Helper()
	err := b.cmd.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != settings.ExitFailed {
		b.t.Errorf("%s: %v, want exit code 1:\n%s", folders, err, &b.stderr)
	}
	const line = "posttrade: journal failed, stopping: "
	_, said, found := strings.Cut(b.stderr.String(), line)
	if !found || strings.Count(said, "\n") != 1 || !strings.Contains(said, syscall.EIO.Error()) {
		b.t.Errorf("%s: want one line that begins with %q:\n%s", folders, line, &b.stderr)
	}
}

// serveOnBadDisk is the main function of that process.
func serveOnBadDisk(t *testing.T, settings string) int {
	var nameValue []string
	must.OK(t, json.Unmarshal([]byte(settings), &nameValue))
	c := apptest.Settled(t, nameValue...)
	var bad atomic.Pointer[[]string]
	bad.Store(new([]string))
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			folders := strings.Fields(in.Text())
			bad.Store(&folders)
		}
	}()
	o := EngineOptions(c)
	o.OnDisk = func(j *journal.Options) {
		j.FS = journaltest.Disk(func(op journaltest.Op) error {
			for _, folder := range *bad.Load() {
				if op.Write && strings.Contains(op.Path, "/"+folder) {
					return syscall.EIO
				}
			}
			return nil
		})
	}
	return ServeToTheEnd(context.Background(), c, o, io.Discard, NewFatalStderr(os.Stderr))
}

// The first failure writes the last line; a second failure waits, and writes nothing.
func TestLastWordIsSaidOnce(t *testing.T) {
	var out bytes.Buffer
	stderr := NewFatalStderr(&out)
	ends := make(chan int, 2)
	stderr.end = func(code int) { ends <- code }
	must.Get(io.WriteString(stderr, "before\n"))(t)
	go stderr.Failed(errors.New("one\nerror"))
	if code := <-ends; code != settings.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	second := make(chan struct{})
	go func() { defer close(second); stderr.Failed(errors.New("another")) }()
	if n, err := io.WriteString(stderr, "after\n"); n != 6 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	select {
	case <-second:
		t.Error("the second failure came back")
	case <-ends:
		t.Error("the process is ended twice")
	case <-time.After(time.Millisecond): // failed never returns, so there is nothing else to wait for
	}
	want := "before\nposttrade: journal failed, stopping: one error\n"
	if out.String() != want || !stderr.hasEnded() {
		t.Errorf("said %q, want %q", out.String(), want)
	}
}
