package session

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
)

// The second process is this test binary again, with a role in the environment.
const (
	childRole   = "POSTTRADE_SESSION_CHILD"
	childSocket = "POSTTRADE_SESSION_SOCKET"
	childCount  = "POSTTRADE_SESSION_COUNT"
	childWindow = "POSTTRADE_SESSION_WINDOW"
	childIdle   = "POSTTRADE_SESSION_IDLE"
)

func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := child(role); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
}

func child(role string) error {
	count, _ := strconv.Atoi(os.Getenv(childCount))
	window, _ := strconv.Atoi(os.Getenv(childWindow))
	idle, err := ring.ParseStrategy(os.Getenv(childIdle))
	if err != nil {
		return err
	}
	c, err := client.Dial(context.Background(), os.Getenv(childSocket), "",
		client.Options{Idle: idle, IdleSet: true})
	if err != nil {
		return err
	}
	defer c.Close()
	switch role {
	case "load":
		return childLoad(c, count, window)
	case "dies":
		return childDies(c, count)
	}
	return fmt.Errorf("unknown role %q", role)
}

// childLoad sends a buyer's and a seller's order in turn, so that every second one trades.
func childLoad(c *client.Client, count, window int) error {
	l := volley{Count: count, Window: window, Batch: max(window/8, 1),
		Write: func(c *client.Client, i int) error {
			return c.Order(uint64(i),
				&client.NewOrder{Account: 1 + uint32(i%2), Security: aaa, Side: matcher.Side(i % 2), Qty: 1,
					LimitPx: 100_000_000}, "")
		}}
	res, err := l.run(c)
	if err != nil {
		return err
	}
	if c.Idle().Rescues > mostRescues {
		return fmt.Errorf("the client slept through %d records", c.Idle().Rescues)
	}
	if res.Codes[wire.Decided] != count {
		return fmt.Errorf("codes %v of %d", res.Codes, count)
	}
	slices.Sort(res.RoundNs)
	fmt.Printf("window=%d rate=%.0f/s p50=%dns p99=%dns max=%dns fills=%d idle=%+v\n", window,
		float64(count)/res.Took.Seconds(),
		res.RoundNs[count/2], res.RoundNs[count*99/100], res.RoundNs[count-1], res.Fills, c.Idle())
	return nil
}

// childDies claims slots, publishes some of them, and waits to be killed.
func childDies(c *client.Client, count int) error {
	for i := range count {
		o := client.NewOrder{Account: 1, Security: aaa, Side: matcher.Buy, Qty: 1, LimitPx: 50_000_000}
		if err := c.Order(uint64(i), &o, ""); err != nil {
			return err
		}
	}
	c.Flush()
	if _, err := c.Next(); err != nil {
		return err
	}
	// A slot that is claimed, half written and never published.
	if err := c.Order(99, &client.NewOrder{Account: 1}, "half"); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// start runs this binary in a role.
func (r *rig) start(role string, count, window int, idle ring.Strategy) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childSocket+"="+r.o.Socket,
		childCount+"="+strconv.Itoa(count), childWindow+"="+strconv.Itoa(window),
		childIdle+"="+idle.String())
	cmd.Stderr = os.Stderr
	return cmd
}

// Another process sends a flow of orders that trade, one by one and in a window.
func TestAnotherProcessTrades(t *testing.T) {
	for _, window := range []int{1, 64} {
		t.Run(fmt.Sprintf("window=%d", window), func(t *testing.T) {
			r := newRig(t)
			count := 2_000 * min(window, 10)
			out := must.Get(r.start("load", count, window, ring.Adaptive).Output())(t)
			t.Logf("%s", out)
			m := r.server.Metrics()
			if m.Commands != uint64(count) || m.Answers[wire.Decided] != uint64(count) {
				t.Errorf("metrics %+v", m)
			}
		})
	}
}

// Both sides park at once whenever there is nothing to do, so every hop needs its
// wake-up; a sleep that runs out although there is work would be a lost one.
func TestNoWakeUpIsLost(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.Idle = ring.Park })
	out := must.Get(r.start("load", 3_000, 1, ring.Park).Output())(t)
	t.Logf("%s", out)
	if got := r.server.Metrics(); got.Rescues > mostRescues || got.Sleeps == 0 {
		t.Errorf("%d rescues in %d sleeps", got.Rescues, got.Sleeps)
	}
}
