package replay

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/app/top"
)

// showProgress draws a line on stderr while a replay runs, if stderr is a terminal or always is
// set. total 0 means not known. The caller calls the function that it returns to end the line; it
// waits until the last line is drawn, so that no other output gets into it. Drawing reads one
// counter five times a second and does not touch the replay.
func showProgress(stderr io.Writer, always bool, done *atomic.Int64, total int64) (stop func()) {
	if !always && !isTerminal(stderr) {
		return func() {}
	}
	quit := make(chan struct{})
	begin := time.Now()
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(stderr, "\r%s", progressLine(done.Load(), total, time.Since(begin)))
			case <-quit:
				fmt.Fprintf(stderr, "\r%s\n", progressLine(done.Load(), total, time.Since(begin)))
				return
			}
		}
	})
	return func() {
		close(quit)
		drawing.Wait()
	}
}

// progressLine is "[######......] 40 % 12345 steps 6789/s", without the bar when the total is not
// known. The rate is the mean since the start, not that of the last moment.
func progressLine(done, total int64, elapsed time.Duration) string {
	rate := float64(done) / max(elapsed.Seconds(), 1e-9)
	if total <= 0 {
		return fmt.Sprintf("%d steps  %.0f/s", done, rate)
	}
	share := min(float64(done)/float64(total), 1)
	bar := make([]byte, progressWidth)
	for i := range bar {
		bar[i] = '.'
		if float64(i) < share*progressWidth {
			bar[i] = '#'
		}
	}
	return fmt.Sprintf("[%s] %3.0f %%  %d steps  %.0f/s", bar, 100*share, done, rate)
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && top.OnTerminal(file)
}
