package bundle_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"posttrade/journal/evidence/bundle"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestEveryRangeProvesItself exports ranges that begin and end anywhere in a leaf, behind snapshots
// and from the genesis.
func TestEveryRangeProvesItself(t *testing.T) {
	v := newVenue(t, 300, 500, 1700, 130)
	ranges := [][2]uint64{{1, 0}, {1, 1}, {1, 256}, {2, 257}, {257, 512}, {300, 301}, {301, 301},
		{302, 2630}, {801, 900}, {2400, 2500}, {2501, 2630}, {2502, 2502}, {2630, 2630}, {2560, 2600}}
	for _, r := range ranges {
		files := v.export(r[0], r[1])
		p, err := bundle.Verify(v.keys(), reading(files), bundle.Options{})
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		if r[0] > 801 && p.Snapshot == 0 {
			t.Errorf("%v: not from a snapshot", r)
		}
		lines, total := v.reportOf(p.From, p.To)
		if p.Report != (bundle.Digest{total.Count, bundle.Sum(total.SHA256)}) {
			t.Errorf("%v: report %+v, want %d", r, p.Report, total.Count)
		}
		for name, text := range map[string][]byte{"lines": lines, "object": object(v, p.From, p.To)} {
			if err := v.compareReport(files, text); err != nil {
				t.Errorf("%v %s: %v", r, name, err)
			}
		}
	}
}

// TestAnExportNeedsOneKey: after a change of keys, the heads of the old one attest no snapshot.
func TestAnExportNeedsOneKey(t *testing.T) {
	v := newVenue(t, 300, 500)
	if p := v.export(800, 0); p[bundle.SnapshotName] == nil {
		t.Fatal("no snapshot in it")
	}
	must.OK(t, os.Remove(filepath.Join(v.logDir(), "log.key")))
	v.sign()
	files := v.export(800, 0)
	p, err := bundle.Verify(v.keys(), reading(files), bundle.Options{})
	if err != nil || p.To != 800 || p.Snapshot != 0 {
		t.Errorf("%+v %v", p, err)
	}
}

// object is a report as one object, as the server answers it.
func object(v *venue, from, to uint64) []byte {
	lines, total := v.reportOf(from, to)
	genesis, _ := v.j.Genesis()
	b := fmt.Appendf(nil, `{"fromSeq":%d,"toSeq":%d,"seed":%s,"records":[`, from, to,
		matcher.PublicGenesis(genesis))
	lines = bytes.TrimSuffix(lines, []byte("\n"))
	b = append(b, bytes.ReplaceAll(lines, []byte("\n"), []byte(","))...)
	return fmt.Appendf(b, `],"count":%d,"sha256":"%x"}`, total.Count, total.SHA256)
}

func (v *venue) compareReport(files map[string][]byte, text []byte) error {
	return v.compareRange(files, text, 0, 0)
}

func (v *venue) compareRange(files map[string][]byte, text []byte, from, to uint64) error {
	r, err := bundle.OpenReport(bytes.NewReader(text), reading(files), from, to)
	if err != nil {
		return err
	}
	p, err := bundle.Verify(v.keys(), reading(files),
		bundle.Options{Report: r, ReportFrom: r.From, ReportTo: r.To})
	if err != nil {
		return err
	}
	return r.End(p.Other)
}

// refused requires a Refusal: exit 3.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	var r *verify.Refusal
	if !errors.As(err, &r) {
		t.Errorf("%s: %v", what, err)
	}
}

// TestEveryFlippedByteOfABundleIsFound flips a bit in every byte of every file, of a bundle from a
// snapshot.
func TestEveryFlippedByteOfABundleIsFound(t *testing.T) {
	v := newVenue(t, 300, 40, 30)
	files := v.export(345, 366)
	if _, ok := files[bundle.SnapshotName]; !ok {
		t.Fatal("no snapshot in it")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		good := files[name]
		for i := range good {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << (i % 8)
			refused(t, fmt.Sprintf("%s byte %d", name, i), v.verifyWith(files, name, bad))
		}
		for _, cut := range []int{len(good) / 2, len(good) - 1} {
			refused(t, fmt.Sprintf("%s cut at %d", name, cut), v.verifyWith(files, name, good[:cut]))
		}
		if err := v.verifyWith(files, name, nil); !errors.Is(err, verify.ErrRead) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// verifyWith verifies a bundle of which one file is another, or, with nil, is not there.
func (v *venue) verifyWith(files map[string][]byte, name string, data []byte) error {
	changed := maps.Clone(files)
	if changed[name] = data; data == nil {
		delete(changed, name)
	}
	_, err := bundle.Verify(v.keys(), reading(changed), bundle.Options{})
	return err
}

// TestEveryFlippedBitOfAManifestIsFound: what a manifest names wrongly is not looked for.
func TestEveryFlippedBitOfAManifestIsFound(t *testing.T) {
	v := newVenue(t, 60)
	files := v.export(30, 50) // from the genesis, whose manifest could name a snapshot
	good := files[bundle.ManifestName]
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			refused(t, fmt.Sprintf("byte %d bit %d", i, bit),
				v.verifyWith(files, bundle.ManifestName, bad))
		}
	}
	var m bundle.Manifest
	must.OK(t, json.Unmarshal(good, &m))
	for _, name := range []string{"more", bundle.SnapshotName, "../checkpoint", "tile/0/000"} {
		more := m
		more.Files = maps.Clone(m.Files)
		more.Files[name] = m.Files[bundle.EdgesName]
		refused(t, name+" named", v.verifyWith(files, bundle.ManifestName, more.Text()))
	}
	for name := range m.Files {
		less := m
		less.Files = maps.Clone(m.Files)
		delete(less.Files, name)
		refused(t, name+" not named", v.verifyWith(files, bundle.ManifestName, less.Text()))
	}
	for _, text := range []string{"", "{}", "\x00\x01", `{"name": "another file"}`} {
		err := v.verifyWith(files, bundle.ManifestName, []byte(text))
		if !errors.Is(err, verify.ErrRead) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestEveryFlippedByteOfAReportIsFound, in both of its forms, and names the byte.
func TestEveryFlippedByteOfAReportIsFound(t *testing.T) {
	v := newVenue(t, 60)
	files := v.export(1, 60)
	lines, _ := v.reportOf(1, 60)
	for _, good := range [][]byte{lines, object(v, 5, 50)} {
		must.OK(t, v.compareReport(files, good))
		for i := 0; i < len(good); i += 1 + len(good)/300 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << (i % 8)
			refused(t, fmt.Sprintf("byte %d", i), v.compareReport(files, bad))
		}
		refused(t, "cut", v.compareReport(files, good[:len(good)-1]))
		refused(t, "longer", v.compareReport(files, append(bytes.Clone(good), '\n')))
	}
	bad := bytes.Replace(lines, []byte(`"quantity":`), []byte(`"quantity":9`), 1)
	err := v.compareReport(files, bad)
	at := bytes.Index(lines, []byte(`"quantity":`)) + len(`"quantity":`)
	if want := fmt.Sprintf("byte %d: ", at); !strings.HasPrefix(fmt.Sprint(err), want) &&
		!strings.HasPrefix(fmt.Sprint(err), fmt.Sprintf("byte %d: ", at+1)) {
		t.Errorf("%v, want %s", err, want)
	}
}

// command is the records of a command as they stand in a bundle: its own, then its fills, which
// have their lengths.
type command struct{ record, fills []byte }

// id is the client order id of a command's record.
func (c *command) id() []byte {
	var none [matcher.CommandBytes]byte
	return c.record[len(verify.AppendCommand(nil, &none, verify.Outcome{}, nil)):]
}

// TestARewrittenRecordIsNamed: a bundle of another history has no signed head, and records that the
// engine does not give are named, whatever the manifest says.
func TestARewrittenRecordIsNamed(t *testing.T) {
	v := newVenue(t, 600)
	files := v.export(1, 0)
	for name, change := range map[string]func(c *command){
		"quantity":   func(c *command) { c.record[1+52]++ },
		"status":     func(c *command) { c.record[1+64+4] ^= 1 },
		"client id":  func(c *command) { c.record = append(c.record[:len(c.record)-1], '!') },
		"fill":       func(c *command) { c.fills[2+1+24]++ },
		"less fills": func(c *command) { c.fills = nil },
		"more fills": func(c *command) { c.fills = append(c.fills, c.fills[:2+65]...) },
	} {
		t.Run(name, func(t *testing.T) { rewritten(t, v, files, change) })
	}
}

func rewritten(t *testing.T, v *venue, files map[string][]byte, change func(c *command)) {
	done := false
	var plain []byte
	for i, c := range commandsOf(t, files[bundle.RecordsName]) {
		if !done && i > 40 && len(c.fills) > 0 && len(c.id()) > 0 {
			change(&c)
			done = true
		}
		plain = append(append(plain, 0, byte(len(c.record))), c.record...)
		plain = append(plain, c.fills...)
	}
	changed := withRecords(t, files, plain)
	_, err := bundle.Verify(v.keys(), reading(changed), bundle.Options{})
	var refusal *verify.Refusal
	if !done || !errors.As(err, &refusal) || !strings.Contains(err.Error(), "sequence") ||
		refusal.Blames != verify.BlameBundle {
		t.Errorf("%v", err)
	}
}

// withRecords are the files of an export with other records, whose sum the manifest has.
func withRecords(t *testing.T, files map[string][]byte, plain []byte) map[string][]byte {
	t.Helper()
	changed := maps.Clone(files)
	var m bundle.Manifest
	must.OK(t, json.Unmarshal(files[bundle.ManifestName], &m))
	changed[bundle.RecordsName] = packedText(t, plain)
	m.Files[bundle.RecordsName] = bundle.Sum(sha256.Sum256(changed[bundle.RecordsName]))
	changed[bundle.ManifestName] = m.Text()
	return changed
}

// TestFillsWithoutEndAreRefused: the fills of a command that its engine cannot execute are refused
// while they are read, and not collected.
func TestFillsWithoutEndAreRefused(t *testing.T) {
	v := newVenue(t, 300)
	files := v.export(1, 0)
	first := commandsOf(t, files[bundle.RecordsName])[0]
	fill := append([]byte{0, 65, verify.KindFill}, make([]byte, 64)...)
	plain := append([]byte{0, byte(len(first.record))}, first.record...)
	plain = append(plain, bytes.Repeat(fill, 1<<16)...)
	_, err := bundle.Verify(v.keys(), reading(withRecords(t, files, plain)), bundle.Options{})
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) || refusal.Where != "sequence 1" ||
		!strings.Contains(refusal.Why, "more than 2 fills") {
		t.Errorf("%v", err)
	}
}

// commandsOf reads the file of records.
func commandsOf(t *testing.T, packed []byte) (list []command) {
	z := must.Get(zstd.NewReader(nil))(t)
	plain := must.Get(z.DecodeAll(packed, nil))(t)
	for len(plain) > 0 {
		n := 2 + int(binary.BigEndian.Uint16(plain))
		if plain[2] == verify.KindFill {
			last := &list[len(list)-1]
			last.fills = append(last.fills, plain[:n]...)
		} else {
			list = append(list, command{record: bytes.Clone(plain[2:n])})
		}
		plain = plain[n:]
	}
	return list
}

// TestAReportOfAPartOfAnExport: lines do not name their range, so it has to be said. Every line of
// the range must be there, also the first and the last ones.
func TestAReportOfAPartOfAnExport(t *testing.T) {
	v := newVenue(t, 300)
	files := v.export(1, 300)
	for _, asked := range [][2]uint64{{1, 300}, {0, 0}, {1, 1}, {40, 40}, {41, 250}, {150, 200},
		{300, 300}} {
		lines, _ := v.reportOf(max(asked[0], 1), cmp.Or(asked[1], 300))
		if err := v.compareRange(files, lines, asked[0], asked[1]); err != nil {
			t.Errorf("%v: %v", asked, err)
		}
	}
	lines, _ := v.reportOf(150, 200)
	list := slices.Collect(bytes.Lines(lines))
	for i := range list {
		short := bytes.Join(slices.Delete(slices.Clone(list), i, i+1), nil)
		refused(t, fmt.Sprintf("without line %d", i), v.compareRange(files, short, 150, 200))
	}
	for _, other := range [][2]uint64{{149, 200}, {151, 200}, {150, 199}, {150, 201}, {150, 0},
		{0, 200}, {200, 150}} {
		refused(t, fmt.Sprint(other), v.compareRange(files, lines, other[0], other[1]))
	}
	err := v.compareRange(files, lines, 0, 0)
	if refused(t, "no range", err); !strings.Contains(err.Error(), "report of 1 to 300") ||
		!strings.Contains(err.Error(), "--from and --to") {
		t.Errorf("no range: %v", err)
	}
	for i := 0; i < len(lines); i += 1 + len(lines)/100 {
		bad := bytes.Clone(lines)
		bad[i] ^= 1 << (i % 8)
		refused(t, fmt.Sprintf("byte %d", i), v.compareRange(files, bad, 150, 200))
		refused(t, fmt.Sprintf("cut at %d", i), v.compareRange(files, lines[:i], 150, 200))
	}
	whole := object(v, 150, 200)
	must.OK(t, v.compareRange(files, whole, 150, 200))
	must.OK(t, v.compareRange(files, whole, 0, 0))
	refused(t, "an object of another range", v.compareRange(files, whole, 150, 201))
}

// TestAReportThatTheExportDoesNotCover is told so, and is not called wrong.
func TestAReportThatTheExportDoesNotCover(t *testing.T) {
	v := newVenue(t, 300, 500, 200)
	files := v.export(850, 950) // from the snapshot at 800
	for _, asked := range [][2]uint64{{700, 820}, {900, 980}, {960, 990}, {1, 1000}} {
		lines, _ := v.reportOf(asked[0], asked[1])
		for _, text := range [][]byte{lines, object(v, asked[0], asked[1])} {
			j := bundle.Job{Name: "range", Read: reading(files), Report: bytes.NewReader(text), File: "r",
				From: asked[0], To: asked[1]}
			exit, words := verify.ExitOf(j.Prove(v.keys(), io.Discard))
			if exit != verify.ExitNotProven || !strings.HasPrefix(words, "not proven: r: ") ||
				!strings.Contains(words, "the export does not cover the report") ||
				strings.Contains(words, "at fault: the report") {
				t.Errorf("%v: %d %s", asked, exit, words)
			}
		}
	}
	lines, _ := v.reportOf(810, 940) // before From, and covered
	must.OK(t, v.compareRange(files, lines, 810, 940))
}

// TestADigestNamesItsRange: the records begin at the genesis, and what is counted later. A file
// that is no part of the export is named.
func TestADigestNamesItsRange(t *testing.T) {
	v := newVenue(t, 60)
	var out strings.Builder
	files := v.export(50, 60)
	files["more\n"] = nil
	j := bundle.Job{Name: "range", Read: reading(files), Files: slices.Collect(maps.Keys(files))}
	must.OK(t, j.Prove(v.keys(), &out))
	if said := "\nnothing is proven of \"more\\n\": it is no part of the export\n"; !strings.HasSuffix(
		out.String(), said) || strings.Count(out.String(), "nothing is proven") != 1 {
		t.Error(out.String())
	}
	if strings.Count(out.String(), " of sequences 50 to 60, sha256 ") != 3 ||
		!strings.HasPrefix(out.String(), "proven sequences 1 to 60 of the log ") {
		t.Error(out.String())
	}
}

// TestADigestOfAManifestIsHex: nothing else is printed of it.
func TestADigestOfAManifestIsHex(t *testing.T) {
	v := newVenue(t, 60)
	files := v.export(1, 60)
	var m bundle.Manifest
	must.OK(t, json.Unmarshal(files[bundle.ManifestName], &m))
	for _, sum := range []string{"", "\x1b[2J", "\u009b2J", strings.ToUpper(m.Fills.SHA256)} {
		other := m
		other.Fills.SHA256 = sum
		err := v.verifyWith(files, bundle.ManifestName, other.Text())
		refused(t, sum, err)
		if !strings.Contains(fmt.Sprint(err), "is no SHA-256 in hex") || strings.Contains(
			fmt.Sprint(err), "\x1b") {
			t.Errorf("%q: %v", sum, err)
		}
	}
}

// TestAJobSaysWhatItHasProven, or names the folder or the file that is not what was decided.
func TestAJobSaysWhatItHasProven(t *testing.T) {
	v := newVenue(t, 60)
	files := v.export(1, 60)
	lines, _ := v.reportOf(1, 60)
	prove := func(files map[string][]byte, report []byte) (string, error) {
		var out strings.Builder
		j := bundle.Job{Name: "range", Read: reading(files)}
		if report != nil {
			j.Report, j.File = bytes.NewReader(report), "day.json"
		}
		err := j.Prove(v.keys(), &out)
		return out.String(), err
	}
	said, err := prove(files, lines)
	if err != nil || !strings.HasPrefix(said, "proven sequences 1 to 60 of the log ") ||
		!strings.HasSuffix(said,
			"\nproven day.json: every byte is what the engine decides, sequences 1 to 60\n") {
		t.Errorf("%v: %s", err, said)
	}
	changed := maps.Clone(files)
	changed[bundle.EdgesName] = append(bytes.Clone(files[bundle.EdgesName]), 0)
	for name, tt := range map[string]struct {
		files  map[string][]byte
		report []byte
	}{"range: ": {changed, nil}, "day.json: ": {files, lines[1:]}} {
		said, err := prove(tt.files, tt.report)
		exit, words := verify.ExitOf(err)
		if exit != verify.ExitNotProven || !strings.HasPrefix(words, "not proven: "+name) || said != "" {
			t.Errorf("%s%d %s: %s", name, exit, words, said)
		}
	}
}
