// Package metric is how a part of the process states what it counts.
//
//	part.Collect(emit) ─┐
//	part.Collect(emit) ─┼─► Emit ─► the text of GET /metrics
//	part.Collect(emit) ─┘
//
// Each part has a method Collect with its own names, help texts and types, beside the code that
// counts; a scrape calls them all with one Emit. What holds of every call:
//
//   - The name of a time ends with _seconds, of a size with _bytes, of a count that only grows with
//     _total.
//   - Metrics of one name have the same help, type and label names.
//   - The values of a label are a short list of classifications. An id of an order, an account or a
//     client is never one: a scrape would grow with the flow.
//
// Collect runs on the scrape's goroutine while the part works, so it takes no lock of the path of
// an order. The package keeps nothing and knows no monitoring system.
package metric
