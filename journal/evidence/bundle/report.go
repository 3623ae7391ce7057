package bundle

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"

	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// Report compares a report file byte by byte with what a bundle gives. The file is an answer of GET
// /regulatory/report in either of its forms: one object, or one record a line. It is the io.Writer
// of Options.
//
// So the report is never in memory as a whole. The first difference is a *verify.Refusal with its
// byte.
type Report struct {
	// From and To are the report's range: of one object, what it says; of lines, the bundle's.
	From, To uint64

	// r is the report file behind the bytes that were compared
	r *bufio.Reader
	// at is how many bytes were compared.
	at int64
	// lines: the file has one record a line. Otherwise head is what one object begins with, and begun
	// says that it was compared.
	lines bool
	begun bool
	head  []byte
	// whole: no range was given for the lines, so they must be the report of all that was exported.
	whole bool
	// buf is the text that the file must have next, reused.
	buf []byte
}

// The beginnings of a report that is one object.
const (
	reportFrom = `{"fromSeq":`
	reportTo   = `,"toSeq":`
)

// OpenReport reads the range of a report file, and what the bundle has of it. It believes the
// manifest for the moment: Verify, which must follow, proves it.
//
// Errors: a *verify.Refusal for a range that the bundle does not hold; ErrRead for a file of the
// bundle or a report that cannot be read.
//
// from and to are the range that the report has to have; 0: what it says itself, and of lines,
// which do not say it, what the bundle was exported for.
func OpenReport(file io.Reader, read verify.Read, from, to uint64) (*Report, error) {
	text, err := read(ManifestName)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, err
	}
	genesis, err := read(GenesisName)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	r := &Report{r: bufio.NewReaderSize(file, 1<<16), lines: true, From: cmp.Or(from, m.From),
		To: cmp.Or(to, m.To), whole: from == 0 && to == 0}
	start, err := r.r.Peek(len(reportFrom))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	if string(start) == reportFrom {
		r.lines = false
		if r.From, r.To, err = reportRange(r.r); err != nil {
			return nil, err
		}
		if cmp.Or(from, r.From) != r.From || cmp.Or(to, r.To) != r.To {
			return nil, &verify.Refusal{Blames: verify.BlameReport, Why: fmt.Sprintf(
				"it is of sequences %d to %d, not of %d to %d", r.From, r.To, cmp.Or(from, r.From),
				cmp.Or(to, r.To))}
		}
		r.head = fmt.Appendf(nil, `%s%d%s%d,"seed":%s,"records":[`, reportFrom, r.From, reportTo, r.To,
			bytes.TrimSpace(matcher.PublicGenesis(genesis)))
	}
	switch {
	case r.From > r.To:
		return nil, &verify.Refusal{Blames: verify.BlameReport,
			Why: fmt.Sprintf("a range of %d to %d", r.From, r.To)}
	case r.From <= m.Snapshot || r.To > m.To:
		return nil, &verify.Refusal{Blames: verify.BlameRange, Why: fmt.Sprintf(
			"the export does not cover the report: it has sequences %d to %d, the report %d to %d",
			m.Snapshot+1, m.To, r.From, r.To)}
	}
	return r, nil
}

// reportRange reads the two numbers at a report's beginning without consuming them.
func reportRange(r *bufio.Reader) (from, to uint64, err error) {
	const most = len(reportFrom) + len(reportTo) + 2*20 + 1
	b, err := r.Peek(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	rest := b[len(reportFrom):]
	first, rest, _ := bytes.Cut(rest, []byte(reportTo))
	second, _, found := bytes.Cut(rest, []byte(","))
	from, a := strconv.ParseUint(string(first), 10, 63)
	to, c := strconv.ParseUint(string(second), 10, 63)
	if !found || a != nil || c != nil {
		return 0, 0, &verify.Refusal{Where: "byte " + strconv.Itoa(len(reportFrom)),
			Why: "it does not name its range", Blames: verify.BlameReport}
	}
	return from, to, nil
}

// Write compares lines of records with the next bytes of the file. In one object commas stand
// between the records and no newlines.
func (r *Report) Write(lines []byte) (int, error) {
	if r.lines {
		return len(lines), r.expect(lines)
	}
	r.buf = r.buf[:0]
	if !r.begun {
		r.buf = append(r.buf, r.head...)
	}
	for line := range bytes.Lines(lines) {
		if r.begun {
			r.buf = append(r.buf, ',')
		}
		r.begun = true
		r.buf = append(r.buf, bytes.TrimSuffix(line, []byte{'\n'})...)
	}
	return len(lines), r.expect(r.buf)
}

// End compares what follows the records, and that nothing follows it. d is the digest of the
// report, which one object states at its end.
func (r *Report) End(d Digest) error {
	if !r.lines {
		r.buf = r.buf[:0]
		if !r.begun {
			r.buf = append(r.buf, r.head...)
		}
		r.buf = fmt.Appendf(r.buf, `],"count":%d,"sha256":"%s"}`, d.Count, d.SHA256)
		if err := r.expect(r.buf); err != nil {
			return err
		}
	}
	rest, err := r.r.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	if len(rest) > 0 {
		return r.differ(0, "it goes on behind the last record")
	}
	return nil
}

// expect compares the next bytes of the file.
func (r *Report) expect(want []byte) error {
	got := make([]byte, len(want))
	n, err := io.ReadFull(r.r, got)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	if bytes.Equal(got[:n], want) {
		r.at += int64(n)
		return nil
	}
	i := differs(got[:n], want)
	if i == n {
		return r.differ(i, "it ends there")
	}
	return r.differ(i, fmt.Sprintf("it says %q, the engine decides %q", around(got[:n], i),
		around(want, i)))
}

// differ is a refusal of the byte i behind those that were compared.
func (r *Report) differ(i int, why string) error {
	if r.lines && r.whole {
		why += fmt.Sprintf(" (taken for the report of %d to %d; lines do not name their range, "+
			"--from and --to do)", r.From, r.To)
	}
	return &verify.Refusal{Where: fmt.Sprintf("byte %d", r.at+int64(i)), Why: why,
		Blames: verify.BlameReport}
}

// around is the text about a byte.
func around(b []byte, i int) []byte { return b[max(0, i-20):min(len(b), i+20)] }
