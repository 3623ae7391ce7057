// Package whatif decides a part of the history anew, with something changed, and compares.
//
//	journal --> reader --> baseline engine --> change the commands --> supposed --> compare
//	                        (as it was)         verdicts, limits,                    |
//	                                            accounts, acts, latency              v
//	                                                             orders, trades, profit and loss
//
// Both engines start from the same state. What holds:
//
//   - Without a change there is no difference: the supposed engine is given the same commands.
//   - A record that carries the gate's refusal is decided anew when the engine's own checks, in the
//     state of the baseline, give the same reason. When they do not, the gate knew something else
//     (a price a moment older, an entitlement), and its refusal stays.
//   - Orders keep their numbers. An order of an account that is left out is refused and keeps its
//     number; where commands change their order, numbers are translated.
//   - Differences are reported by the history's own sequences and order numbers.
//
// What a strategy would have done instead is not modelled: the commands are the journal's own.
//
// The three stages run side by side, on chunks that go round. Nothing is written.
//
// Goroutines: one reads the history, decides it and changes the commands; one has the supposed
// engine decide them; the caller's compares and reports. A chunk belongs to one of them at a time,
// so nothing is locked.
package whatif
