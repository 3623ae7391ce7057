// Package disk makes files of the operating system durable.
//
//	Replace   name.new: write, sync ─► rename to name ─► SyncDir
//	MakeDir   the highest that is missing: make, SyncDir of its parent ─► the next ─► name
//
// What holds: after a crash at any moment a reader finds the file as it was before Replace or as it
// is after it, never a part of it. When Replace, MakeDir or SyncDir returns nil, a power cut takes
// neither content nor name. A file name.new that a crash leaves is written over by the next
// Replace, so two processes must not replace one file at the same time.
//
// Errors name the file and come from the operating system. After one the old file is in its place.
// A call blocks for the disk. The journal and the consensus log have file systems of their own.
package disk
