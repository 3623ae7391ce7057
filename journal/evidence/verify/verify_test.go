package verify

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestTheNamesAreTheEngines: this package cannot import the engine, because WebAssembly has no
// mapped memory.
func TestTheNamesAreTheEngines(t *testing.T) {
	for r := range matcher.ReasonCount {
		if got := reasonNames[r]; got != r.String() {
			t.Errorf("reason %d: %s, the engine has %s", r, got, r)
		}
	}
	if len(reasonNames) != int(matcher.ReasonCount) {
		t.Errorf("%d reasons, the engine has %d", len(reasonNames), matcher.ReasonCount)
	}
	for s := matcher.StatusNew; s <= matcher.StatusRejected; s++ {
		if got := statusNames[s]; got != s.String() {
			t.Errorf("status %d: %s, the engine has %s", s, got, s)
		}
	}
	for kind, name := range map[matcher.CommandType]string{
		matcher.OrderNew: "ORDER_NEW", matcher.OrderCancel: "ORDER_CANCEL",
		matcher.ForceFill: "FORCE_FILL", matcher.TradeNew: "TRADE_NEW",
		matcher.OrderReplace: "ORDER_REPLACE", matcher.SwapBook: "SWAP_BOOK",
		matcher.SwaptionBook: "SWAPTION_BOOK", matcher.CapacityControl: "CAPACITY_CONTROL",
	} {
		if typeNames[kind] != name {
			t.Errorf("type %d: %s, the engine has %s", kind, typeNames[kind], name)
		}
	}
	if maxOrderNumber != matcher.MaxOrderNumber {
		t.Errorf("orders have numbers up to %d, the engine's %d", maxOrderNumber, matcher.MaxOrderNumber)
	}
	if sizes := [...]int{lineBytes, lineBytes}; sizes != [...]int{matcher.CommandBytes,
		matcher.FillBytes} {
		t.Error("sizes")
	}
}

// TestRecordBytes pins the layouts of the records, the leaf and the salts.
func TestRecordBytes(t *testing.T) {
	var command, fill [64]byte
	for i := range command {
		command[i], fill[i] = byte(i), byte(200+i)
	}
	got := AppendCommand(nil, &command, Outcome{OrderRef: 0x01020304, Status: 3, Reason: 11},
		[]byte("ab"))
	want := "01" + hex.EncodeToString(command[:]) + "01020304" + "03" + "0b" + "0002" + "6162"
	if hex.EncodeToString(got) != want {
		t.Errorf("%x", got)
	}
	if got := AppendFill(nil, &fill); hex.EncodeToString(got) != "02"+hex.EncodeToString(fill[:]) {
		t.Errorf("%x", got)
	}
	leaf := Leaf{First: 257, Count: 256, Root: Hash{1, 2}}
	want = "0000000000000101" + "0000000000000100" + "0102" + strings.Repeat("00", 30)
	if got := leaf.Append(nil); hex.EncodeToString(got) != want {
		t.Errorf("%x", got)
	}
	key := Key{9}
	both := sha256.Sum256(append(append([]byte{2}, key[:]...), 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3))
	if even, odd := key.Salt(258, 6), key.Salt(258, 7); !bytes.Equal(append(even[:], odd[:]...),
		both[:]) {
		t.Errorf("%x %x", even, odd)
	}
	salt := [SaltBytes]byte{7}
	if got := RecordHash(salt, []byte("r")); got != sha256.Sum256(append(append([]byte{0},
		salt[:]...), 'r')) {
		t.Errorf("%x", got)
	}
}

// TestTreesAreRFC6962 compares root and paths with those of package tlog, for every size and index.
func TestTreesAreRFC6962(t *testing.T) {
	hashes, stored := []Hash{}, []tlog.Hash{}
	read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var list []tlog.Hash
		for _, i := range indexes {
			list = append(list, stored[i])
		}
		return list, nil
	})
	for n := int64(0); n < 70; n++ {
		want := must.Get(tlog.TreeHash(n, read))(t)
		if got := Root(append([]Hash(nil), hashes...)); got != Hash(want) {
			t.Fatalf("size %d: %x, want %x", n, got, want)
		}
		for i := range n {
			path := Path(append([]Hash(nil), hashes...), int(i))
			if root, ok := climb(hashes[i], uint64(i), path); !ok || root != Hash(want) {
				t.Fatalf("size %d index %d: %v %x", n, i, ok, root)
			}
			other, err := tlog.ProveRecord(n, i, read)
			if err != nil || len(other) != len(path) {
				t.Fatalf("size %d index %d: a path of %d, want %d, %v", n, i, len(path), len(other), err)
			}
			for k := range other {
				if Hash(other[k]) != path[k] {
					t.Fatalf("size %d index %d: hash %d", n, i, k)
				}
			}
			if len(path) > 0 {
				path[0][3] ^= 1
				if root, _ := climb(hashes[i], uint64(i), path); root == Hash(want) {
					t.Fatalf("size %d index %d: a changed path leads to the root", n, i)
				}
			}
		}
		data := fmt.Appendf(nil, "leaf %d", n)
		more := must.Get(tlog.StoredHashes(n, data, read))(t)
		stored, hashes = append(stored, more...), append(hashes, LeafHash(data))
	}
}

func TestBadTextsOfNotes(t *testing.T) {
	c := Checkpoint{Origin: "o", Size: 3, Head: 600, Snapshot: 512}
	good := c.Text()
	if got, err := ParseText(good + "a line of another program\n"); err != nil || got != c {
		t.Fatalf("%+v %v", got, err)
	}
	for name, change := range map[string][2]string{
		"no origin": {"o\n", "\n"}, "size with a zero": {"\n3\n", "\n03\n"},
		"negative size": {"\n3\n", "\n-3\n"}, "huge size": {"\n3\n", "\n99999999999999999999\n"},
		"root": {"AAAA", "AA"}, "no head": {"head 600", "tail 600"},
		"head before the leaves": {"head 600", "head 511"}, "head behind them": {"head 600", "head 768"},
		"hash in capitals": {strings.Repeat("0", 64), "A" + strings.Repeat("0", 63)},
		"short hash":       {strings.Repeat("0", 64), strings.Repeat("0", 62)},
		"no line end":      {"\nsnapshot", " snapshot"},
	} {
		if got, err := ParseText(strings.Replace(good, change[0], change[1], 1)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	empty := Checkpoint{Origin: "o", Root: Root(nil), HeadRoot: Root(nil)}
	if _, err := ParseText(empty.Text()); err != nil {
		t.Error(err)
	}
	empty.Root[0]++
	if _, err := ParseText(empty.Text()); err == nil {
		t.Error("a tree without a leaf has another root than that of nothing")
	}
}

// TestAnOrderHasOneID: a record has the lower 32 bits of an order's number, and there is one number
// with them as long as the sequence is not beyond them.
func TestAnOrderHasOneID(t *testing.T) {
	for _, tt := range []struct {
		inputSeq uint64
		id       string
		is       bool
		own      string
	}{
		{12, "ord-3", true, "ord-3"}, {12, "12", true, "ord-3"}, {12, "ord-4", false, "ord-3"},
		{12, "ord-4294967299", false, "ord-3"}, {12, "ord-281474976710659", false, "ord-3"},
		{5_000_000_000, "ord-3", true, "5000000000"},
		{5_000_000_000, "ord-4294967299", true, "5000000000"},
		{5_000_000_000, "ord-281474976710659", false, "5000000000"},
	} {
		c := matcher.NewCommand(matcher.OrderNew)
		c.InputSeq = tt.inputSeq
		r := record(AppendCommand(nil, c.Bytes(), Outcome{OrderRef: 3}, nil))
		if r.names(tt.id) != tt.is || r.id() != tt.own {
			t.Errorf("sequence %d: %s is its id: %v, its own is %s", tt.inputSeq, tt.id, !tt.is, r.id())
		}
	}
}

// TestAKeyThatIsGivenTwiceCountsOnce: as when it is in a file and on the command line.
func TestAKeyThatIsGivenTwiceCountsOnce(t *testing.T) {
	skey, vkey, err := note.GenerateKey(rand.Reader, "log")
	must.OK(t, err)
	signer := must.Get(note.NewSigner(skey))(t)
	c := Checkpoint{Origin: "log", Size: 1, Head: 1}
	text := must.Get(note.Sign(&note.Note{Text: c.Text()}, signer))(t)
	for _, given := range [][]string{{vkey}, {vkey, " " + vkey + "\n"}} {
		keys := must.Get(ParseKeys(given, nil))(t)
		if _, _, err := keys.Open(text); err != nil {
			t.Errorf("%d times: %v", len(given), err)
		}
	}
}

// FuzzProofs reads texts that are nearly proofs.
func FuzzProofs(f *testing.F) {
	f.Add([]byte(`{"version":1,"recordPath":["AA=="],"checkpoint":"a\nb"}`))
	f.Add([]byte(`[{}]`))
	keys := must.Get(ParseKeys([]string{
		"posttrade/8d786f44134c2596+32e891c3+AQiCKV4qKfjzBKGb9WVQxtqRTJZPrie4vg6GKEE23mhO"}, nil))(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Proofs(text)
		if err != nil {
			return
		}
		for _, p := range list {
			if proven, err := keys.Check(p); err == nil {
				t.Errorf("%s proves %v", text, proven)
			}
		}
	})
}

// TestAHeadSaysWhatATreeCanBe: a size that no sequences fill, and an open leaf without commands
// that has a root of some, are no heads, whatever signs them.
func TestAHeadSaysWhatATreeCanBe(t *testing.T) {
	good := Checkpoint{Origin: "x", Size: 3, Head: 2 * LeafCommands, HeadRoot: Root(nil)}
	most := Checkpoint{Origin: "x", Size: 1 << 55, Head: (1<<55 - 1) * LeafCommands,
		HeadRoot: Root(nil)}
	for _, c := range []Checkpoint{good, most} {
		if got, err := ParseText(c.Text()); err != nil || got != c {
			t.Errorf("%+v, %v", got, err)
		}
	}
	huge, leaf := most, good
	huge.Size, huge.Head = 1<<56+1, 0 // 256 times its leaves are 2^64
	leaf.HeadRoot = Hash{1}
	for _, c := range []Checkpoint{huge, leaf} {
		if _, err := ParseText(c.Text()); err == nil {
			t.Errorf("%s is read", c.Text())
		}
	}
}

// TestTwoFilesOfASnapshotAreNamed: builds may write a state as different bytes, so two heads that
// name two files are no contradiction, and the result says so.
func TestTwoFilesOfASnapshotAreNamed(t *testing.T) {
	skey, vkey, err := note.GenerateKey(rand.Reader, "log")
	must.OK(t, err)
	signer := must.Get(note.NewSigner(skey))(t)
	keys := must.Get(ParseKeys([]string{vkey}, nil))(t)
	extends := func(old, new Checkpoint) string {
		t.Helper()
		var notes [2][]byte
		for i, c := range []Checkpoint{old, new} {
			notes[i] = must.Get(note.Sign(&note.Note{Text: c.Text()}, signer))(t)
		}
		return must.Get(keys.Extends(notes[0], notes[1], nil))(t).String()
	}
	old := Checkpoint{Origin: "log", Size: 1, Head: 20, Snapshot: 10, SnapshotSHA256: Hash{1}}
	other, later := old, old
	other.SnapshotSHA256, later.Snapshot, later.SnapshotSHA256 = Hash{2}, 20, Hash{2}
	said := "of the snapshot at sequence 10 they name two files, SHA-256 01"
	if text := extends(old, other); !strings.Contains(text, said) {
		t.Error(text)
	}
	for _, c := range []Checkpoint{old, later} {
		if text := extends(old, c); strings.Contains(text, "two files") {
			t.Error(text)
		}
	}
}
