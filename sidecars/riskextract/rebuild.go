package riskextract

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Rebuild makes the positions and contracts files of a stored cut again, from the cut's folder and
// nothing else.
//
//   - cutPath is seq-<N>.cut. The folder must also have seq-<N>.sha256 and the inputs that it pins;
//     the stored artifacts may be missing.
//   - Rebuild writes both outputs, or begins neither. It does not replace an existing file.
//   - Errors: ErrMismatch when a stored file, or an existing file under an output's name, differs
//     from what it must be; then nothing is written. Any other error is a file that cannot be read
//     or written.
//
// It needs no database, no journal and no configuration, so it works on a copy of the folder.
func Rebuild(cutPath, positionsOut, contractsOut string) error {
	seq, err := cutSeq(cutPath)
	if err != nil {
		return err
	}
	stored := &folder{path: filepath.Dir(cutPath)}
	made, err := stored.again(seq)
	if err != nil {
		return err
	}
	if filepath.Clean(positionsOut) == filepath.Clean(contractsOut) {
		return fmt.Errorf("riskextract: rebuild: both files would be %s", positionsOut)
	}
	outputs := []struct {
		path    string
		content []byte
	}{{positionsOut, made.positions}, {contractsOut, made.contracts}}
	for _, o := range outputs {
		out := &folder{path: filepath.Dir(o.path)}
		if _, err := out.holds(filepath.Base(o.path), o.content); err != nil {
			return err
		}
	}
	for _, o := range outputs {
		out := &folder{path: filepath.Dir(o.path), mode: 0o644}
		if err := out.put(filepath.Base(o.path), o.content); err != nil {
			return err
		}
	}
	return nil
}

// cutSeq reads the sequence from a cut's name.
func cutSeq(path string) (uint64, error) {
	name := filepath.Base(path)
	digits := strings.TrimSuffix(strings.TrimPrefix(name, "seq-"), ".cut")
	seq, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || cutName(seq) != name {
		return 0, fmt.Errorf("riskextract: rebuild: %s is not named seq-<N>.cut", path)
	}
	return seq, nil
}

// again renders the artifacts of a stored cut and compares all stored files with its manifest.
//
// A refusal of stored content is ErrMismatch here: the same content was accepted when the extract
// was made.
func (f *folder) again(seq uint64) (artifacts, error) {
	m, found, err := f.manifest(seq)
	if err == nil && !found {
		err = fmt.Errorf("riskextract: rebuild: there is no %s", filepath.Join(f.path, manifestName(seq)))
	}
	if err != nil {
		return artifacts{}, err
	}
	text, err := f.read(cutName(seq), m.cut)
	if err != nil {
		return artifacts{}, err
	}
	cut, err := parseCut(text)
	if err != nil {
		return artifacts{}, fmt.Errorf("%w: %w", err, ErrMismatch)
	}
	if cut.Seq != seq {
		return artifacts{}, fmt.Errorf("riskextract: rebuild: %s is of seq=%d: %w", cutName(seq),
			cut.Seq, ErrMismatch)
	}
	in, err := f.inputs(m, cut.Marker)
	if errors.Is(err, ErrRefused) {
		err = fmt.Errorf("%w: %w", err, ErrMismatch)
	}
	if err != nil {
		return artifacts{}, err
	}
	made, err := f.render(cut, m.cut, in, m)
	if err != nil {
		return artifacts{}, fmt.Errorf("%w: %w", err, ErrMismatch)
	}
	return made, nil
}

// render makes the artifacts and compares them, and the stored ones, with a manifest. It adds to
// the manifest the sums that are not in it yet.
//
// It writes nothing.
func (f *folder) render(cut *cutRows, cutSum string, in *inputs, m *manifest) (artifacts, error) {
	made, err := render(cut, cutSum, in, m.referenceSHA256())
	if err != nil {
		return artifacts{}, err
	}
	now := *m
	now.cut, now.positions, now.contracts = cutSum, sumOf(made.positions), sumOf(made.contracts)
	if m.cut != "" && now != *m {
		return artifacts{}, fmt.Errorf("riskextract: rendered seq=%d is not what %s says: %w",
			cut.Seq, manifestName(cut.Seq), ErrMismatch)
	}
	*m = now
	for _, file := range []struct {
		name    string
		content []byte
	}{{positionsFile(cut.Seq), made.positions}, {contractsFile(cut.Seq), made.contracts}} {
		if _, err := f.holds(file.name, file.content); err != nil {
			return artifacts{}, err
		}
	}
	return made, nil
}
