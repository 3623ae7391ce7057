//go:build !linux

package session

import (
	"fmt"
	"net"
	"os"

	"posttrade/ring"
)

// supported: listen refuses, so nothing below is ever called.
const supported = false

func setMode(uintptr, os.FileMode) error { return ring.ErrUnsupported }

func eventRegion(int) (*ring.Region, error) {
	return nil, fmt.Errorf("session: share memory: %w", ring.ErrUnsupported)
}

func rightsTo([]*ring.Region) (rights []byte, drop func(), err error) {
	return nil, func() {}, ring.ErrUnsupported
}

func peerOf(*net.UnixConn) int32 { return 0 }
