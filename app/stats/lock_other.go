//go:build !linux

package stats

import "posttrade/ring"

// Only Linux maps the file, so there is none to lock.

func lock(*ring.Region) error { return ring.ErrUnsupported }

func locked(*ring.Region) (bool, error) { return false, ring.ErrUnsupported }
