package httpapi

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"posttrade/journal/audit"
)

// Reporter makes the regulatory report; *audit.Reporter is one.
type Reporter interface {
	// Clip turns the bounds of a request, 0 for absent, into the bounds of Write.
	Clip(from, to uint64) (first, last uint64, err error)
	// Genesis is the seed: the genesis record's JSON text.
	Genesis() []byte
	// Write passes the report to chunk, in pieces of whole lines.
	Write(ctx context.Context, from, to uint64,
		chunk func(records []byte, count int) error) (audit.Total, error)
}

// The values of a report beside its body. The last two are trailers: they are known when all
// records are written.
const (
	headerReportFrom   = "X-Report-From-Seq"
	headerReportTo     = "X-Report-To-Seq"
	headerReportCount  = "X-Report-Count"
	headerReportSHA256 = "X-Report-Sha256"
)

// showReport is GET /regulatory/report. Before the first records an error has a status code of its
// own. After that an error can only end the connection, without the last chunk, so that the answer
// does not look whole.
//
// The range is clipped to the durable head before anything is written, and the headers say to what.
// HTTP/1.0 has no chunks, and is refused. Each report holds an engine of its own, so their number
// is bounded: 429.
func (x *exchange) showReport() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	if x.m.Report == nil {
		return problemRoute
	}
	var from, to uint64
	if p := x.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "fromSeq":
			from, ok = number(value, 1, 1<<63-1)
		case "toSeq":
			to, ok = number(value, 1, 1<<64-1) // beyond every head: it is clipped
		}
		return ok
	}); p.status != 0 {
		return p
	}
	first, last, err := x.m.Report.Clip(from, to)
	switch {
	case errors.Is(err, audit.ErrRange):
		return badParameter("fromSeq", "fromSeq is after toSeq, or after the last sequence that there is")
	case err != nil:
		return x.m.failed(err)
	case !x.ctx.Request.Header.IsHTTP11():
		return problemChunks
	}
	head := &x.ctx.Request.Header
	r := &streamedReport{
		streamedAnswer: streamedAnswer{what: "report", coding: acceptedCoding(head),
			trailers: reportTrailers},
		source: x.m.Report, from: first, to: last,
		lines: prefer(head, "Accept", contentJSON, contentNDJSON) == 1,
	}
	r.run, r.trailer = r.report, r.end
	kind := contentJSON
	if r.lines {
		kind = contentNDJSON
	}
	err = x.m.sendStream(&x.serviceRequest, &r.streamedAnswer, kind)
	if errors.Is(err, audit.ErrBusy) {
		return problemReports
	} else if err != nil {
		return x.m.failed(err)
	}
	header := &x.ctx.Response.Header
	header.Set("Vary", "Accept, Accept-Encoding")
	header.Set(headerReportFrom, itoa(first))
	header.Set(headerReportTo, itoa(last))
	return problem{}
}

var reportTrailers = []string{headerReportCount, headerReportSHA256}

// streamedReport writes one report.
//
// As JSON it is one object, whose members count and sha256 stand behind the records; as lines it is
// the records alone. The trailers have both numbers in either form. The checksum is over the lines
// in both forms.
type streamedReport struct {
	streamedAnswer
	source   Reporter
	from, to uint64
	lines    bool // one record per line instead of one object
	total    audit.Total

	// text is memory for one chunk as an array's elements; nil: none was written yet.
	text []byte
}

// report writes the report and, when it is whole, its end.
//
// An error leaves the object without its end: it is no JSON then.
func (p *streamedReport) report(ctx context.Context, out io.Writer) error {
	total, err := p.source.Write(ctx, p.from, p.to, func(records []byte, _ int) error {
		if err := p.open(out); err != nil {
			return err
		}
		if !p.lines {
			records = p.elements(records)
		}
		_, err := out.Write(records)
		return err
	})
	if err != nil {
		return err
	}
	p.total = total
	if err := p.open(out); err != nil || p.lines {
		return err
	}
	b := strconv.AppendUint([]byte(`],"count":`), total.Count, 10)
	b = append(b, `,"sha256":"`...)
	_, err = out.Write(append(hex.AppendEncode(b, total.SHA256[:]), `"}`...))
	return err
}

// end sets the trailers.
func (p *streamedReport) end(set func(name, value string)) {
	set(headerReportCount, itoa(p.total.Count))
	set(headerReportSHA256, hex.EncodeToString(p.total.SHA256[:]))
}

// open writes the text before the records, once.
//
// It is not called before the first records, or the end, are there, so that an early error still
// has a status code.
func (p *streamedReport) open(out io.Writer) error {
	if p.begun {
		return nil
	}
	p.begin()
	if p.lines {
		return nil
	}
	b := strconv.AppendUint([]byte(`{"fromSeq":`), p.from, 10)
	b = append(b, `,"toSeq":`...)
	b = strconv.AppendUint(b, p.to, 10)
	b = append(b, `,"seed":`...)
	b = append(b, bytes.TrimSpace(p.source.Genesis())...)
	b = append(b, `,"records":[`...)
	_, err := out.Write(b)
	return err
}

// elements turns lines of JSON into the next elements of an array.
//
// The result is valid until the next call.
func (p *streamedReport) elements(lines []byte) []byte {
	first := p.text == nil
	p.text = p.text[:0]
	for line := range bytes.Lines(lines) {
		if !first {
			p.text = append(p.text, ',')
		}
		first = false
		p.text = append(p.text, bytes.TrimSuffix(line, []byte{'\n'})...)
	}
	return p.text
}
