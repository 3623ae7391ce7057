package settings

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestNothingThatIsPrintedMovesTheCursor: neither in an error nor in a line of a result.
func TestNothingThatIsPrintedMovesTheCursor(t *testing.T) {
	text := "a\x1b[2J \u009b1m\x7f\u202e\xff é—\n"
	want := `a\x1b[2J \u009b1m\x7f\u202e\xff é—` + "\n"
	var out strings.Builder
	if n, err := fmt.Fprint(Plain{&out}, text); n != len(text) || err != nil || out.String() != want {
		t.Errorf("%d %v %q", n, err, out.String())
	}
	out.Reset()
	if Exit(&out, errors.New(text)); out.String() != "posttrade: "+want {
		t.Errorf("%q", out.String())
	}
}
