//go:build !unix

package journal

import "github.com/cockroachdb/pebble/v2/vfs"

// placeOf: files have no number here, so a copy is not known for one.
func placeOf(vfs.FS, string) (uint64, bool) { return 0, false }
