package gate

import "posttrade/ring/metric"

// Collect states the kill switch, the prices that came too late and the events that did not fit the
// image. Any goroutine; it takes no lock.
func (g *Gate) Collect(emit metric.Emit) {
	emit.Flag("svc_kill_switch",
		"Whether the kill switch is on and every order is refused (1) or not.", g.Killed())
	emit.Counter("svc_price_ticks_late_total", "Prices older than the market price, which stays.",
		g.Late())
	emit.Counter("svc_gate_missed_total",
		"Events of the engine that did not fit the gate: above 0 the two disagree.", g.Missed())
}
