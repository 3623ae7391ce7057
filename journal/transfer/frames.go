package transfer

import "crypto/sha256"

// The stream's header: the magic, the version and zeros.
const (
	magic          = "PTJSTREA"
	versionWhole   = 1
	versionSection = 2 // with the commit that it goes on from
	headerBytes    = 16
)

// Kinds of frames that are a stream's own. The others are the prefixes of the store's keys.
const (
	KindBase = 'b' // the commit that the stream goes on from
	KindFile = 'd' // a file of a snapshot
	KindEnd  = 'e'
)

const (
	// FrameBytes is the size of a frame's header.
	FrameBytes = 16
	// endBytes is the size of the body of the end frame: the number of frames, the hash.
	endBytes = 8 + sha256.Size
	// EndBytes is the size of the end frame, with its header.
	EndBytes = FrameBytes + endBytes
	// ChunkBytes is about how much a side holds of a stream beside one body.
	ChunkBytes = 1 << 20
)
