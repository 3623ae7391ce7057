package bundle

import (
	"errors"
	"fmt"
	"io"

	"posttrade/journal/evidence/verify"
)

// Job is a bundle that a person wants proven, on a command line or in a browser. Name and File are
// for messages only; everything is read through Read and Report.
type Job struct {
	Name   string // of the folder
	Read   verify.Read
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
	o := Options{Old: j.Old, Progress: j.Progress}
	var report *Report
	if j.Report != nil {
		var err error
		if report, err = OpenReport(j.Report, j.Read, j.From, j.To); err != nil {
			return fmt.Errorf("%s: %w", j.File, err)
		}
		o.Report, o.ReportFrom, o.ReportTo = report, report.From, report.To
	}
	p, err := Verify(keys, j.Read, o)
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
	return nil
}

// Print writes what a bundle has shown, as lines. A bundle from a snapshot says in its last line
// what the signature alone vouches for.
func (p *Proven) Print(w io.Writer) {
	fmt.Fprintf(w, "proven sequences %d to %d of the log %s: every decision and fill, signed by %s\n",
		p.Snapshot+1, p.To, p.Origin, p.Signer)
	fmt.Fprintf(w, "fills    %d, sha256 %s\n", p.Fills.Count, p.Fills.SHA256)
	fmt.Fprintf(w, "blotter  %d rows, sha256 %s\n", p.Blotter.Count, p.Blotter.SHA256)
	fmt.Fprintf(w, "report   %d records, sha256 %s\n", p.Report.Count, p.Report.SHA256)
	if p.Snapshot > 0 {
		fmt.Fprintf(w, "snapshot the state at sequence %d is attested by the signature, not replayed\n",
			p.Snapshot)
	}
}
