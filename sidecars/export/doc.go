// Package export writes trades, blotter entries and positions as CSV and as Parquet.
//
//	rows, a page at a time ──► Writer ──► CSV:     a line a row
//	                                └───► Parquet: row groups of some ten thousand rows
//
// Columns have the names and the content of the members of the JSON documents.
//
// What holds:
//
//   - Memory does not depend on the number of rows: a Writer keeps one buffer (CSV) or one row
//     group (Parquet).
//   - Prices are exact: decimal text in CSV, DECIMAL(19,6) in Parquet. Times are exact to the
//     millisecond. The end of a file is written by Close alone: one that is cut short has no
//     footer, or fewer rows than its sender says.
//   - CSV is that of RFC 4180 with a header line, lines ending with LF. A text that begins with a
//     character by which spreadsheets know a formula (= + - @, tab, CR) has a ' before it, so that
//     it stays text. Numbers are never changed. Parquet has every text as it is.
//
// A Writer belongs to one goroutine. The package reads no database and does not know of HTTP.
package export
