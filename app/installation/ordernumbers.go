package installation

import (
	"fmt"
	"log/slog"
	"time"

	"posttrade/app/engine"
	"posttrade/httpapi"
	"posttrade/matcher"
	"posttrade/ring/metric"
)

// numbersUsed are shares of the order numbers. These go up to matcher.MaxOrderNumber, which is
// three years at three million a second. Long before the end the operator is told: by a warning at
// each of these shares, and by a part of /readyz from the first share on.
var numbersUsed = [...]float64{0.75, 0.90, 0.99}

// numbersEvery is the time between two looks at the last number.
//
// At the highest rate of orders, the shares are months apart.
const numbersEvery = time.Second

// usedNumbers is the share of the order numbers that are used; next is the number of the next
// order.
//
// next is at least 1.
func usedNumbers(next uint64) float64 { return float64(next-1) / float64(matcher.MaxOrderNumber) }

// numberMetrics says how far the numbering of orders has come.
//
// Both are of the views, which are a batch of events behind the matcher at most.
func numberMetrics(c *engine.Engine, emit metric.Emit) {
	next := c.Views.NextRef()
	emit.Gauge("svc_order_last_number", "Number of the last order, the <n> of its ord-<n>.",
		float64(next-1))
	emit.Gauge("svc_order_numbers_used_ratio",
		"Share of all order numbers that are used; none is given twice.", usedNumbers(next))
}

// numbersPart is the order numbers on /readyz; no part while enough are left.
//
// It is not ready when no number is left. Orders are refused then by the engine; the part works
// beside readiness, because another process of the same journal could not do more.
func numbersPart(next uint64) []httpapi.Part {
	used := usedNumbers(next)
	if used < numbersUsed[0] {
		return nil
	}
	return []httpapi.Part{{Name: "order numbers", Ready: next <= matcher.MaxOrderNumber, Beside: true,
		Detail: fmt.Sprintf("%.2f %% are used, the last one is %d", 100*used, next-1)}}
}

// numberWatch warns when another share of the order numbers is used. One goroutine, the one in run,
// owns it.
type numberWatch struct {
	next   func() uint64 // the number of the next order
	log    *slog.Logger
	warned int // how many of numbersUsed
}

// look warns when a share has been reached. After a start one warning names the highest one.
func (w *numberWatch) look() {
	next := w.next()
	reached := w.warned
	for reached < len(numbersUsed) && usedNumbers(next) >= numbersUsed[reached] {
		reached++
	}
	if reached > w.warned {
		w.warned = reached
		w.log.Warn("order numbers are being used up", "last", next-1, "of", matcher.MaxOrderNumber,
			"used", fmt.Sprintf("%.2f %%", 100*usedNumbers(next)))
	}
}

// watchNumbers starts the watch of the order numbers.
//
// It ends with watching.
func (in *Installation) watchNumbers(log *slog.Logger) {
	w := &numberWatch{next: in.Core.Views.NextRef, log: log}
	in.watching.start("order numbers", numbersEvery, w.run)
}

// run looks at every tick until stop is closed.
func (w *numberWatch) run(tick <-chan time.Time, stop <-chan struct{}) error {
	for {
		w.look()
		select {
		case <-tick:
		case <-stop:
			return nil
		}
	}
}
