// Package watch prints the live feed: a line an event, as columns for people or as JSON.
//
//	client.FeedOf ─► events ─► a line each ─► w
//	                   └── id of the last one: where the next connection goes on
//
// Run belongs to one goroutine and ends with its context, with Options.Count events, or when the
// server refuses the feed. A connection that breaks does not end it: the client connects again
// behind the last event, so nothing is printed twice, and Options.Notices gets one line for each
// outage. A token that expires is renewed by Options.Connect; one that has expired before it served
// an event ends the watch.
//
// The columns show no character that would move a terminal's cursor. JSON is the server's document,
// unchanged.
package watch
