package tca

import (
	"log/slog"
)

// alarm logs once that something fails, and once that it works again.
//
// One goroutine uses it.
type alarm struct {
	log  *slog.Logger
	what string
	on   bool
}

func (a *alarm) ring(err error) {
	if !a.on {
		a.on = true
		a.log.Warn(a.what+" does not work and is tried again", "err", err)
	}
}

func (a *alarm) still() {
	if a.on {
		a.on = false
		a.log.Info(a.what + " works again")
	}
}
