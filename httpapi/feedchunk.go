package httpapi

import (
	"bytes"
	"net"
	"strconv"
)

const chunkEnd = "\r\n"

// writeChunk writes the parts of a piece of a body as one chunk, in one call of the system, within
// the deadline, without copying them. The HTTP library's own takes three calls, and wakes the
// client for the two bytes behind a piece.
//
// Over TLS the parts are joined: each Write would be a record of its own. Only the goroutine that
// writes calls it, and only while the library has nothing in its buffer. An error leaves the
// connection in the middle of a chunk: it must be closed.
func (c *framedConn) writeChunk(parts [][]byte) error {
	line := strconv.AppendUint(nil, uint64(lengthOf(parts)), 16)
	all := make(net.Buffers, 0, len(parts)+2)
	all = append(append(all, append(line, chunkEnd...)), parts...)
	all = append(all, []byte(chunkEnd))
	if _, plain := c.Conn.(*net.TCPConn); !plain {
		_, err := c.Write(bytes.Join(all, nil)) // few records of TLS
		return err
	}
	return c.withinDeadline(func() error {
		_, err := all.WriteTo(c.Conn)
		return err
	})
}

func lengthOf(parts [][]byte) (bytes int) {
	for _, part := range parts {
		bytes += len(part)
	}
	return bytes
}
