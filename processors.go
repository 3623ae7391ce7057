package main

import "runtime"

// politeThreads is how many threads of a low priority work beside the path of an
// order when all of them have something to do: projection, reconciliation, the price
// history and a report, the last two with a thread that reads ahead for them.
//
// A thread that the kernel keeps off its core goes on holding the Go scheduler's
// processor that it ran on. With none left the goroutines of the answer path (the log's
// writer, the committer, whoever waits for an answer) are ready and stand in a queue
// that nobody serves until the runtime's monitor looks, up to 10 ms later; the priority of
// the thread they wait for does not help them, because it is not the kernel that they
// wait for. With a processor for each polite thread only the kernel decides who runs.
const politeThreads = 6

// lendProcessors gives the Go scheduler a processor for each polite thread, on top
// of those that the path of an order has. The returned function takes them back.
func lendProcessors() (takeBack func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + politeThreads)
	return func() { runtime.GOMAXPROCS(before) }
}
