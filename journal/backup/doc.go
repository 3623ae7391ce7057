// Package backup keeps a journal in directories: a whole one, and after it one for each part that
// has been added since. A directory holds what a transfer sends, the rows that no journal gives
// again, and a manifest.
//
//	Contents --> Write(DIR)  --> journal.stream   verified while it is written
//	                             tables.ndjson    rows that only SQL has; may be missing
//	                             backup.json      written last: without it there is no backup
//	                             unfinished       while it is being written, or if that was cut short
//
//	DIR, DIR2, ... --> Restore(data.dir) --> journal/   received like a member's, up to a sequence
//	                                         restored/  for the first start: rows, and a new epoch
//	                                         restoring  while it works, or when that was cut short
//
// What holds:
//
//   - A directory is a backup from the moment when backup.json has its name. Everything that the
//     manifest names is on stable storage before that. A write that was cut short at any other
//     moment leaves the mark unfinished; the next Write into the directory begins again.
//   - Write never changes a directory that holds a backup, or anything else that is not its own.
//   - Each part names the commit that it goes on from, with the chain over everything before it. A
//     part of another journal, or of another place, is refused and named.
//   - Restore verifies every byte that it uses, and works in an empty directory only. What a
//     restore that was cut short has left carries a mark: no server starts on it, and the next
//     Restore begins again.
//
// The package does not know of HTTP or SQL: Contents gives it streams. One goroutine calls each
// function; a lock in the directory keeps other processes out. FORMAT.md has the bytes, section 8.
package backup
