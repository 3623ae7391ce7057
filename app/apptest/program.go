package apptest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/ring/must"
)

// built says that a test has asked for the program.
var built atomic.Bool

// program builds the program at most once in a test process.
//
// A failure is kept, too: every test that asks gets the same error.
var program = sync.OnceValues(func() (string, error) {
	built.Store(true)
	dir, err := os.MkdirTemp("", "posttrade-program")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "posttrade")
	out, err := exec.Command("go", "build", "-o", binary, "posttrade/cmd/posttrade").CombinedOutput()
	if err != nil {
		return binary, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
})

// Main runs the tests of a package that calls Program, and removes what was built.
func Main(m *testing.M) int {
	code := m.Run()
	if !built.Load() {
		return code
	}
	if binary, _ := program(); binary != "" {
		os.RemoveAll(filepath.Dir(binary))
	}
	return code
}

// Program is the path of the program, built from the source under test. The package's TestMain
// calls Main.
//
// The build takes seconds, so only tests that need another process call it.
func Program(t testing.TB) string {
	t.Helper()
	return must.Get(program())(t)
}

// Run runs a subcommand of the program and returns its exit code and what it has printed. Code -1
// is a program that could not be run.
//
// It waits for the program's end.
func Run(command string, args ...string) (code int, stdout, stderr string) {
	binary, err := program()
	if err != nil {
		return -1, "", err.Error()
	}
	var out, errs bytes.Buffer
	c := exec.Command(binary, append([]string{command}, args...)...)
	c.Stdout, c.Stderr = &out, &errs
	var ended *exec.ExitError
	if err := c.Run(); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		return -1, "", err.Error()
	}
	return code, out.String(), errs.String()
}
