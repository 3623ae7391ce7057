package load

import (
	"fmt"
	"runtime"
	"time"
)

// Saturate keeps window requests in flight for d and returns the answers per second. At a higher
// rate an open loop would not end.
//
//   - It is a closed loop, so its rate depends on the window: too small a one measures round trips.
//   - The time runs until the last answer, so requests under way at the end count with their time.
//     The start, when nothing is in flight yet, is in it too.
//   - Numbers of requests count from 0 in each call, as in Run.
//   - A nil clock is the machine's. It blocks, on the calling goroutine and a thread of its own.
//   - Errors: a window or a time that is none; the target's, wrapped; ErrUnanswered after 30 s in
//     which no request was answered.
func Saturate(t Target, window int, d time.Duration, clock Clock) (perSecond float64, err error) {
	if window < 1 || d <= 0 {
		return 0, fmt.Errorf("load: saturate window=%d for=%v: want both above 0", window, d)
	}
	if clock == nil {
		clock = NewClock()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sent, open, start := 0, 0, clock.Now()
	answered := func(int, time.Duration) { open-- }
	last := start
	for {
		before := open
		if err := t.Poll(answered); err != nil {
			return 0, fmt.Errorf("load: saturate: poll: %w", err)
		}
		now := clock.Now()
		progress := open < before
		if progress {
			last = now
		}
		if now-start >= d && open == 0 {
			return float64(sent) / (now - start).Seconds(), nil
		}
		if now-last > defaultPatience {
			return 0, fmt.Errorf("load: saturate: %d of %d: %w", open, sent, ErrUnanswered)
		}
		for k := 0; k < burst && open < window && now-start < d; k++ {
			ok, err := t.Send(sent)
			if err != nil {
				return 0, fmt.Errorf("load: saturate: send request=%d: %w", sent, err)
			}
			if !ok {
				break
			}
			sent++
			open++
			progress = true
		}
		if !progress {
			clock.Nap()
		}
	}
}
