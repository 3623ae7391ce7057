package bundle

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
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
//
// Lines do not name their range. They are compared from the sequence of the first line to that of
// the last; which sequences around them have no records is known behind End.
type Report struct {
	// From and To are the report's range. Of one object it is what the object says. Of lines it is
	// what the bundle holds, and behind End the widest range of which they are the whole report.
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
	// first is the sequence of the first line, last that of the last line that was compared, 0 before
	// it; over says that the file ended with last.
	first, last uint64
	over        bool
	// buf is the text that the file must have next, got what it has; both are reused.
	buf, got []byte
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
func OpenReport(file io.Reader, read verify.Read) (*Report, error) {
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
	r := &Report{r: bufio.NewReaderSize(file, 1<<16), From: m.Snapshot + 1, To: m.To, lines: true,
		first: m.From}
	start, err := r.r.Peek(len(reportFrom))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	from, to := m.From, m.To
	switch {
	case string(start) == reportFrom:
		r.lines = false
		if from, to, err = reportRange(r.r); err != nil {
			return nil, err
		}
		r.From, r.To = from, to
		r.head = fmt.Appendf(nil, `%s%d%s%d,"seed":%s,"records":[`, reportFrom, r.From, reportTo, r.To,
			bytes.TrimSpace(matcher.PublicGenesis(genesis)))
	case len(start) > 0:
		if from, err = r.nextSequence(); err != nil {
			return nil, err
		}
		r.first, to = from, max(from, to)
	}
	if from > to {
		return nil, &verify.Refusal{Where: "byte " + strconv.Itoa(len(reportFrom)),
			Why: fmt.Sprintf("a range of %d to %d", from, to), Blames: verify.BlameReport}
	}
	if from <= m.Snapshot || to > m.To {
		return nil, notCovered(from, to, m)
	}
	return r, nil
}

// notCovered is the refusal of a report with sequences that the bundle does not have. Nothing is
// said of the report by it.
func notCovered(from, to uint64, m *Manifest) error {
	return &verify.Refusal{Blames: verify.BlameRange, Why: fmt.Sprintf(
		"the export does not cover the report: it has sequences %d to %d, the report %d to %d",
		m.Snapshot+1, m.To, from, to)}
}

// sequenceMember stands before the sequence in a record, close to its beginning.
const sequenceMember = `"sequence":`

// sequenceOf is the sequence of the record that b begins with; false when b does not name it.
func sequenceOf(b []byte) (uint64, bool) {
	_, rest, _ := bytes.Cut(b, []byte(sequenceMember))
	digits, _, found := bytes.Cut(rest, []byte(","))
	seq, err := strconv.ParseUint(string(digits), 10, 63)
	return seq, found && err == nil
}

// nextSequence is the sequence of the next line of the file, which stays unread.
func (r *Report) nextSequence() (uint64, error) {
	b, err := r.r.Peek(len(`{"kind":"trade-booked",`) + len(sequenceMember) + 20)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	seq, ok := sequenceOf(b)
	if !ok {
		return 0, r.differ(0, "a line that names no sequence")
	}
	return seq, nil
}

// atEnd reports that the file has no more bytes.
func (r *Report) atEnd() (bool, error) {
	b, err := r.r.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	return len(b) == 0, nil
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
		for line := range bytes.Lines(lines) {
			if err := r.line(line); err != nil {
				return 0, err
			}
		}
		return len(lines), nil
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

// line compares a line with the next one of a file of lines. Lines before the first and behind the
// last of the file only say how far its range goes: a command has all of its lines or none.
func (r *Report) line(line []byte) error {
	seq, _ := sequenceOf(line)
	switch {
	case seq < r.first:
		r.From = seq + 1
		return nil
	case r.over:
		return nil
	}
	end, err := r.atEnd()
	switch {
	case err != nil:
		return err
	case end && seq > r.last && r.last > 0:
		r.over, r.To = true, seq-1
		return nil
	}
	r.last = seq
	return r.expect(line)
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
	end, err := r.atEnd()
	if err != nil || end {
		return err
	}
	if seq, err := r.nextSequence(); r.lines && err == nil && seq > r.To {
		return &verify.Refusal{Blames: verify.BlameRange, Where: fmt.Sprintf("byte %d", r.at),
			Why: fmt.Sprintf("the export does not cover the report: it ends at sequence %d, the report "+
				"goes on with %d", r.To, seq)}
	}
	return r.differ(0, "it goes on behind the last record")
}

// expect compares the next bytes of the file.
func (r *Report) expect(want []byte) error {
	r.got = slices.Grow(r.got[:0], len(want))[:len(want)]
	got := r.got
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
	return &verify.Refusal{Where: fmt.Sprintf("byte %d", r.at+int64(i)), Why: why,
		Blames: verify.BlameReport}
}

// around is the text about a byte.
func around(b []byte, i int) []byte { return b[max(0, i-20):min(len(b), i+20)] }
