// Package waittest lets tests wait for what other goroutines and processes bring about, and read
// what they log.
package waittest
