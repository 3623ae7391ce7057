// Package transfer is the outside of a journal that goes from one directory, or one machine, to
// another: the frames of its stream, and the exchange of one directory for another.
//
//	journal.Transfer -> Writer -> bytes -> Reader -> journal.Receive -> a new directory
//	                                                                        |
//	                                             a Replacement: dir <-------+
//
// What is in a frame is for the caller: the package knows neither keys nor blocks, and reads no
// store. FORMAT.md, section 6, has the bytes.
//
// What holds:
//
//   - A stream is a header, then frames, then an end frame. A frame is its kind, seven zeros and
//     the length of its body in bytes, 8 bytes little endian, before the body.
//   - The end frame has the number of frames before it, and the SHA-256 of every byte of the stream
//     before the hash. A Reader whose End returns nil has read what a Writer made, and no byte
//     more.
//   - A Reader holds one body in memory, of at most the limit that its caller states, and grows
//     with the bytes that arrive, never with a length that is announced.
//   - A Replacement moves whole directories only. After a crash at any moment one of the two
//     journals is there under a known name, and another run completes the exchange.
//
// Errors: ErrNotWhole for what is wrong with the stream's content, with the offset in bytes; the
// errors of the reader that it is read from come back as they are. ErrReplace for directories in a
// state that no crash leaves behind.
//
// A Writer, a Reader and a Replacement belong to one goroutine. None keeps anything on disk itself
// but the Replacement, which blocks for its renames and syncs.
package transfer
