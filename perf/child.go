package perf

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"posttrade/journal"
)

// child is a process of this program that a row measures from outside the process: a server, or the
// bare HTTP server that it is compared with. It shares the machine's cores with the load, which is
// in every figure.
type child struct {
	cmd *exec.Cmd
	// addr is where it listens (host:port); for a server, the address of the order-matcher.
	addr string
	// dir is the data directory of a server, "" for the bare one. The run's folder holds it, so
	// nothing removes it before the run ends.
	dir string

	// ports are a server's addresses (host:port) by the name of the service, as ports.json has them.
	ports map[string]string
}

// startServer starts `posttrade serve` on free ports with an empty data directory and returns when
// it admits orders. name is the directory's name in the run's folder and must be new in the run;
// flags are the settings beside those of every server here. The caller stops the child.
//
// It asks every 10 ms, for 60 s at most; no row measures the start. What the server writes to
// stderr goes to this process's stderr.
func (r *Run) startServer(name string, flags ...string) (*child, error) {
	dir := filepath.Join(r.o.Dir, name)
	args := append([]string{"serve", "--data.dir=" + dir,
		"--order-matcher.listen=127.0.0.1:0", "--trade-processor.listen=127.0.0.1:0",
		"--account-service.listen=127.0.0.1:0", "--reference-data.listen=127.0.0.1:0",
		"--admin.listen=127.0.0.1:0", "--console.listen="}, flags...)
	c := &child{cmd: exec.Command(r.o.Binary, args...), dir: dir}
	c.cmd.Stderr = os.Stderr
	if err := start(c.cmd); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	for range 6000 {
		if text, err := os.ReadFile(filepath.Join(dir, "ports.json")); err == nil &&
			json.Unmarshal(text, &c.ports) == nil && c.ready() {
			c.addr = c.ports["order-matcher"]
			return c, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.Join(fmt.Errorf("server did not come up within 60 s"), c.stop())
}

// ready asks the server's /readyz, which is 200 when orders are admitted.
func (c *child) ready() bool {
	answer, err := http.Get("http://" + c.ports["admin"] + "/readyz")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// admits waits until a server has admitted orders for a second. After a pause, in which its feeds
// were not heard, it finds that out and makes its universe fresh again. It asks every 10 ms, for
// 60 s at most. The bare server needs no wait.
func (c *child) admits() error {
	for looks, ready := 0, 0; c.ports["admin"] != "" && ready < 100; looks++ {
		if looks == 6000 {
			return errors.New("server does not admit orders after 60 s")
		}
		ready++
		if !c.ready() {
			ready = 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// metric reads a metric with its label, such as `source="security"`, in the metric's own unit. A
// metric that the server does not show is an error, not 0.
func (c *child) metric(name, label string) (value float64, err error) {
	found := false
	err = c.metrics(func(line string) error {
		text, ok := strings.CutPrefix(line, name+"{"+label+"} ")
		if !ok {
			return nil
		}
		found = true
		value, err = strconv.ParseFloat(text, 64)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("the server shows no %s with %s", name, label)
	}
	return value, err
}

// commitMetric opens the names of the histogram of the journal's commits. Its values are in
// seconds, its counts go from the start of the server on.
const commitMetric = "svc_journal_commit_seconds_"

// commits reads the histogram of the server's commits. A bucket of the server counts in the first
// one of ours that is not below it, so a time that is read from the counts is an upper bound.
//
// A histogram without its last bucket, the one up to +Inf, is an error: commits would be missing.
func (c *child) commits() (n commitCounts, err error) {
	last, whole := uint64(0), false
	err = c.metrics(func(line string) error {
		name, text, _ := strings.Cut(line, " ")
		name, ours := strings.CutPrefix(name, commitMetric)
		if !ours || name == "sum" {
			return nil
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		if name == "count" {
			n.commits = uint64(value)
			return nil
		}
		bound, err := strconv.ParseFloat(
			strings.TrimSuffix(strings.TrimPrefix(name, `bucket{le="`), `"}`), 64)
		if err != nil {
			return err
		}
		// The buckets come in order, from the shortest time on, and each counts those before it.
		n.buckets[sort.SearchFloat64s(journal.CommitBuckets[:], bound)] += uint64(value) - last
		last, whole = uint64(value), math.IsInf(bound, 1)
		return nil
	})
	if err == nil && !whole {
		err = errors.New("the server does not show its commits in buckets")
	}
	return n, err
}

// metrics calls take with every line of the server's metrics. An error of take ends it and names
// the line. A reading costs the server a scrape, on the cores that are measured: rows call it
// between periods, not in them.
func (c *child) metrics(take func(line string) error) error {
	answer, err := http.Get("http://" + c.ports["admin"] + "/metrics")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if err := take(lines.Text()); err != nil {
			return fmt.Errorf("metrics line %q: %w", lines.Text(), err)
		}
	}
	return lines.Err()
}

// startHello starts the bare fasthttp server that answers every request with the same bytes. It
// answers with the address as its first line, when it listens.
func (r *Run) startHello() (*child, error) {
	c := &child{cmd: exec.Command(r.o.Binary, "perf", "--hello-server")}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(c.cmd); err != nil {
		return nil, fmt.Errorf("start hello: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("start hello: %w", err)
	}
	c.addr = strings.TrimSpace(line)
	return c, nil
}

// stop ends the child in an orderly way and waits for it without a limit. The error is that of the
// process: a server that did not end with code 0.
func (c *child) stop() error {
	c.cmd.Process.Signal(syscall.SIGTERM)
	return c.cmd.Wait()
}

// cpu is the processor time that the child has used so far, user and system, over all its threads,
// those that have ended too. The kernel counts it in hundredths of a second, so that a difference
// of two readings is meant for seconds of load and not for milliseconds.
func (c *child) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, err
	}
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	return time.Duration(user+system) * time.Second / ticksPerSecond, nil
}

// residentBytes is the child's resident set in bytes: pages in memory now, those of mapped files
// included. It says nothing of pages that only the kernel's cache of files holds.
func (c *child) residentBytes() (int64, error) {
	return residentBytes(c.cmd.Process.Pid)
}

// residentBytes reads VmRSS of a process in bytes. It fails for a process that has ended and where
// there is no /proc.
func residentBytes(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmRSS of process %d", pid)
}
