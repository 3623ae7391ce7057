// Package timetext writes times of the journal, epoch milliseconds, as the text that every
// interface shows: RFC 3339 in UTC with milliseconds.
package timetext
