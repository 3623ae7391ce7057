// Package waittest lets tests wait for what other goroutines and processes bring about.
package waittest
