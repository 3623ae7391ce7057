// Package feed turns the durable history into events for outside readers: what has changed in the
// books, trades, orders, prices, controls and contracts, one event per change, for any reader from
// any position on.
//
//	                         +-> batches of the last events -+-> Reader -> client
//	journal -> shadow -> deriver, once per event             +-> Reader -> client
//	   |                                                     |
//	   +-----> shadow from a snapshot -> deriver ------------+-> Reader of older history
//
// An event is a function of the commands up to its own: the deriver sees the events of an engine
// that replays the journal, with read views beside it, and numbers what it derives within each
// command. So the live stream and a replay of years ago give the same numbers and the same bytes,
// after a restart and on every member. The Hub's shadow follows the durable head; it is made for
// the first reader and closed some time after the last.
//
// What holds:
//
//   - Nothing beyond the durable head is derived.
//   - The matcher and the recorder do not know of readers, and no reader waits for another one.
//   - An event is formatted once (Options.Render), however many readers get it. What a selection
//     leaves out is cut once per batch for all readers of the same selection, as long as the batch
//     has room for the text.
//   - What is held in memory, with the texts of selections, is bounded (Options.Retain), however
//     many selections there are.
//   - A Reader gets every event of its selection behind its position, once and in order, or an end
//     with a reason. A batch holds whole commands.
//   - A live reader for which more than MaxPending bytes wait is ended. A reader of older history
//     is paced by its caller; it joins the live stream when the events behind its position are held
//     in memory.
//
// The Hub owns its shadow's goroutine. Any goroutine may open a Reader; a Reader belongs to one.
// The package does not know callers, tokens or HTTP.
package feed
