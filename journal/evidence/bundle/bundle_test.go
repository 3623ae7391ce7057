package bundle_test

import (
	"bytes"
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
	r, err := bundle.OpenReport(bytes.NewReader(text), reading(files))
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
	changed := maps.Clone(files)
	var m bundle.Manifest
	must.OK(t, json.Unmarshal(files[bundle.ManifestName], &m))
	changed[bundle.RecordsName] = packedText(t, plain)
	m.Files[bundle.RecordsName] = bundle.Sum(sha256.Sum256(changed[bundle.RecordsName]))
	changed[bundle.ManifestName] = m.Text()
	_, err := bundle.Verify(v.keys(), reading(changed), bundle.Options{})
	var refusal *verify.Refusal
	if !done || !errors.As(err, &refusal) || !strings.Contains(err.Error(), "sequence") ||
		refusal.Blames != verify.BlameBundle {
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

// rangeOf compares a report and gives the range that is proven of it.
func (v *venue) rangeOf(files map[string][]byte, text []byte) (from, to uint64, err error) {
	v.t.Helper()
	r := must.Get(bundle.OpenReport(bytes.NewReader(text), reading(files)))(v.t)
	p, err := bundle.Verify(v.keys(), reading(files),
		bundle.Options{Report: r, ReportFrom: r.From, ReportTo: r.To})
	if err == nil {
		err = r.End(p.Other)
	}
	return r.From, r.To, err
}

// TestAReportOfAPartOfAnExport: lines do not name their range, so what is proven is the widest
// range of which they are the whole report. A command whose lines are missing at an end makes it
// shorter; a line that is missing within the range, or beside another of its command, is found.
func TestAReportOfAPartOfAnExport(t *testing.T) {
	v := newVenue(t, 300)
	files := v.export(1, 300)
	for _, asked := range [][2]uint64{{1, 300}, {1, 1}, {40, 40}, {41, 250}, {150, 200}, {300, 300}} {
		lines, total := v.reportOf(asked[0], asked[1])
		if total.Count == 0 {
			continue
		}
		from, to, err := v.rangeOf(files, lines)
		if must.OK(t, err); from > asked[0] || to < asked[1] {
			t.Errorf("asked for %v, proven %d to %d", asked, from, to)
		}
		if whole, _ := v.reportOf(from, to); !bytes.Equal(whole, lines) {
			t.Errorf("asked for %v: the report of %d to %d is another", asked, from, to)
		}
	}
	lines, _ := v.reportOf(150, 200)
	list := bytes.SplitAfter(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n"))
	list[len(list)-1] = append(list[len(list)-1], '\n')
	for i := range list {
		if i > 20 && i < len(list)-20 {
			continue
		}
		from, to, err := v.rangeOf(files, bytes.Join(slices.Delete(slices.Clone(list), i, i+1), nil))
		first, last := i == 0, i == len(list)-1
		alone := (first || !sameCommand(list[i-1], list[i])) && (last || !sameCommand(list[i], list[i+1]))
		switch {
		case (first || last) && alone:
			if must.OK(t, err); from <= 150 && to >= 200 {
				t.Errorf("without line %d: proven %d to %d", i, from, to)
			}
		default:
			refused(t, fmt.Sprintf("without line %d", i), err)
		}
	}
	for i := 60; i < len(lines); i += 1 + len(lines)/60 { // cut within a line, and at its end
		for _, cut := range []int{i, bytes.LastIndexByte(lines[:i+1], '\n') + 1} {
			if cut == 0 {
				continue
			}
			from, to, err := v.rangeOf(files, lines[:cut])
			if err == nil && (from <= 150 && to >= 200 || lines[cut-1] != '\n') {
				t.Errorf("cut at %d: proven %d to %d", cut, from, to)
			}
		}
	}
	for i := 0; i < len(lines); i += 1 + len(lines)/100 {
		bad := bytes.Clone(lines)
		bad[i] ^= 1 << (i % 8)
		refused(t, fmt.Sprintf("byte %d", i), v.compareReport(files, bad))
	}
}

// sameCommand reports that two lines of a report are of one command.
func sameCommand(a, b []byte) bool {
	sequence := func(line []byte) string { return strings.Split(string(line), ",")[1] }
	return sequence(a) == sequence(b)
}

// TestAReportThatTheExportDoesNotCover is told so, and is not called wrong.
func TestAReportThatTheExportDoesNotCover(t *testing.T) {
	v := newVenue(t, 300, 500, 200)
	files := v.export(850, 950) // from the snapshot at 800
	for _, asked := range [][2]uint64{{700, 820}, {900, 980}, {960, 990}, {1, 1000}} {
		lines, _ := v.reportOf(asked[0], asked[1])
		for _, text := range [][]byte{lines, object(v, asked[0], asked[1])} {
			j := bundle.Job{Name: "range", Read: reading(files), Report: bytes.NewReader(text), File: "r"}
			exit, words := verify.ExitOf(j.Prove(v.keys(), io.Discard))
			if exit != verify.ExitNotProven || !strings.HasPrefix(words, "not proven: r: ") ||
				!strings.Contains(words, "the export does not cover the report") ||
				strings.Contains(words, "at fault: the report") {
				t.Errorf("%v: %d %s", asked, exit, words)
			}
		}
	}
	lines, _ := v.reportOf(810, 940) // before From, and covered
	must.OK(t, v.compareReport(files, lines))
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
			"\nproven day.json: every byte is what the engine decides, sequences 1 to 60\nrange    a "+
				"report of lines does not name its range: compare this one with what was asked for\n") {
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
