//go:build !linux

package top

import (
	"errors"
	"os"
	"time"
)

// terminalState has nothing to keep: only Linux terminals are drawn on.
type terminalState struct{}

// OnTerminal: no file counts as a terminal that can be drawn on.
func OnTerminal(*os.File) bool { return false }

// oneByOne and what follows are never reached, because OnTerminal is false.
func oneByOne(int) (*terminalState, error) { return nil, errors.ErrUnsupported }

func restoreKeys(int, *terminalState) error { return errors.ErrUnsupported }

func pollKey(int, time.Duration) (key byte, ok bool) { return 0, false }

func sizeOf(*os.File) (columns, rows int) { return 0, 0 }

func notifyResized(chan<- os.Signal) {}
