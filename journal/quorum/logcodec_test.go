package quorum

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"posttrade/ring/must"
)

func logValues() []raft.Log {
	at := time.Unix(1_700_000_000, 123456789)
	return []raft.Log{
		{Index: 1, Term: 1, Type: raft.LogCommand, Data: []byte("x"), AppendedAt: at},
		{Index: 2, Term: 1, Type: raft.LogNoop},
		{Index: 1 << 60, Term: 1 << 61, Type: raft.LogConfiguration, Data: bytes.Repeat([]byte{7}, 5000),
			AppendedAt: at},
		{Index: 4, Term: 2, Type: raft.LogBarrier, Extensions: []byte("ext"), AppendedAt: at},
		{Index: 5, Term: 2, Type: raft.LogCommand, Extensions: []byte("ext"), Data: []byte("data"),
			AppendedAt: at},
		{Index: 6, Term: 2, Type: raft.LogAddPeerDeprecated, AppendedAt: time.Unix(-5, 0)},
	}
}

func logBytes(l *raft.Log) []byte {
	v := make([]byte, logValueSize(l))
	putLogValue(v, l)
	return v
}

func TestLogValueReadsBackAsWritten(t *testing.T) {
	for _, want := range logValues() {
		var got raft.Log
		must.OK(t, parseLogValue(logBytes(&want), want.Index, &got))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("index %d: %s", want.Index, diff)
		}
	}
}

func TestDamagedLogValueIsNamedByItsIndex(t *testing.T) {
	l := raft.Log{Index: 77, Term: 3, Data: []byte("some data"), Extensions: []byte("e")}
	whole := logBytes(&l)
	var got raft.Log
	for bit := range len(whole) * 8 {
		v := bytes.Clone(whole)
		v[bit/8] ^= 1 << (bit % 8)
		err := parseLogValue(v, 77, &got)
		must.Be(t, err, ErrLogDamaged)
		if !strings.Contains(err.Error(), "index=77") {
			t.Fatalf("bit %d: %v does not name the index", bit, err)
		}
	}
	for n := range whole {
		must.Be(t, parseLogValue(whole[:n], 77, &got), ErrLogDamaged)
	}
	must.Be(t, parseLogValue(append(bytes.Clone(whole), 0), 77, &got), ErrLogDamaged)
	must.Be(t, parseLogValue(whole, 78, &got), ErrLogDamaged) // another entry's value
	if got.Index != 0 {
		t.Errorf("a damaged value was read in part: %+v", got)
	}
}

// TestLogValueWithAnHonestChecksumIsStillStrict seals values that no version of this store has
// written.
func TestLogValueWithAnHonestChecksumIsStillStrict(t *testing.T) {
	for _, tt := range []struct {
		name  string
		at    int
		value byte
	}{
		{"version", 0, 2},
		{"type", 1, byte(raft.LogConfiguration) + 1},
		{"first reserved byte", 2, 1},
		{"second reserved byte", 3, 1},
		{"another index", 8, 8},
		{"extensions longer than what follows", 32, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := raft.Log{Index: 9, Term: 3, Data: []byte("data")}
			v := logBytes(&l)
			v[tt.at] = tt.value
			sealLogValue(v)
			var got raft.Log
			must.Be(t, parseLogValue(v, 9, &got), ErrLogDamaged)
		})
	}
}

func FuzzLogValue(f *testing.F) {
	for _, l := range logValues() {
		f.Add(l.Index, logBytes(&l))
	}
	f.Add(uint64(0), []byte{})
	f.Fuzz(func(t *testing.T, index uint64, v []byte) {
		if len(v) >= logValueHeader {
			sealLogValue(v) // a wrong checksum would hide every other check
		}
		var l raft.Log
		if err := parseLogValue(v, index, &l); err != nil {
			if l.Index != 0 {
				t.Fatalf("%v, and yet %+v", err, l)
			}
			return
		}
		if again := logBytes(&l); !bytes.Equal(again, v) {
			t.Fatalf("%x was read as %+v, which is written as %x", v, l, again)
		}
	})
}
