package settings

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// The exit codes of every command.
//
// A unit file, a script and the exit codes of docs/operations.md rely on them: a code never
// changes its meaning.
const (
	ExitOK       = 0
	ExitFailed   = 1 // with one line on stderr
	ExitUsage    = 2 // an unknown command, flag or setting, or an invalid one
	ExitMismatch = 3 // a verification found a difference
)

// UsageError is a mistake in the caller's input: exit code 2.
//
// A retry without another input cannot help. Its text is one line that begins with the name of
// what is wrong: a setting, a flag or an argument.
type UsageError struct{ message string }

func (e UsageError) Error() string { return e.message }

// Usagef makes a UsageError. Pass values from outside through Printable, so that they stay on one
// line.
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Sprintf(format, args...)}
}

// ErrMismatch marks a verification that found a difference: exit code 3.
//
// The verification itself has worked. Wrap it around the difference; test it with errors.Is.
var ErrMismatch = errors.New("mismatch")

// Exit prints the error with which a command ended as one line and returns the exit code for it. A
// request for help is no error.
//
// White space in the text becomes single blanks, so an error of many lines stays one line in a
// log, and what is not printable becomes an escape (plain). A UsageError anywhere in the chain
// decides before ErrMismatch.
func Exit(stderr io.Writer, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return ExitOK
	}
	fmt.Fprintf(stderr, "posttrade: %s\n", plain(strings.Join(strings.Fields(err.Error()), " ")))
	var usage UsageError
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, ErrMismatch):
		return ExitMismatch
	}
	return ExitFailed
}
