// Package timetext writes and reads times of the journal, epoch milliseconds, as the text of every
// interface: RFC 3339. What it writes is in UTC with milliseconds.
package timetext
