package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// TestEveryRangeProvesItself exports ranges that begin and end anywhere in a leaf, behind snapshots
// and from the genesis.
func TestEveryRangeProvesItself(t *testing.T) {
	v := newVenue(t, 300, 500, 1700, 130)
	ranges := [][2]uint64{{1, 0}, {1, 1}, {1, 256}, {2, 257}, {257, 512}, {300, 301}, {301, 301},
		{302, 2630}, {801, 900}, {2400, 2500}, {2501, 2630}, {2502, 2502}, {2630, 2630}, {2560, 2600}}
	for _, r := range ranges {
		files := v.export(r[0], r[1])
		p, err := Verify(v.keys(), reading(files), Options{})
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		if r[0] > 801 && p.Snapshot == 0 {
			t.Errorf("%v: not from a snapshot", r)
		}
		lines, total := v.reportOf(p.From, p.To)
		if p.Report != (Digest{total.Count, hexOf(total.SHA256)}) {
			t.Errorf("%v: report %+v, want %d", r, p.Report, total.Count)
		}
		for name, text := range map[string][]byte{"lines": lines, "object": object(v, p.From, p.To)} {
			if err := v.compareReport(files, text); err != nil {
				t.Errorf("%v %s: %v", r, name, err)
			}
		}
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
	r, err := OpenReport(bytes.NewReader(text), reading(files))
	if err != nil {
		return err
	}
	p, err := Verify(v.keys(), reading(files), Options{Report: r, ReportFrom: r.From, ReportTo: r.To})
	if err != nil {
		return err
	}
	return r.End(p.Other)
}

// refused requires a Refusal, or, of a file that names what is read, ErrRead.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	var r *verify.Refusal
	if !errors.As(err, &r) && !errors.Is(err, verify.ErrRead) {
		t.Errorf("%s: %v", what, err)
	}
}

// TestEveryFlippedByteOfABundleIsFound flips bits in every byte of every file.
func TestEveryFlippedByteOfABundleIsFound(t *testing.T) {
	v := newVenue(t, 300, 40, 30)
	files := v.export(345, 366)
	if _, ok := files[snapshotName]; !ok {
		t.Fatal("no snapshot in it")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		good := files[name]
		step := max(1, len(good)/400)
		for i := 0; i < len(good); i += step {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << (i % 8)
			changed := maps.Clone(files)
			changed[name] = bad
			_, err := Verify(v.keys(), reading(changed), Options{})
			refused(t, fmt.Sprintf("%s byte %d", name, i), err)
		}
		for _, cut := range []int{0, len(good) / 2, len(good) - 1} {
			changed := maps.Clone(files)
			changed[name] = good[:cut]
			_, err := Verify(v.keys(), reading(changed), Options{})
			refused(t, fmt.Sprintf("%s cut at %d", name, cut), err)
		}
		without := maps.Clone(files)
		delete(without, name)
		_, err := Verify(v.keys(), reading(without), Options{})
		refused(t, "without "+name, err)
	}
}

// TestEveryFlippedByteOfAReportIsFound, in both of its forms, and names the byte.
func TestEveryFlippedByteOfAReportIsFound(t *testing.T) {
	v := newVenue(t, 60)
	files := v.export(1, 60)
	lines, _ := v.reportOf(1, 60)
	for _, good := range [][]byte{lines, object(v, 5, 50)} {
		must(t, v.compareReport(files, good))
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

// TestARewrittenRecordIsNamed: a bundle of another history has no signed head, and records that the
// engine does not give are named, whatever the manifest says.
func TestARewrittenRecordIsNamed(t *testing.T) {
	for name, change := range map[string]func(c *command){
		"quantity":   func(c *command) { c.record[1+52]++ },
		"status":     func(c *command) { c.record[1+64+4] ^= 1 },
		"client id":  func(c *command) { c.record = append(c.record[:len(c.record)-1], '!') },
		"fill":       func(c *command) { c.fills[2+1+24]++ },
		"less fills": func(c *command) { c.fills = nil },
		"more fills": func(c *command) { c.fills = append(c.fills, c.fills[:2+65]...) },
	} {
		t.Run(name, func(t *testing.T) { rewritten(t, change) })
	}
}

func rewritten(t *testing.T, change func(c *command)) {
	v := newVenue(t, 600)
	files := v.export(1, 0)
	packed, err := unpack(files[recordsName])
	must(t, err)
	r, err := newRecordReader(packed, 0)
	must(t, err)
	var plain bytes.Buffer
	done := false
	for {
		c, more, err := r.command()
		must(t, err)
		if !more {
			break
		}
		if !done && c.InputSeq > 40 && len(c.fills) > 0 && len(c.id) > 0 {
			change(&c)
			done = true
		}
		plain.Write([]byte{0, byte(len(c.record))})
		plain.Write(c.record)
		plain.Write(c.fills)
	}
	changed := maps.Clone(files)
	m, err := parseManifest(files[ManifestName])
	must(t, err)
	changed[recordsName] = packedText(t, plain.Bytes())
	m.Files[recordsName] = sumOf(changed[recordsName])
	changed[ManifestName] = m.text()
	_, err = Verify(v.keys(), reading(changed), Options{})
	var refusal *verify.Refusal
	if !done || !errors.As(err, &refusal) || !strings.Contains(err.Error(), "sequence") ||
		refusal.Blames != verify.BlameBundle {
		t.Errorf("%v", err)
	}
}
