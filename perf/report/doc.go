// Package report draws results files as one page that needs no other file.
//
//	results file ─► Parse ─┐
//	.hgrm beside ─► ───────┼─► []*Run ─► Write ─► one HTML page: text, inline SVG, no script
//	results file ─► Parse ─┘
//
// Each run has its machine, its targets, and plots of what it measured: rates, latency against
// rate, percentiles, commands in a commit, gaps of a spinning thread. When several runs have the
// same target, a row of small plots shows its figures from run to run, each beside the processor on
// which it was measured.
//
// The page follows the reader's choice of a light or a dark background, and every point shows its
// value under the pointer. Text from a results file is text on the page, never markup. The same
// runs give the same bytes.
package report
