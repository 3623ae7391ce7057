package verify

import (
	"errors"
	"fmt"
	"strings"
)

// The exit codes of a verification. The exit code 2, for a command line that is wrong, is not here.
const (
	ExitProven    = 0
	ExitCannot    = 1 // there is nothing to judge
	ExitNotProven = 3
)

// Say checks the proofs in a text and says the result: an exit code, and a line for each proof that
// holds, then one that says why the next does not. It is what a page in a browser shows.
//
// keys and witnesses may hold several keys in one text (Fields). The lines before a failure are
// proven; the exit code is that of the failure.
func Say(text []byte, keys, witnesses []string) (exit int, said string) {
	k, err := ParseKeys(fieldsOf(keys), fieldsOf(witnesses))
	if err != nil {
		return ExitCannot, err.Error()
	}
	proofs, err := Proofs(text)
	if err != nil {
		return ExitOf(err)
	}
	var lines []string
	for _, p := range proofs {
		proven, err := k.Check(p)
		if err != nil {
			exit, said = ExitOf(err)
			lines = append(lines, said)
			break
		}
		lines = append(lines, fmt.Sprintf("proven %s", proven))
	}
	return exit, strings.Join(lines, "\n")
}

// ExitOf is the exit code of an error of this package, with its words: a Refusal is "not proven",
// any other error means that there was nothing to judge.
func ExitOf(err error) (exit int, said string) {
	var refused *Refusal
	if errors.As(err, &refused) {
		return ExitNotProven, "not proven: " + err.Error()
	}
	return ExitCannot, err.Error()
}

// between reports what separates keys.
func between(r rune) bool { return r <= ' ' || r == ',' }

// Fields takes keys apart that stand in one text, between blanks, line breaks or commas.
func Fields(text string) []string { return strings.FieldsFunc(text, between) }

func fieldsOf(list []string) (keys []string) {
	for _, text := range list {
		keys = append(keys, Fields(text)...)
	}
	return keys
}
