package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"posttrade/app/settings"
	"posttrade/perf/orderflow"
)

// openFlow is a flow and its open files. The steps of a flow are read once; a second look opens it
// again.
type openFlow struct {
	orderflow.StepReader
	name string
	// total is the number of steps, 0 when it is not known beforehand.
	total int64
	// lobster is the translation behind the steps, nil for other flows.
	lobster *orderflow.Lobster
	files   []*os.File
}

// close closes the files, which were only read, so that an error of it has no meaning.
func (f *openFlow) close() {
	for _, file := range f.files {
		file.Close()
	}
}

// file opens one of the flow's files. After an error everything that the flow had opened is closed.
func (f *openFlow) file(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		f.close()
		return nil, fmt.Errorf("replay: %s: %w", path, settings.Cause(err))
	}
	f.files = append(f.files, file)
	return file, nil
}

// open opens the flow that the flags name, from its beginning: LOBSTER files, a made-up flow, or
// the CSV file of the command line.
func (o *Flow) open(rest []string) (*openFlow, error) {
	switch {
	case o.lobster != "":
		return o.openLobster()
	case o.synthetic > 0:
		list, _ := settings.ParseTickers(o.securities) // valid has checked them
		mid, _ := orderflow.ParsePrice(o.mid)
		s, err := orderflow.NewSynthetic(orderflow.SyntheticOptions{
			Seed: o.seed, Steps: o.synthetic, Accounts: o.accountIDs(), Securities: list.([]string),
			Prefix: o.prefix,
			MidPx:  mid, TickPx: syntheticTickPx,
		})
		name := fmt.Sprintf("synthetic seed=%d", o.seed)
		return &openFlow{StepReader: s, total: o.synthetic, name: name}, err
	}
	f := &openFlow{name: rest[0]}
	file, err := f.file(rest[0])
	if err != nil {
		return nil, err
	}
	f.StepReader = orderflow.NewReader(file)
	return f, nil
}

// openLobster opens the one pair of LOBSTER files of the folder. The first account rests all
// orders, the second one sends the executions.
func (o *Flow) openLobster() (*openFlow, error) {
	ticker, messages, book, err := orderflow.FindLobster(os.DirFS(o.lobster))
	if err != nil {
		return nil, fmt.Errorf("replay: %s: %w", o.lobster, err)
	}
	f := &openFlow{name: messages}
	messageFile, err := f.file(filepath.Join(o.lobster, messages))
	if err != nil {
		return nil, err
	}
	bookFile, err := f.file(filepath.Join(o.lobster, book))
	if err != nil {
		return nil, err
	}
	ids := o.accountIDs()
	f.lobster, err = orderflow.NewLobster(messageFile, bookFile,
		orderflow.LobsterOptions{Security: ticker, Maker: ids[0], Taker: ids[1], Prefix: o.prefix})
	if err != nil {
		f.close()
		return nil, err
	}
	f.StepReader = &lobsterSteps{lobster: f.lobster}
	return f, nil
}

// lobsterSteps is a LOBSTER translation as one stream of steps.
//
// The borders of the events are lost: it is for replays that do not compare books.
type lobsterSteps struct {
	lobster *orderflow.Lobster
	event   *orderflow.Event
	next    int
}

// Next skips events without steps. The step is a copy: the event is overwritten by the next one.
func (s *lobsterSteps) Next(step *orderflow.Step) (err error) {
	for s.event == nil || s.next == len(s.event.Steps) {
		if s.event, err = s.lobster.Next(); err != nil {
			return err
		}
		s.next = 0
	}
	*step = s.event.Steps[s.next]
	s.next++
	return nil
}

// writeFlow is --write: it writes all steps as CSV and sends none. A file that exists is an error,
// not overwritten. After an error the file stays as far as it was written; Flush at the end reports
// a disk that is full.
func writeFlow(path string, flow orderflow.StepReader, stdout io.Writer) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("replay: --write %s: %w", path, settings.Cause(err))
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := orderflow.NewWriter(file)
	var step orderflow.Step
	n := 0
	for ; ; n++ {
		if err := flow.Next(&step); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if err := w.Write(&step); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "%d steps written to %s\n", n, path)
	return w.Flush()
}
