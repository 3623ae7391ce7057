package bundle

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"posttrade/journal/evidence/verify"
)

// Job is a bundle that a person wants proven, on a command line or in a browser. Name and File are
// for messages only; everything is read through Read and Report.
type Job struct {
	Name string // of the folder
	Read verify.Read
	// Files are the names of all files in the folder. Those that the verification does not read are
	// named: a reader must not take them for proven because they lie beside what is.
	Files  []string
	Old    []byte    // as in Options
	Report io.Reader // a report file; nil: none
	File   string    // the name of Report
	// From and To are the range that the report has to have; 0: as in OpenReport.
	From, To uint64

	Progress func(done, of uint64) // as in Options
}

// Prove verifies the bundle and the report, and writes what is proven to w, as lines. The error
// names the folder or the file that it is about, and is otherwise that of Verify.
//
// Nothing is written to w unless everything is proven.
func (j *Job) Prove(keys *verify.Keys, w io.Writer) error {
	seen := map[string]bool{}
	read := func(name string) ([]byte, error) {
		seen[name] = true
		return j.Read(name)
	}
	o := Options{Old: j.Old, Progress: j.Progress}
	var report *Report
	if j.Report != nil {
		var err error
		if report, err = OpenReport(j.Report, read, j.From, j.To); err != nil {
			return fmt.Errorf("%s: %w", j.File, err)
		}
		o.Report, o.ReportFrom, o.ReportTo = report, report.From, report.To
	}
	p, err := Verify(keys, read, o)
	if err == nil && report != nil {
		err = report.End(p.Other)
	}
	if err != nil {
		name := j.Name
		var refused *verify.Refusal
		if errors.As(err, &refused) &&
			(refused.Blames == verify.BlameReport || refused.Blames == verify.BlameRange) {
			name = j.File
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Print(w)
	if p.Old != nil {
		fmt.Fprintln(w, "proven", p.Old)
	}
	if report != nil {
		fmt.Fprintf(w, "proven %s: every byte is what the engine decides, sequences %d to %d\n",
			j.File, report.From, report.To)
	}
	for _, name := range slices.Sorted(slices.Values(j.Files)) {
		if !seen[name] {
			fmt.Fprintf(w, "nothing is proven of %.80q: it is no part of the export\n", name)
		}
	}
	return nil
}

// Print writes what a bundle has shown, as lines. The records may begin before the range that the
// digests are of, so each digest names its range. A bundle from a snapshot says at the end what the
// signature alone vouches for.
func (p *Proven) Print(w io.Writer) {
	fmt.Fprintf(w, "proven sequences %d to %d of the log %s: every decision and fill, signed by %s\n",
		p.Snapshot+1, p.To, p.Origin, p.Signer)
	of := fmt.Sprintf("of sequences %d to %d, sha256", p.From, p.To)
	fmt.Fprintf(w, "fills    %d %s %s\n", p.Fills.Count, of, p.Fills.SHA256)
	fmt.Fprintf(w, "blotter  %d rows %s %s\n", p.Blotter.Count, of, p.Blotter.SHA256)
	fmt.Fprintf(w, "report   %d records %s %s\n", p.Report.Count, of, p.Report.SHA256)
	if p.Snapshot > 0 {
		fmt.Fprintf(w, "snapshot the state at sequence %d is attested by the signature, not replayed\n",
			p.Snapshot)
	}
	for i := range p.Differing {
		fmt.Fprintf(w, "snapshot the signed head at sequence %d names another file of it, sha256 %x: "+
			"of another build, or of another state\n", p.Differing[i].Head, p.Differing[i].SnapshotSHA256)
	}
}
