package must

import (
	"errors"
	"fmt"
	"strings"
)

// Test is what a step needs of its test. Those of the property checker have it too.
type Test interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// OK ends the test on an error.
func OK(t Test, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// Get ends the test on an error, and is the value otherwise: must.Get(os.ReadFile(name))(t).
func Get[T any](v T, err error) func(Test) T {
	return func(t Test) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Be ends the test unless err is want, or wraps it.
func Be(t Test, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// ErrorContains ends the test unless there is an error and its text contains part.
func ErrorContains(t Test, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Fatalf("got error %v, want one that says %q", err, part)
	}
}

// Panic fails the test unless f panics with a text that contains part. The test goes on.
func Panic(t Test, part string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if said := recover(); said == nil || !strings.Contains(fmt.Sprint(said), part) {
			t.Errorf("panicked with %v, want %q", said, part)
		}
	}()
	f()
}
