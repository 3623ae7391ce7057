// Package matchertest has a second engine for tests: a model that decides every command in the
// plainest way. The engine's own tests compare each event and the whole state with it; those of
// what is built on engines use it as an oracle that shares nothing with the engine.
//
//	command -+-> matcher.Engine -> events -+
//	         |        |                    +- equal, event by event
//	         +-> Model.Apply ----> events -+
//	                  |
//	            Model.Compare reads both states: equal wherever a test asks
//
// What holds:
//
//   - The model has no index, no running sum, no ladder and no table of keys. It scans its lists
//     for every question, and computes money in big integers. So a mistake of the engine in any of
//     these is not repeated here.
//   - Where the engine's rules depend on the version of a record, the model's do too (Model.rules).
//     It finds out by itself which decisions are recorded as version 3.
//   - Commands come in the form that Decode requires. The model panics or answers anything for
//     others.
//
// It scans what a flow has left behind at every command, so it is for short flows.
//
// It does not know operators' notes, revocations, eras of order numbers, snapshots and replays, and
// of the capacities it raises only the room for orders. A Model belongs to one goroutine; only
// tests import the package.
package matchertest
