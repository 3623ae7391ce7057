package riskextract

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// manifest holds the SHA-256 of every file of an extract. Its text, in the form of sha256sum(1), is
// seq-<N>.sha256: it pins the inputs, and a rebuild is compared with it.
//
// The inputs come first, so their three lines alone have a sum (referenceSHA256), which does not
// depend on the marker.
type manifest struct {
	counterparties, instruments, marks string // the inputs
	// cut and what follows are "" until render has set them.
	cut                  string
	positions, contracts string // the artifacts
}

const (
	manifestLines = 6
	inputLines    = 3
	sumDigits     = 64
)

func counterpartiesName(sum string) string { return "counterparties-" + sum + ".csv" }
func instrumentsName(sum string) string    { return "instruments-" + sum + ".csv" }
func marksName(sum string) string          { return "marks-" + sum + ".csv" }

// text is the content of the file.
//
// sha256sum -c in the folder checks it.
func (m *manifest) text(seq uint64) string {
	lines := [manifestLines][2]string{
		{m.counterparties, counterpartiesName(m.counterparties)},
		{m.instruments, instrumentsName(m.instruments)},
		{m.marks, marksName(m.marks)},
		{m.cut, cutName(seq)},
		{m.positions, positionsFile(seq)},
		{m.contracts, contractsFile(seq)},
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line[0] + "  " + line[1] + "\n")
	}
	return b.String()
}

// referenceSHA256 is the SHA-256 of the first lines, which name the inputs.
func (m *manifest) referenceSHA256() string {
	lines := strings.SplitAfterN(m.text(0), "\n", inputLines+1)
	return sumOf([]byte(strings.Join(lines[:inputLines], "")))
}

// parseManifest reads the text: it compares it with the text that its values give.
//
// ErrMismatch for any text that manifest.text does not give, also for one with a line too many.
func parseManifest(seq uint64, text string) (*manifest, error) {
	m := new(manifest)
	fields := [manifestLines]*string{&m.counterparties, &m.instruments, &m.marks, &m.cut, &m.positions,
		&m.contracts}
	lines := strings.Split(text, "\n")
	for i, field := range fields {
		if i < len(lines) && len(lines[i]) > sumDigits {
			*field = lines[i][:sumDigits]
		}
		if strings.Trim(*field, "0123456789abcdef") != "" {
			*field = ""
		}
	}
	if m.text(seq) != text {
		return nil, fmt.Errorf("riskextract: stored file=%s is not of that form: %w",
			manifestName(seq), ErrMismatch)
	}
	return m, nil
}

// manifest reads the stored manifest; false when there is none.
func (f *folder) manifest(seq uint64) (m *manifest, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(f.path, manifestName(seq)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("riskextract: read stored: %w", err)
	}
	m, err = parseManifest(seq, string(text))
	return m, true, err
}

// inputs reads the inputs that a manifest pins.
//
// ErrMismatch when a file is not the one that is pinned. The marks must be those of the marker's
// session and version.
func (f *folder) inputs(m *manifest, marker Marker) (*inputs, error) {
	counterparties, err := f.read(counterpartiesName(m.counterparties), m.counterparties)
	if err != nil {
		return nil, err
	}
	instruments, err := f.read(instrumentsName(m.instruments), m.instruments)
	if err != nil {
		return nil, err
	}
	marks, err := f.read(marksName(m.marks), m.marks)
	if err != nil {
		return nil, err
	}
	in := new(inputs)
	if in.reference, err = parseReference(counterparties, instruments); err != nil {
		return nil, err
	}
	in.marks, err = parseMarks(marker.SessionDate, marker.PriceVersion, marks)
	return in, err
}

// keep stores inputs and returns a manifest that pins them.
//
// The names of the files are their sums, so extracts with the same inputs share them.
func (f *folder) keep(in *inputs) (*manifest, error) {
	m := &manifest{
		counterparties: sumOf([]byte(in.reference.counterpartiesText)),
		instruments:    sumOf([]byte(in.reference.instrumentsText)),
		marks:          sumOf([]byte(in.marks.text)),
	}
	for _, file := range [inputLines][2]string{
		{counterpartiesName(m.counterparties), in.reference.counterpartiesText},
		{instrumentsName(m.instruments), in.reference.instrumentsText},
		{marksName(m.marks), in.marks.text},
	} {
		if err := f.put(file[0], []byte(file[1])); err != nil {
			return nil, err
		}
	}
	return m, nil
}
