package blotter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestRestoredViewsContinueAsIfNeverStopped(t *testing.T) {
	g := smallGenesis()
	s, straight := newSource(t, g, 61), newTestViews(t, g)
	restored := newTestViews(t, g)
	for round := range 60 {
		for range 1 + s.rng.IntN(120) {
			events := s.step()
			observe(straight, events)
			observe(restored, events)
		}
		want, got := imageOf(t, straight), imageOf(t, restored)
		if !bytes.Equal(got, want) {
			t.Fatalf("round %d: images of the same events differ, %d and %d bytes", round, len(got),
				len(want))
		}
		again, err := ReadImage(g, iotest.OneByteReader(bytes.NewReader(want)))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		t.Cleanup(func() { again.Close() })
		restored = again
		if got := imageOf(t, restored); !bytes.Equal(got, want) {
			t.Fatalf("round %d: the restored image differs, %d and %d bytes", round, len(got), len(want))
		}
		if err := restored.check(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := restored.Check(s.engine); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		compareReads(t, straight, restored)
	}
}

// compareReads asserts that two views answer the same.
func compareReads(t *testing.T, a, b *Views) {
	t.Helper()
	rowsA, _ := a.Orders(OrderFilter{}, 0, 1000, nil)
	rowsB, _ := b.Orders(OrderFilter{}, 0, 1000, nil)
	contractsA, _ := a.Contracts(ContractFilter{}, 0, 1000, nil)
	contractsB, _ := b.Contracts(ContractFilter{}, 0, 1000, nil)
	same := slices.EqualFunc(rowsA, rowsB, func(a, b OrderRow) bool {
		a.next, a.level, b.next, b.level = 0, 0, 0, 0 // places in memory
		return a == b
	})
	if !same || !slices.Equal(contractsA, contractsB) || !slices.Equal(a.Accounts(), b.Accounts()) ||
		!slices.Equal(a.Securities(), b.Securities()) ||
		!slices.Equal(a.AllPositions(nil), b.AllPositions(nil)) || a.Policy() != b.Policy() ||
		a.Applied() != b.Applied() {
		t.Fatal("restored views answer differently")
	}
}

func TestImageOfFreshViewsRestores(t *testing.T) {
	g := smallGenesis()
	image := imageOf(t, newTestViews(t, g))
	v := must.Get(ReadImage(g, bytes.NewReader(image)))(t)
	defer v.Close()
	if !bytes.Equal(imageOf(t, v), image) || v.Applied() != 0 {
		t.Error("fresh views do not restore")
	}
}

// busyImage is an image with records in every section.
func busyImage(t testing.TB) (*matcher.Genesis, []byte) {
	g := smallGenesis()
	s, v := newSource(t, g, 63), newTestViews(t, g)
	for range 900 {
		observe(v, s.step())
	}
	return g, imageOf(t, v)
}

func refused(t *testing.T, what string, g *matcher.Genesis, image []byte) error {
	t.Helper()
	v, err := ReadImage(g, bytes.NewReader(image))
	if err == nil {
		v.Close()
	}
	if !errors.Is(err, ErrImage) {
		t.Errorf("%s: %v, want %v", what, err, ErrImage)
	}
	return err
}

func TestDamagedImagesAreRefused(t *testing.T) {
	g, image := busyImage(t)
	step := 1
	if testing.Short() {
		step = 29
	}
	for at := 0; at < len(image); at += step {
		damaged := slices.Clone(image)
		damaged[at] ^= 1 << (at % 8)
		refused(t, "a flipped bit", g, damaged)
		refused(t, "a lost end", g, image[:at])
	}
	refused(t, "a byte too many", g, append(slices.Clone(image), 0))
	other := smallGenesis()
	other.Limits.CreditLimit++
	refused(t, "another genesis record", other, image)
	other = smallGenesis()
	other.Limits.MaxAccounts = 0
	if _, err := ReadImage(other, bytes.NewReader(image)); !errors.Is(err, ErrGenesis) {
		t.Errorf("unusable genesis record: %v", err)
	}
}

// sectionsOf finds where the sections of an image start.
func sectionsOf(image []byte) (starts []int) {
	at := imageHeader
	for range 11 {
		starts = append(starts, at)
		width, count := binary.LittleEndian.Uint32(image[at+4:]), binary.LittleEndian.Uint64(image[at+8:])
		at += 16 + int(width)*int(count) + 4
	}
	return starts
}

// reseal recomputes the checksums of an image, as far as its sections can be parsed.
func reseal(image []byte) {
	for at := imageHeader; at+20 <= len(image); {
		width, count := uint64(binary.LittleEndian.Uint32(image[at+4:])),
			binary.LittleEndian.Uint64(image[at+8:])
		if width > maxRecord || count > uint64(len(image)) || at+16+int(width*count)+4 > len(image) {
			return
		}
		end := at + 16 + int(width*count)
		binary.LittleEndian.PutUint32(image[end:], crc32.Checksum(image[at:end], castagnoli))
		at = end + 4
	}
}

// TestHostileImagesAreRefused changes one field at a time and recomputes the checksums.
func TestHostileImagesAreRefused(t *testing.T) {
	g, image := busyImage(t)
	starts := sectionsOf(image)
	u32 := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	u64 := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	const none = ^uint64(0)
	record := func(section, n, offset int) int {
		width := int(binary.LittleEndian.Uint32(image[starts[section-1]+4:]))
		return starts[section-1] + 16 + n*width + offset
	}
	copyOf := func(section, n, offset, length int) []byte {
		at := record(section, n, offset)
		return image[at : at+length]
	}
	// A swap, a swaption, and a contract with a client id.
	plain, option, named := -1, -1, -1
	for n := range int(binary.LittleEndian.Uint64(image[starts[9]+8:])) {
		if image[record(10, n, 49)] == 0 {
			plain = n
		} else {
			option = n
		}
		if image[record(10, n, 51)] != 0 {
			named = n
		}
	}
	if plain < 0 || option < 0 || named < 0 {
		t.Fatalf("number %d is a swap, %d a swaption, %d has a client id", plain, option, named)
	}
	for _, tt := range []struct {
		what string
		at   int
		with []byte
	}{
		{"another version", 8, u32(1)}, {"the version before", 8, u32(2)},
		{"a reserved field", 12, u32(1)},
		{"a section out of order", starts[2], u32(4)},
		{"another width", starts[2] + 4, u32(8)},
		{"more accounts than there can be", starts[2] + 8, u64(7)},
		{"fewer accounts than the genesis record", starts[2] + 8, u64(2)},
		{"more orders than memory", starts[5] + 8, u64(1 << 60)},
		{"more keys than there can be", starts[7] + 8, u64(none)},
		{"two heads", starts[0] + 8, u64(2)},
		{"an end with records", starts[10] + 8, u64(1)},
		{"more contracts than there can be", starts[9] + 8, u64(41)},
		{"one source", starts[8] + 8, u64(1)},
		{"a watermark without a mark", record(9, 0, 0), u32(0)},
		{"a negative watermark", record(9, 0, 8), u64(none)},
		{"a mark with padding", record(9, 1, 4), u32(1)},
		{"applied beyond the range", record(1, 0, 0), u64(none)},
		{"applied before the orders", record(1, 0, 0), u64(1)},
		{"a last trade beyond the range", record(1, 0, 8), u64(none)},
		{"a last reference beyond the range", record(1, 0, 16), u64(1 << 48)},
		{"a last reference below the orders", record(1, 0, 16), u64(1)},
		{"a kill switch of 2", record(2, 0, 8), u64(2)},
		{"no position allowed", record(2, 0, 16), u64(0)},
		{"no concentration allowed", record(2, 0, 24), u64(none)},
		{"an account twice", record(3, 1, 0), u32(7)},
		{"an account's flags of 4", record(3, 0, 4), u32(4)},
		{"unknown flags of a security", record(4, 0, 0), u64(64)},
		{"a negative price", record(4, 0, 16), u64(none)},
		{"a negative last fill", record(4, 0, 32), u64(none)},
		{"an empty ticker", record(4, 0, 40), make([]byte, 32)},
		{"a ticker with a hole", record(4, 0, 40), []byte("A\x00B")},
		{"a position of no account", record(5, 0, 0), u32(555)},
		{"a position in nothing", record(5, 0, 4), u32(9)},
		{"a position in security 0", record(5, 0, 4), u32(0)},
		{"a negative average", record(5, 0, 16), u64(none)},
		{"a flat position with an average", record(5, 0, 8), append(u64(0), u64(5)...)},
		{"positions out of order", record(5, 1, 0), copyOf(5, 0, 0, 8)},
		{"order 0", record(6, 0, 0), u32(0)},
		{"open orders out of order", record(6, 1, 0), u32(1)},
		{"an open order twice", record(6, 1, 0), copyOf(6, 0, 0, 4)},
		{"an open order of no account", record(6, 0, 4), u32(555)},
		{"an open order in nothing", record(6, 0, 8), u32(9)},
		{"more left than ordered", record(6, 0, 12), u32(1)},
		{"nothing left", record(6, 0, 16), u32(0)},
		{"less than nothing left", record(6, 0, 16), u32(1 << 31)},
		{"an order before the first command", record(6, 0, 24), u64(0)},
		{"an open order at no price", record(6, 0, 48), u64(0)},
		{"a third side", record(6, 0, 64), []byte{2}},
		{"an open market order", record(6, 0, 65), []byte{1}},
		{"a third type", record(6, 0, 65), []byte{2}},
		{"an open IOC order", record(6, 0, 66), []byte{1}},
		{"an open FOK order", record(6, 0, 66), []byte{2}},
		{"a fifth time in force", record(6, 0, 66), []byte{4}},
		{"an open order that is filled", record(6, 0, 67), []byte{2}},
		{"a status that is none", record(6, 0, 67), []byte{5}},
		{"a reason that is none", record(6, 0, 68), []byte{22}},
		{"a client id that is too long", record(6, 0, 69), []byte{65}},
		{"order padding", record(6, 0, 71), []byte{1}},
		{"client id padding", record(6, 0, 69), []byte{0}},
		{"a retained order that is open", record(7, 0, 67), []byte{0}},
		{"a retained order twice", record(7, 1, 0), copyOf(7, 0, 0, 4)},
		{"a retained order that is open as well", record(7, 0, 0), copyOf(6, 0, 0, 4)},
		{"key 0", record(8, 0, 0), u64(0)},
		{"a key twice", record(8, 1, 0), copyOf(8, 0, 0, 40)},
		{"keys out of order", record(8, 1, 8), u64(1)},
		{"a key from the future", record(8, 0, 8), u64(none)},
		{"a fourth kind", record(8, 0, 32), []byte{3}},
		{"a key's reason that is none", record(8, 0, 33), []byte{22}},
		{"key padding", record(8, 0, 35), []byte{1}},
		{"a key that is by account or not", record(8, 0, 34), []byte{2}},
		{"a key of an account and not by account", record(8, 0, 34), []byte{0}},
		{"contract 0", record(10, 0, 0), u64(0)},
		{"a contract twice", record(10, 1, 0), copyOf(10, 0, 0, 8)},
		{"contracts out of order", record(10, 1, 0), u64(1)},
		{"a contract from the future", record(10, 0, 0), u64(none)},
		{"a contract at no rate", record(10, 0, 16), u64(0)},
		{"a contract of no account", record(10, 0, 24), u32(555)},
		{"a contract over nothing", record(10, 0, 28), u32(0)},
		{"a contract over less than nothing", record(10, 0, 28), u32(1 << 31)},
		{"an unknown convention", record(10, 0, 32), u32(5)},
		{"an effective day out of range", record(10, 0, 36), u32(1 << 16)},
		{"a maturity before it", record(10, 0, 40), u32(0)},
		{"a maturity out of range", record(10, 0, 40), u32(1 << 17)},
		{"an expiry out of range", record(10, option, 44), u32(1 << 16)},
		{"an option on a swap", record(10, plain, 44), u32(1)},
		{"a style of a swap", record(10, plain, 50), []byte{1}},
		{"an expiry behind its swap", record(10, option, 44), u32(65_535)},
		{"a contract's third side", record(10, 0, 48), []byte{2}},
		{"a third product", record(10, option, 49), []byte{2}},
		{"an unknown style", record(10, option, 50), []byte{3}},
		{"a contract's client id that is too long", record(10, 0, 51), []byte{65}},
		{"a contract's client id padding", record(10, named, 51), []byte{0}},
	} {
		hostile := slices.Clone(image)
		copy(hostile[tt.at:], tt.with)
		if bytes.Equal(hostile, image) {
			t.Errorf("%s: changes nothing", tt.what)
		}
		reseal(hostile)
		if err := refused(t, tt.what, g, hostile); err != nil &&
			strings.Contains(err.Error(), "checksum") {
			t.Errorf("%s: refused for its checksum only: %v", tt.what, err)
		}
	}
	statuses := slices.Clone(image)
	for n := range binary.LittleEndian.Uint64(image[starts[6]+8:]) {
		statuses[record(7, int(n), 67)] = byte(matcher.StatusFilled)
	}
	reseal(statuses)
	refused(t, "filled orders with something left", g, statuses)
}

// brokenWriter fails after some bytes.
type brokenWriter int

var errBroken = errors.New("broken")

func (w *brokenWriter) Write(b []byte) (int, error) {
	if *w -= brokenWriter(len(b)); *w < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

func TestErrorsOfReadersAndWritersArePassedOn(t *testing.T) {
	g, image := busyImage(t)
	for _, after := range []int{0, 20, len(image) / 2, len(image)} {
		in := io.MultiReader(bytes.NewReader(image[:after]), iotest.ErrReader(errBroken))
		if _, err := ReadImage(g, in); !errors.Is(err, errBroken) {
			t.Errorf("reader broken after %d bytes: %v", after, err)
		}
	}
	v := must.Get(ReadImage(g, bytes.NewReader(image)))(t)
	defer v.Close()
	w := brokenWriter(len(image) - 1)
	if _, err := v.WriteTo(&w); !errors.Is(err, errBroken) {
		t.Errorf("broken writer: %v", err)
	}
	big := newImageWriter(new(brokenWriter))
	for range 3 { // more than the buffer holds: the first error sticks
		big.write(make([]byte, 1<<16))
	}
	if !errors.Is(big.err, errBroken) {
		t.Errorf("broken writer, many records: %v", big.err)
	}
	half := matcher.Event{Kind: matcher.EventApplied, Flags: matcher.EventFirst,
		InputSeq: v.Applied() + 1}
	*half.Cmd() = matcher.NewCommand(matcher.SnapshotMark)
	v.Observe(&half, nil)
	if _, err := v.WriteTo(io.Discard); !errors.Is(err, ErrMidCommand) {
		t.Errorf("in the middle of a command: %v", err)
	}
}

// FuzzReadImage changes images and recomputes their checksums. Views read from an image that is not
// refused must hold every invariant, and write the same image.
func FuzzReadImage(f *testing.F) {
	g, image := busyImage(f)
	f.Add(image, uint16(0), []byte{})
	starts := sectionsOf(image)
	for _, at := range starts {
		f.Add(image, uint16(at+20), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	}
	f.Add(imageOf(f, newTestViews(f, g)), uint16(9), []byte{0})
	f.Fuzz(func(t *testing.T, image []byte, at uint16, change []byte) {
		image = slices.Clone(image)
		copy(image[min(int(at), len(image)):], change)
		reseal(image)
		v, err := ReadImage(g, bytes.NewReader(image))
		if err != nil {
			if !errors.Is(err, ErrImage) {
				t.Fatal(err)
			}
			return
		}
		defer v.Close()
		must.OK(t, v.check())
		if !bytes.Equal(imageOf(t, v), image) {
			t.Fatal("it writes another image")
		}
	})
}
