package control

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"posttrade/matcher/strictjson"
)

// Snapshot is a source's whole universe at one moment.
//
// What holds in one that was read: every record's Version is at most Watermark, and the records are
// sorted with no key twice. A replica continues with the delta of version Watermark+1.
type Snapshot struct {
	Source Source
	Epoch  uint64
	// Watermark is 0 before the source's first change; there are no records then.
	Watermark uint64   // the highest version that it includes
	Records   []Record // ascending by id, or by the ticker's bytes; each once
}

const checksumPrefix = "sha256:"

// Checksum returns the SHA-256 over the RFC 8785 canonical JSON of the records, the schema version,
// the source, its epoch and the watermark.
//
// Source and replica both compute it from their own records and never from a text, so it also finds
// what a reader has understood otherwise than the writer. Cost: the whole text in memory.
func (s *Snapshot) Checksum() [sha256.Size]byte {
	b := append(make([]byte, 0, 128+96*len(s.Records)), `{"records":`...)
	b = s.appendRecords(b)
	b = append(b, `,"schemaVersion":1,"source":"`...)
	b = append(b, s.Source...)
	b = append(b, `","sourceEpoch":`...)
	b = strconv.AppendUint(b, s.Epoch, 10)
	b = append(b, `,"watermark":`...)
	b = append(strconv.AppendUint(b, s.Watermark, 10), '}')
	return sha256.Sum256(b)
}

func (s *Snapshot) appendRecords(b []byte) []byte {
	b = append(b, '[')
	for i := range s.Records {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.Records[i].appendJSON(b, s.Source)
	}
	return append(b, ']')
}

// AppendJSON appends the snapshot in the form in which its service sends it.
//
// Header members come before the records. The count is redundant: it tells a truncated list from a
// damaged one.
func (s *Snapshot) AppendJSON(b []byte) []byte {
	sum := s.Checksum()
	b = append(b, `{"schemaVersion":1,"source":"`...)
	b = append(b, s.Source...)
	b = append(b, `","sourceEpoch":`...)
	b = strconv.AppendUint(b, s.Epoch, 10)
	b = append(b, `,"watermark":`...)
	b = strconv.AppendUint(b, s.Watermark, 10)
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, int64(len(s.Records)), 10)
	b = append(b, `,"checksum":"`+checksumPrefix...)
	b = hex.AppendEncode(b, sum[:])
	b = append(b, `","records":`...)
	return append(s.appendRecords(b), '}')
}

// ParseSnapshot reads and verifies a snapshot of a source.
//
// Errors: ErrMalformed for a text that is no such snapshot, or has records out of order or newer
// than its watermark; ErrCount; ErrChecksum.
//
// With any error the returned Snapshot is empty. It does not compare the epoch or the watermark
// with what the replica has: bootstrap does that.
func ParseSnapshot(s Source, data []byte) (Snapshot, error) {
	snap := Snapshot{Source: s}
	var count uint64
	var checksum string
	r := strictjson.NewReader(data)
	var met fields
	for key := range r.Members {
		switch string(key) {
		case "schemaVersion":
			met |= 1
			schema(r)
		case "source":
			met |= 2
			source(r, s)
		case "sourceEpoch":
			met |= 4
			snap.Epoch = number(r, 1, MaxEpoch)
		case "watermark":
			met |= 8
			snap.Watermark = number(r, 0, MaxVersion)
		case "count":
			met |= 16
			count = number(r, 0, MaxVersion)
		case "checksum":
			met |= 32
			checksum = string(r.String())
		case "records":
			met |= 64
			for r.BeginArray(); r.NextItem(); {
				snap.Records = append(snap.Records, readRecord(r, s))
			}
		default:
			r.Fail(unknown(key))
		}
	}
	met.need(r, 7)
	if err := r.End(); err != nil {
		return Snapshot{}, malformed("snapshot", s, err)
	}
	if err := snap.verify(count, checksum); err != nil {
		return Snapshot{}, fmt.Errorf("control: read snapshot source=%s: %w", s, err)
	}
	return snap, nil
}

// verify compares the count and the checksum that a snapshot states with its content.
func (s *Snapshot) verify(count uint64, checksum string) error {
	if count != uint64(len(s.Records)) {
		return fmt.Errorf("%d records, it says %d: %w", len(s.Records), count, ErrCount)
	}
	sum := s.Checksum()
	if given, ok := strings.CutPrefix(checksum, checksumPrefix); !ok ||
		given != hex.EncodeToString(sum[:]) {
		return ErrChecksum
	}
	for i := range s.Records {
		r := &s.Records[i]
		if i > 0 && s.Records[i-1].compare(r, s.Source) >= 0 {
			return fmt.Errorf("record %s is out of order: %w", r.Key(s.Source), ErrMalformed)
		}
		if r.Version > s.Watermark {
			return fmt.Errorf("record %s has version %d above the watermark %d: %w", r.Key(s.Source),
				r.Version, s.Watermark, ErrMalformed)
		}
	}
	return nil
}
