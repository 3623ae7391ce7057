package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"
)

// ErrLogDamaged reports an entry of the raft log that is not what was written:
// a checksum that does not hold, a version that is not ours, an entry that is
// missing between two others. The error that carries it names the index.
var ErrLogDamaged = errors.New("raft log damaged")

// The bytes of one entry in the log store, little endian:
//
//	version u8, type u8, two zero bytes, CRC-32C u32 of the bytes before and behind it,
//	index u64, term u64, appended at i64 (ns since 1970, 0 = unknown),
//	length of the extensions u32, extensions, data.
const (
	logValueVersion = 1
	logValueHeader  = 36
)

// logCRC is the polynomial of CRC-32C.
var logCRC = crc32.MakeTable(crc32.Castagnoli)

// logValueSize is how many bytes putLogValue writes.
func logValueSize(l *raft.Log) int { return logValueHeader + len(l.Extensions) + len(l.Data) }

// putLogValue writes the entry into v, which has logValueSize bytes. The data has no length of its
// own: it goes to the end.
func putLogValue(v []byte, l *raft.Log) {
	v[0], v[1], v[2], v[3] = logValueVersion, byte(l.Type), 0, 0
	binary.LittleEndian.PutUint64(v[8:], l.Index)
	binary.LittleEndian.PutUint64(v[16:], l.Term)
	var at int64
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	binary.LittleEndian.PutUint64(v[24:], uint64(at))
	binary.LittleEndian.PutUint32(v[32:], uint32(len(l.Extensions)))
	n := copy(v[logValueHeader:], l.Extensions)
	copy(v[logValueHeader+n:], l.Data)
	sealLogValue(v)
}

// sealLogValue writes the checksum.
func sealLogValue(v []byte) { binary.LittleEndian.PutUint32(v[4:], logValueSum(v)) }

func logValueSum(v []byte) uint32 {
	return crc32.Update(crc32.Checksum(v[:4], logCRC), logCRC, v[8:])
}

// parseLogValue is the inverse of putLogValue. It copies, with one allocation, and sets every field
// of l. index is the key's: an entry under another key is damage. Errors are ErrLogDamaged.
func parseLogValue(v []byte, index uint64, l *raft.Log) error {
	if len(v) < logValueHeader {
		return fmt.Errorf("quorum: read log index=%d: %d bytes, want at least %d: %w",
			index, len(v), logValueHeader, ErrLogDamaged)
	}
	if v[0] != logValueVersion || v[2]|v[3] != 0 {
		return fmt.Errorf("quorum: read log index=%d: version %d, want %d: %w", index, v[0],
			logValueVersion, ErrLogDamaged)
	}
	if got, want := logValueSum(v), binary.LittleEndian.Uint32(v[4:]); got != want {
		return fmt.Errorf("quorum: read log index=%d: crc %08x, want %08x: %w", index, got, want,
			ErrLogDamaged)
	}
	if v[1] > byte(raft.LogConfiguration) {
		return fmt.Errorf("quorum: read log index=%d: type %d: %w", index, v[1], ErrLogDamaged)
	}
	if own := binary.LittleEndian.Uint64(v[8:]); own != index {
		return fmt.Errorf("quorum: read log index=%d: holds index %d: %w", index, own, ErrLogDamaged)
	}
	body, extensions := v[logValueHeader:], uint64(binary.LittleEndian.Uint32(v[32:]))
	if extensions > uint64(len(body)) {
		return fmt.Errorf("quorum: read log index=%d: extensions of %d bytes in %d: %w",
			index, extensions, len(body), ErrLogDamaged)
	}
	*l = raft.Log{Index: index, Term: binary.LittleEndian.Uint64(v[16:]), Type: raft.LogType(v[1])}
	if at := int64(binary.LittleEndian.Uint64(v[24:])); at != 0 {
		l.AppendedAt = time.Unix(0, at)
	}
	body = append([]byte(nil), body...)
	if extensions > 0 {
		l.Extensions = body[:extensions:extensions]
	}
	if len(body) > int(extensions) {
		l.Data = body[extensions:]
	}
	return nil
}
