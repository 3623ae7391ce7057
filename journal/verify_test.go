package journal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func verifying(fs vfs.FS, f flow) VerifyOptions {
	return VerifyOptions{FS: fs, boot: "boot-1",
		Engine: func([]byte) (Engine, error) { return &toy{flow: f}, nil }}
}

// chained gives a sealed block the chain that it has behind prev, and its checksum.
func chained(block []byte, prev [chainBytes]byte) {
	var chain [chainBytes]byte
	linkStored(sha256.New(), &chain, &prev, block)
	copy(block[chainOffset:], chain[:])
	binary.LittleEndian.PutUint32(block[crcOffset:], checksum(block))
}

func TestVerifyReadsEverything(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	f := &flow{seed: 1, idsEvery: 2}
	appendAll(t, j, f, 1, 100, 7, 1)
	_, err := j.WriteSnapshot(100, text("x"), nil)
	must.OK(t, err)
	open, err := Verify(context.Background(), "j", verifying(fs, *f))
	if must.OK(t, err); open.InputSeq != 109 || len(open.Snapshots) != 1 {
		t.Errorf("report of a journal that is open: %+v", open)
	}
	seed := j.Seed()
	must.OK(t, j.Close())
	r, err := Verify(context.Background(), "j", verifying(fs, *f))
	must.OK(t, err)
	if r.InputSeq != 109 || r.TradeSeq != f.tradeSeq || r.Fills != f.tradeSeq || r.Blocks != 4 ||
		r.ClientIDs != 54 ||
		r.Anchored != 109 || r.RawBytes != 109*64 || r.Packed == 0 || !r.Replayed || r.Seed != seed ||
		len(r.Snapshots) != 1 || r.FirstTime != flowStart || r.LastTime != flowStart {
		t.Errorf("report %+v", r)
	}
	r, err = Stats(context.Background(), "j", verifying(fs, *f))
	must.OK(t, err)
	if r.Replayed || r.InputSeq != 109 {
		t.Errorf("stats %+v", r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Verify(ctx, "j", verifying(fs, *f))
	must.Be(t, err, context.Canceled)
}

func TestVerifyWithoutAJournal(t *testing.T) {
	fs := vfs.NewMem()
	_, err := Verify(context.Background(), "none", VerifyOptions{FS: fs})
	if !notExist(err) {
		t.Errorf("no directory: %v", err)
	}
	must.OK(t, fs.MkdirAll("empty", 0o755))
	_, err = Verify(context.Background(), "empty", VerifyOptions{FS: fs})
	must.Be(t, err, ErrNoGenesis)
	j, err := Open("new", strict(t, fs))
	must.OK(t, err)
	must.OK(t, j.Close())
	_, err = Verify(context.Background(), "new", VerifyOptions{FS: fs})
	must.Be(t, err, ErrAnchorMissing)
}

// TestNothingIsMadeWithoutAJournal calls everything that needs an existing journal: it fails, and
// the tree is as before.
func TestNothingIsMadeWithoutAJournal(t *testing.T) {
	ctx := context.Background()
	calls := []struct {
		name string
		call func(o VerifyOptions) error
	}{
		{"Verify", func(o VerifyOptions) error { _, err := Verify(ctx, "d/j", o); return err }},
		{"Stats", func(o VerifyOptions) error { _, err := Stats(ctx, "d/j", o); return err }},
		{"Export", func(o VerifyOptions) error { return Export(ctx, "d/j", io.Discard, 1, 0, o) }},
		{"AcceptHistory", func(o VerifyOptions) error {
			_, err := AcceptHistory(ctx, "d/j", o)
			return err
		}}, {"OpenExisting", func(o VerifyOptions) error {
			_, err := OpenExisting("d/j", Options{FS: o.FS})
			return err
		}},
	}
	for _, dir := range []string{"", "d", "d/j", "d/j/store"} {
		for _, c := range calls {
			fs := vfs.NewMem()
			must.OK(t, fs.MkdirAll(dir, 0o755))
			before := fs.String()
			must.Be(t, c.call(VerifyOptions{FS: fs}), ErrNoGenesis)
			if after := fs.String(); after != before {
				t.Errorf("%s with dir=%q: there is now\n%s", c.name, dir, after)
			}
		}
	}
}

func TestOpenExistingOpensWhatIsThere(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	appendAll(t, j, &flow{seed: 1}, 10, 10)
	_, err := OpenExisting("j", strict(t, fs))
	must.Be(t, err, ErrLocked)
	must.OK(t, j.Close())
	j, err = OpenExisting("j", strict(t, fs))
	must.OK(t, err)
	if head, _ := j.Head(); head != 20 {
		t.Errorf("head %d, want 20", head)
	}
	must.OK(t, j.Close())
	_, err = OpenExisting("j", Options{FS: fs, Durability: "hope"})
	must.Be(t, err, ErrDurability)
	must.OK(t, fs.Remove("j/anchor"))
	_, err = OpenExisting("j", strict(t, fs))
	must.Be(t, err, ErrAnchorMissing)
}

// TestVerifyNamesTheFirstBadBlock changes one value without the journal's knowledge, in ways that
// the store's own checksums cannot detect.
func TestVerifyNamesTheFirstBadBlock(t *testing.T) {
	f := flow{seed: 1, idsEvery: 2}
	reseal := func(v []byte, kind byte, change func(e *envelope)) []byte {
		e, payload, err := parseEnvelope(v, kind)
		must.OK(t, err)
		change(&e)
		out := append(make([]byte, envelopeBytes), payload...)
		e.put(out)
		binary.LittleEndian.PutUint32(out[crcOffset:], checksum(out))
		return out
	}
	tests := []struct {
		name   string
		key    []byte
		change func(v []byte) []byte // nil result: the key is deleted
		about  string
		want   error
	}{
		{"a command block lost", newKey(keyCommands, 11), func([]byte) []byte { return nil }, "c/21",
			ErrCorrupt},
		{"a fill block lost", newKey(keyFills, 1), func([]byte) []byte { return nil }, "f/1",
			pebble.ErrNotFound},
		{"an id block lost", newKey(keyIDs, 11), func([]byte) []byte { return nil }, "i/11",
			pebble.ErrNotFound},
		{"the genesis lost", []byte{keyGenesis}, func([]byte) []byte { return nil }, "key=g",
			ErrShortened}, {"a bit of a command block", newKey(keyCommands, 11),
			func(v []byte) []byte { v[100] ^= 1; return v }, "c/11", ErrCorrupt},
		{"a bit of an id block", newKey(keyIDs, 11), func(v []byte) []byte { v[100] ^= 1; return v },
			"i/11", ErrCorrupt},
		{"a bit of the genesis", []byte{keyGenesis}, func(v []byte) []byte { v[50] ^= 1; return v },
			"key=g", ErrCorrupt},
		{"another chain", newKey(keyCommands, 11), func(v []byte) []byte {
			return reseal(v, keyCommands, func(e *envelope) { e.chain[0] ^= 1 })
		}, "c/11", ErrCorrupt},
		{"another fill chain", newKey(keyFills, 1), func(v []byte) []byte {
			return reseal(v, keyFills, func(e *envelope) { e.chain[0] ^= 1 })
		}, "f/1", ErrCorrupt},
		{"fewer ids", newKey(keyCommands, 11), func(v []byte) []byte {
			return reseal(v, keyCommands, func(e *envelope) { e.ids-- })
		}, "c/11", ErrCorrupt},
		{"fewer ids, in the chain", newKey(keyCommands, 1), func(v []byte) []byte {
			v = reseal(v, keyCommands, func(e *envelope) { e.ids-- })
			chained(v, sha256.Sum256(testGenesis))
			return v
		}, "f/1", ErrCorrupt},
		{"another time", newKey(keyCommands, 11), func(v []byte) []byte {
			return reseal(v, keyCommands, func(e *envelope) { e.lastTime++ })
		}, "c/11", ErrCorrupt},
		{"another trade sequence", newKey(keyCommands, 11), func(v []byte) []byte {
			return reseal(v, keyCommands, func(e *envelope) { e.link++ })
		}, "c/11", ErrCorrupt},
		{"another trade sequence, in the chain", newKey(keyCommands, 1), func(v []byte) []byte {
			v = reseal(v, keyCommands, func(e *envelope) { e.link++ })
			chained(v, sha256.Sum256(testGenesis))
			return v
		}, "c/1", ErrCorrupt},
		{"a stray key", []byte("c"), func([]byte) []byte { return []byte("x") }, "c", ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			j := openNew(t, "j", strict(t, fs))
			own := f
			appendAll(t, j, &own, 10, 10, 10, 10)
			var v []byte
			old, closer, err := j.db.Get(tt.key)
			if err == nil {
				v = append(v, old...)
				must.OK(t, closer.Close())
			}
			if v = tt.change(v); v == nil {
				must.OK(t, j.db.Delete(tt.key, pebble.Sync))
			} else {
				must.OK(t, j.db.Set(tt.key, v, pebble.Sync))
			}
			must.OK(t, j.Close())
			_, err = Verify(context.Background(), "j", verifying(fs, f))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.about) {
				t.Errorf("verify: %v, want %v about %s", err, tt.want, tt.about)
			}
			// Everything is near enough to the end for Open to detect it too.
			if _, err = Open("j", Options{FS: fs, Fatal: func(error) {}}); !errors.Is(err, tt.want) {
				t.Errorf("open: %v, want %v", err, tt.want)
			}
		})
	}
}

func TestVerifyRecomputesTheFills(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	f := &flow{seed: 1}
	var b Block
	f.block(&b, 50)
	b.fills[64+24]++ // the price of the second fill
	c, err := j.Append(&b)
	must.OK(t, err)
	must.OK(t, c.Wait())
	must.OK(t, j.Close())
	_, err = Verify(context.Background(), "j", verifying(fs, *f))
	must.Be(t, err, ErrFills)
	if !strings.Contains(err.Error(), "f/1") || !strings.Contains(err.Error(), "tradeSeq=2") {
		t.Errorf("%v", err)
	}
	o := verifying(fs, *f)
	o.Engine = func([]byte) (Engine, error) { return &toy{applied: 7}, nil }
	_, err = Verify(context.Background(), "j", o)
	must.Be(t, err, errToy)
	o.Engine = func([]byte) (Engine, error) { return nil, errToy }
	_, err = Verify(context.Background(), "j", o)
	must.Be(t, err, errToy)
}

// TestExportBehindTheEnd: the next sequence has no lines yet, which a caller that goes on from its
// last line may ask for; one behind that is a mistake.
func TestExportBehindTheEnd(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	f := &flow{seed: 1}
	appendAll(t, j, f, 10)
	for name, export := range map[string]func(context.Context, io.Writer, uint64, uint64) error{
		"export": j.Export, "decoded": j.exportDecoded,
	} {
		var lines bytes.Buffer
		must.OK(t, export(t.Context(), &lines, f.inputSeq+1, 0))
		err := export(t.Context(), &lines, f.inputSeq+2, 0)
		if want := fmt.Sprintf("the journal ends at inputSeq=%d", f.inputSeq); err == nil ||
			!strings.Contains(err.Error(), want) || lines.Len() != 0 {
			t.Errorf("%s: %v, %q", name, err, &lines)
		}
	}
	must.OK(t, j.Close())
}

func TestExportHasEveryCommandOnce(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	f := &flow{seed: 1, idsEvery: 3}
	appendAll(t, j, f, 10, 1, 30)
	symbol, mark := matcher.NewSymbolRegister(`A"B`), matcher.NewCommand(matcher.SwapBook)
	mark.BlockLength, mark.TemplateID, mark.EventTimeMillis, mark.LimitPx = 24,
		matcher.TemplateRiskExtract, 20000, 7
	unknown := matcher.NewCommand(99)
	terms := matcher.ContractTerms{AccountID: 7, Side: matcher.Sell, Notional: 25, FixedRate: -500,
		Effective: 20_458, Maturity: 65_535}
	swap := terms.Command()
	terms.Swaption, terms.Expiry, terms.Style, terms.Convention, terms.Side = true, 0,
		matcher.Bermudan, 4, matcher.Buy
	swaption := terms.Command()
	terms.Style, terms.Convention = 9, 200
	odd := terms.Command()
	var b Block
	for i, c := range []*matcher.Command{&symbol, &mark, &unknown, &swap, &swaption, &odd} {
		c.InputSeq = f.inputSeq + 1 + uint64(i)
		b.Command(c)
	}
	c := must.Get(j.Append(&b))(t)
	must.OK(t, c.Wait())
	var live, cold bytes.Buffer
	must.OK(t, j.Export(context.Background(), &live, 1, 0))
	must.OK(t, j.Close())
	must.OK(t, Export(context.Background(), "j", &cold, 0, 1000, verifying(fs, *f)))
	if live.String() != cold.String() {
		t.Error("live and cold export differ")
	}
	next := uint64(0)
	lines := bufio.NewScanner(&cold)
	for lines.Scan() {
		var row map[string]any
		d := json.NewDecoder(strings.NewReader(lines.Text()))
		d.UseNumber()
		must.OK(t, d.Decode(&row))
		next++
		want := f.command(next)
		if row["sequence"] != json.Number(jsonInt(int64(next))) {
			t.Fatalf("line %d: %s", next, lines.Text())
		}
		id, _ := row["clientOrderId"].(string)
		switch {
		case next <= 41 && (row["priceTicks"] != json.Number(jsonInt(want.PriceTicks)) ||
			row["type"] != typeNames[want.Type] ||
			id != string(f.clientID(next))):
			t.Fatalf("line %d: %s, want %+v", next, lines.Text(), want)
		case next == 42 && (row["type"] != "SYMBOL_REGISTER" || row["ticker"] != `A"B`),
			next == 43 && (row["type"] != "RISK_EXTRACT" ||
				row["sessionDateEpochDay"] != json.Number("20000") || row["priceVersion"] != json.Number("7")),
			next == 44 && row["type"] != "99":
			t.Fatalf("line %d: %s", next, lines.Text())
		}
		if next > 44 && lines.Text() != bookings[next-45] {
			t.Errorf("line %d:\n got %s\nwant %s", next, lines.Text(), bookings[next-45])
		}
	}
	if next != 47 {
		t.Fatalf("%d lines", next)
	}
	cold.Reset()
	must.OK(t, Export(context.Background(), "j", &cold, 10, 12, verifying(fs, *f)))
	if got := strings.Count(cold.String(), "\n"); got != 3 ||
		!strings.HasPrefix(cold.String(), `{"sequence":10,`) {
		t.Errorf("10..12: %s", cold.String())
	}
	if err := Export(context.Background(), "j", failing{}, 1, 0,
		verifying(fs, *f)); !errors.Is(err, errToy) {
		t.Errorf("writer that fails: %v", err)
	}
}

// bookings are the lines of a swap, a swaption, and one in terms that no build knows.
var bookings = [3]string{
	`{"sequence":45,"type":"SWAP_BOOK","eventTimeMillis":0,"accountId":7,"payReceive":"Pay",` +
		`"notional":25,` +
		`"fixedRateTicks":-500,"effectiveDate":"2026-01-05","maturityDate":"2149-06-06",` +
		`"conventions":"USD-SOFR-1Y-ACT360","priceTicks":0,"leaderEpoch":0,"flags":0}`,
	`{"sequence":46,"type":"SWAPTION_BOOK","eventTimeMillis":0,"accountId":7,"payReceive":"Receive",` +
		`"notional":25,` +
		`"fixedRateTicks":-500,"effectiveDate":"2026-01-05","maturityDate":"2149-06-06",` +
		`"conventions":"JPY-TONA-1Y-ACT365F","expiryDate":"1970-01-01","exerciseStyle":"Bermudan",` +
		`"priceTicks":0,"leaderEpoch":0,"flags":0}`,
	`{"sequence":47,"type":"SWAPTION_BOOK","eventTimeMillis":0,"accountId":7,"payReceive":"Receive",` +
		`"notional":25,` +
		`"fixedRateTicks":-500,"effectiveDate":"2026-01-05","maturityDate":"2149-06-06",` +
		`"conventions":"200","expiryDate":"1970-01-01","exerciseStyle":"9",` +
		`"priceTicks":0,"leaderEpoch":0,"flags":0}`,
}

func jsonInt(v int64) string { return string(appendInt(nil, "x", v)[len(`,"x":`):]) }

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errToy }

func TestComparatorsMeasure(t *testing.T) {
	for _, run := range []func(dir string) (Measured, error){
		func(dir string) (Measured, error) {
			return CompareKeyPerRecord(context.Background(), dir+"/a", 20*time.Millisecond)
		},
		func(dir string) (Measured, error) {
			return CompareBlockAsValue(context.Background(), dir+"/b", 20*time.Millisecond, 1024)
		},
		func(dir string) (Measured, error) {
			return CompareBlockPacked(context.Background(), dir+"/c", 20*time.Millisecond, 1024)
		},
		func(dir string) (Measured, error) {
			return CompareRawWrites(context.Background(), dir, 20*time.Millisecond, 64<<10)
		},
	} {
		m := must.Get(run(t.TempDir()))(t)
		if m.Records == 0 || m.PerSecond() <= 0 || m.P50 <= 0 || m.P50 > m.P99 || m.P99 > m.Max ||
			m.Name == "" {
			t.Errorf("%+v", m)
		}
		t.Logf("%s: %.2f M/s, p50 %v", m.Name, m.PerSecond()/1e6, m.P50)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := CompareKeyPerRecord(ctx, t.TempDir()+"/d", time.Second)
	must.Be(t, err, context.Canceled)
	_, err = CompareRawWrites(ctx, t.TempDir(), time.Second, 64)
	must.Be(t, err, context.Canceled)
	if _, err := CompareRawWrites(ctx, "does/not/exist", time.Second, 64); err == nil {
		t.Error("no error without a directory")
	}
}

func TestAcceptedHistoryOpens(t *testing.T) {
	for name, d := range wrecks(t) {
		lost := d.restore(t, "j/anchor", nil)
		_, err := Open("j", Options{FS: lost, boot: "boot-1", Fatal: func(error) {}})
		must.Be(t, err, ErrAnchorMissing)
		r, err := AcceptHistory(context.Background(), "j", verifying(lost, d.flow))
		must.OK(t, err)
		if r.InputSeq != d.head || r.Anchored != d.head || !r.Replayed {
			t.Errorf("%s: report %+v, want head %d", name, r, d.head)
		}
		must.OK(t, d.outcome(lost))
	}
}

func TestShortHistoryIsAcceptedOnlyByHand(t *testing.T) {
	d := wrecks(t)["grown killed"]
	var log string
	for _, file := range d.files() {
		if isLog(file) {
			log = file
		}
	}
	fs := d.restore(t, log, d.image[log][:len(d.image[log])/2])
	_, err := Open("j", Options{FS: fs, boot: "boot-1", Fatal: func(error) {}})
	must.Be(t, err, ErrShortened)
	r, err := AcceptHistory(context.Background(), "j", verifying(fs, d.flow))
	must.OK(t, err)
	if r.InputSeq == 0 || r.InputSeq >= d.head {
		t.Fatalf("accepted %d of %d", r.InputSeq, d.head)
	}
	_, err = recovered(fs, "boot-1", flow{seed: d.flow.seed, idsEvery: d.flow.idsEvery}, r.InputSeq,
		r.InputSeq)
	must.OK(t, err)
}

func TestBrokenHistoryIsNotAccepted(t *testing.T) {
	fs := vfs.NewMem()
	_, err := AcceptHistory(context.Background(), "none", VerifyOptions{FS: fs})
	must.Be(t, err, ErrNoGenesis)
	j := openNew(t, "j", strict(t, fs))
	f := &flow{seed: 1}
	appendAll(t, j, f, 10, 10, 10)
	_, err = AcceptHistory(context.Background(), "j", verifying(fs, *f))
	must.Be(t, err, ErrLocked)
	must.OK(t, j.db.Delete(newKey(keyCommands, 11), pebble.Sync))
	must.OK(t, j.Close())
	_, err = AcceptHistory(context.Background(), "j", verifying(fs, *f))
	must.Be(t, err, ErrCorrupt)
}
