package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestHistoryComesBack(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		for _, codec := range []Codec{CodecNone, CodecS2, CodecZstd} {
			t.Run(fmt.Sprintf("%s codec %d", mode, codec), func(t *testing.T) {
				fs := vfs.NewMem()
				o := strict(t, fs).WithCodec(codec)
				o.Durability = mode
				j := openNew(t, "j", o)
				f := &flow{seed: 7, idsEvery: 3}
				appendAll(t, j, f, 1, 2, 7, 8, 9, 64, 100, 1000, 1, 1)
				expectHistory(t, j, f, f.inputSeq)
				must.OK(t, j.Close())
				for range 2 { // the second time after an opening that added nothing
					var err error
					j, err = Open("j", o)
					must.OK(t, err)
					g, ok := j.Genesis()
					if !ok || string(g) != string(testGenesis) {
						t.Fatalf("genesis %q %v", g, ok)
					}
					expectHistory(t, j, f, f.inputSeq)
					appendAll(t, j, f, 5, 1)
					expectHistory(t, j, f, f.inputSeq)
					must.OK(t, j.Close())
				}
			})
		}
	}
}

func TestAppendRefusesWhatDoesNotContinue(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 1, idsEvery: 1}
	appendAll(t, j, f, 10)
	tests := []struct {
		name   string
		change func(b *Block)
	}{
		{"nothing", func(b *Block) { b.Reset() }},
		{"gap", func(b *Block) { b.records[8]++ }},
		{"repeat", func(b *Block) { b.records[8]-- }},
		{"hole inside", func(b *Block) { b.records[64+8]++ }},
		{"trade gap", func(b *Block) { b.Fill(&matcher.Fill{TradeSeq: 1 << 20}) }},
		{"client id of another commit", func(b *Block) { b.ClientID(1000, []byte("x")) }},
		{"too many", func(b *Block) {
			(&flow{inputSeq: 10, tradeSeq: f.tradeSeq}).block(b, MaxBlockCommands+1)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next := *f
			b := next.block(&Block{}, 20)
			tt.change(b)
			_, err := j.Append(b)
			must.Be(t, err, ErrGap)
		})
	}
	appendAll(t, j, f, 20)
	expectHistory(t, j, f, 30)
	must.OK(t, j.Close())
	_, err := j.Append(f.block(&Block{}, 1))
	must.Be(t, err, ErrClosed)
	must.Be(t, j.Close(), ErrClosed)
}

func TestGenesisIsWrittenOnce(t *testing.T) {
	fs := vfs.NewMem()
	j, err := Open("j", strict(t, fs))
	must.OK(t, err)
	if _, ok := j.Genesis(); ok {
		t.Fatal("a new journal has a genesis")
	}
	_, err = j.Append((&flow{}).block(&Block{}, 1))
	must.Be(t, err, ErrNoGenesis)
	must.OK(t, j.Close())
	j, err = Open("j", strict(t, fs)) // opened before, never created
	must.OK(t, err)
	must.OK(t, j.Create(testGenesis))
	must.Be(t, j.Create(testGenesis), ErrExists)
	must.OK(t, j.Close())
	must.Be(t, j.Create(testGenesis), ErrClosed)
	j, err = Open("j", strict(t, fs))
	must.OK(t, err)
	must.Be(t, j.Create(testGenesis), ErrExists)
	must.OK(t, j.Close())
}

func TestSecondOpenerIsRefused(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := openNew(t, dir, strict(t, fs))
			_, err := Open(dir, strict(t, fs))
			must.Be(t, err, ErrLocked)
			must.OK(t, j.Close())
		})
	}
}

func TestUnknownDurabilityIsRefused(t *testing.T) {
	_, err := Open("j", Options{Durability: "maybe", FS: vfs.NewMem()})
	must.Be(t, err, ErrDurability)
}

func TestUnknownCodecIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	_, err := Open("j", Options{FS: fs}.WithCodec(CodecZstd+1))
	if err == nil || !strings.Contains(err.Error(), "codec=3") {
		t.Errorf("got %v", err)
	}
	if names, err := fs.List("j"); err == nil {
		t.Errorf("files were made: %v", names)
	}
}

func TestReplayStartsAndEndsAnywhere(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 3, idsEvery: 2}
	appendAll(t, j, f, 10, 1, 5, 300, 7)
	head := f.inputSeq
	for from := uint64(0); from <= head+2; from += 1 + from/40 {
		for _, to := range []uint64{0, from, from + 1, from + 9, head, head + 5} {
			next := max(from, 1)
			err := j.ReplayTo(context.Background(), from, to,
				func(cmds []matcher.Command, ids ClientIDs) error {
					for i := range cmds {
						if cmds[i] != f.command(next) {
							return fmt.Errorf("command %d: got %+v", next, cmds[i])
						}
						if id := ids.Of(next); string(id) != string(f.clientID(next)) {
							return fmt.Errorf("client id of %d: %q", next, id)
						}
						next++
					}
					if at, _, ok := ids.Next(); ok {
						return fmt.Errorf("client id of %d is left over", at)
					}
					return nil
				})
			must.OK(t, err)
			end := to
			if to == 0 || to > head {
				end = head
			}
			if want := max(end+1, max(from, 1)); next != want {
				t.Fatalf("replay %d..%d ends at %d, want %d", from, to, next-1, want-1)
			}
		}
	}
	for _, n := range []int{0, 1, 2, 5, 1000} {
		fills := must.Get(j.LastFills(n))(t)
		if want := min(n, int(f.tradeSeq)); len(fills) != want {
			t.Fatalf("last %d fills: got %d, want %d", n, len(fills), want)
		}
		for i := range fills {
			if want := f.tradeSeq - uint64(len(fills)) + 1 + uint64(i); fills[i].TradeSeq != want {
				t.Fatalf("last %d fills: [%d] is %d, want %d", n, i, fills[i].TradeSeq, want)
			}
		}
	}
	must.OK(t, j.Close())
}

// FillsOf has the fills of each command, whatever else its commit holds.
func TestFillsOfACommand(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 5}
	appendAll(t, j, f, 10, 1, 7, 30)
	want := map[uint64][]matcher.Fill{}
	must.OK(t, j.Fills(1, func(fills []matcher.Fill) error {
		for _, fill := range fills {
			want[fill.InputSeq] = append(want[fill.InputSeq], fill)
		}
		return nil
	}))
	if len(want) < 2 {
		t.Fatalf("only %d commands have fills", len(want))
	}
	for inputSeq := uint64(1); inputSeq <= 48; inputSeq++ {
		got, err := j.FillsOf(t.Context(), inputSeq, make([]matcher.Fill, 1))
		if err != nil || !slices.Equal(got[1:], want[inputSeq]) {
			t.Errorf("command %d: %v, %v, want %v", inputSeq, got, err, want[inputSeq])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.FillsOf(ctx, 49, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a command that is not there yet: %v", err)
	}
	must.OK(t, j.Close())
}

func TestReplayStopsWhenTold(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 3}
	appendAll(t, j, f, 10, 10, 10, 10, 10, 10, 10, 10, 10)
	ctx, cancel := context.WithCancel(context.Background())
	must.Be(t, j.Replay(ctx, 1, func([]matcher.Command, ClientIDs) error { cancel(); return nil }),
		context.Canceled)
	must.Be(t, j.Replay(ctx, 1, func([]matcher.Command, ClientIDs) error { return nil }),
		context.Canceled)
	own := errors.New("enough")
	must.Be(t, j.Replay(context.Background(), 1,
		func([]matcher.Command, ClientIDs) error { return own }), own)
	must.Be(t, j.Fills(1, func([]matcher.Fill) error { return own }), own)
	must.OK(t, j.Close())
}
