package twin

import "testing"

// A processor without the instructions gets the same sums.
func TestSumsWithoutTheInstructions(t *testing.T) {
	if !fast {
		return // they are what the other test has compared
	}
	fast = false
	defer func() { fast = true }()
	TestSumsAreThoseOfTheStandardLibrary(t)
}
