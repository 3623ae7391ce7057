// Package top shows what a running server does, from the stats file that it writes.
//
//	stats file ─► reading ─► pair ─► rates ─► frame ─► terminal or text
//
// Screen looks again and again and holds nothing open in between, so it notices a server that was
// started again. Rates and quantiles are those of the time between two readings. A frame is lines
// of pieces with tones; it is cut to the size of the terminal, or printed as text. The package
// sends nothing to the server.
package top
