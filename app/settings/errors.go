package settings

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// The exit codes of every command.
const (
	ExitOK       = 0
	ExitFailed   = 1 // with one line on stderr
	ExitUsage    = 2 // an unknown command, flag or setting, or an invalid one
	ExitMismatch = 3 // a verification found a difference
)

// UsageError is a mistake in the caller's input: exit code 2.
type UsageError struct{ message string }

func (e UsageError) Error() string { return e.message }

func Usagef(format string, args ...any) error {
	return UsageError{fmt.Sprintf(format, args...)}
}

// ErrMismatch marks a verification that found a difference: exit code 3.
var ErrMismatch = errors.New("mismatch")

// Exit prints the error with which a command ended as one line and returns the exit code for it. A
// request for help is no error.
func Exit(stderr io.Writer, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return ExitOK
	}
	fmt.Fprintf(stderr, "posttrade: %s\n", strings.Join(strings.Fields(err.Error()), " "))
	var usage UsageError
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, ErrMismatch):
		return ExitMismatch
	}
	return ExitFailed
}
