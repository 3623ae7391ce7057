// Package must has what nearly every test asks of a step: that it had no error, that its error is
// the one expected, that it panics. What does not hold ends the test at the caller's line.
package must
