package gate

import "posttrade/ring/metric"

// Collect states the kill switch and the prices that came too late. Any goroutine; it takes no
// lock.
func (g *Gate) Collect(emit metric.Emit) {
	emit.Flag("svc_kill_switch",
		"Whether the kill switch is on and every order is refused (1) or not.", g.Killed())
	emit.Counter("svc_price_ticks_late_total", "Prices older than the market price, which stays.",
		g.Late())
}
