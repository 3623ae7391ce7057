// Package waittest lets tests wait for what other goroutines and processes bring about, and read
// what they log.
//
// Until looks again and again until a condition holds, and fails the test with what was last seen
// when it never does; Spin looks without a pause. Their bound is generous, so that a slow machine
// does not decide a test; no test sleeps for a time of its own. Log collects lines from any
// goroutine.
package waittest
