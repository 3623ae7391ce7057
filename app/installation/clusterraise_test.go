package installation

import (
	"fmt"
	"testing"

	"posttrade/app/apptest"
	"posttrade/matcher"
)

// TestMembersAreRaisedOneAfterTheOther restarts two of three members with larger settings, one at a
// time, while the third keeps the smaller ones. The leader raises the capacities on all members.
// The third one applies the raise, live and with an empty disk. In the end the states are the same.
func TestMembersAreRaisedOneAfterTheOther(t *testing.T) {
	c := newThree(t, "risk.max-contracts", "1", "risk.max-accounts", "16")
	c.start()
	booking := func(n int) string {
		return fmt.Sprintf(
			`{"clientOrderId":"b%d","accountId":1,"payReceive":"Pay","notional":1000,"fixedRate":0.01,`+
				`"effectiveDate":"2026-11-23","maturityDate":"2031-11-23","conventions":"USD-SOFR-1Y-ACT360"}`,
			n)
	}
	for n, want := range []int{200, 422} {
		if status, answer := c.post(n, "/swaps", booking(n)); status != want {
			t.Fatalf("booking %d: %d %s, want %d", n, status, answer, want)
		}
	}
	for _, m := range c.members[:2] {
		m.stop()
		m.settings = append(m.settings, "risk.max-contracts", "5", "risk.max-accounts", "40",
			"risk.max-open-orders", "1500000")
		m.start()
		m.awaitOpen()
	}
	// The third may lead; when it is down, one of the others leads.
	third := c.members[2]
	third.stop()
	want := matcher.Capacities{Accounts: 40, Securities: 4096, Contracts: 5,
		OrderRoom: matcher.OrderRoom{Open: 1_500_000, Retained: 65_536, Keys: 65_536}}
	raised := func(members ...*memberOfTest) {
		t.Helper()
		apptest.Until(t, "the capacities are raised", func() (bool, any) {
			for _, m := range members {
				in := m.open()
				if in == nil || in.Core.Views.Capacities() != want {
					return false, m.log.String()
				}
			}
			return true, nil
		})
	}
	raised(c.members[:2]...)
	third.start()
	third.awaitOpen()
	raised(c.members[:]...)
	for n := 2; n < 5; n++ {
		if status, answer := c.post(n, "/swaps", booking(n)); status != 200 {
			t.Errorf("booking %d: %d %s", n, status, answer)
		}
	}
	c.alike()
	third.stop()
	third.destroy()
	third.start()
	third.awaitOpen()
	raised(c.members[:]...)
	if status, answer := c.post(0, "/swaps", booking(5)); status != 200 {
		t.Errorf("the last booking: %d %s", status, answer)
	}
	c.alike()
	for _, m := range c.members {
		m.stop()
	}
	for _, m := range c.members[1:] {
		if m.hash != c.members[0].hash {
			t.Errorf("member %d has another state than member 1", m.id)
		}
	}
}
