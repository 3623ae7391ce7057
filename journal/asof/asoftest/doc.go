// Package asoftest writes journals for tests of what reads the past.
package asoftest
