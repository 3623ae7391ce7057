package replay

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/app/latency"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/perf/orderflow"
)

// Command sends a flow. inProcess opens an engine in this process, for a replay without
// --url.
type Command struct {
	InProcess func(c *settings.Config) (open venues, stop func() error, err error)
}

// Flow are the own flags of posttrade replay.
type Flow struct {
	lobster, url, token, hgrm, write, prefix string
	accounts, securities, mid                string
	synthetic                                int64
	seed                                     uint64
	connections, batch                       int
	rate                                     float64
	check, progress, setsPrices              bool
}

// Declare adds the flags of the options to f.
func (o *Flow) Declare(f *flag.FlagSet) {
	f.StringVar(&o.lobster, "lobster", "", "replay the LOBSTER files in this `dir`")
	f.Int64Var(&o.synthetic, "synthetic", 0, "replay this many made-up `steps`")
	f.Uint64Var(&o.seed, "seed", 1, "`seed` of the made-up flow")
	f.StringVar(&o.url, "url", "",
		"order-matcher to send to; without it an engine in this process (`base`)")
	f.StringVar(&o.token, "token", "", "access token (`jwt`) to send with --url")
	f.IntVar(&o.connections, "connections", 0,
		"connections (`n`) to send over at once, 1..4096; 0 = 1 for a file, 64 (256 in process) for "+
			"--synthetic")
	f.IntVar(&o.batch, "batch", 1, "new orders sent in one request, up to `n` (1..1024)")
	f.Float64Var(&o.rate, "rate", 0, "`steps` a second; latency then counts from when a step was due")
	f.BoolVar(&o.check, "check", false,
		"with --lobster: compare the book after every event; exit 3 when it differs")
	f.BoolVar(&o.setsPrices, "set-prices", false,
		"first make the flow's first prices the market prices, for a server that has others")
	f.StringVar(&o.hgrm, "hgrm", "", "write the latency distribution to this `file`")
	f.StringVar(&o.write, "write", "", "write the flow to this `file` as CSV and send nothing")
	f.StringVar(&o.prefix, "prefix", "",
		"opens the client order ids of --lobster and --synthetic (default: differs every time)")
	f.StringVar(&o.accounts, "accounts", "1,2,3,4,5,6,7,8",
		"`ids` of the accounts of --synthetic, the first two those of --lobster")
	f.StringVar(&o.securities, "securities", "AAPL,MSFT,NVDA,AMZN",
		"`tickers` of --synthetic, the busiest first")
	f.StringVar(&o.mid, "mid", "100", "`price` around which --synthetic starts")
	f.BoolVar(&o.progress, "progress", false, "show the progress even when stderr is no terminal")
}

// Run checks the options, sends the flow, and reports. rest is what the command line has beside
// flags: the flow's file.
func (r Command) Run(cfg *settings.Config, o *Flow, rest []string,
	stdout, stderr io.Writer) error {
	if err := o.valid(rest); err != nil {
		return err
	}
	if o.prefix == "" {
		o.prefix = "r" + strconv.FormatInt(time.Now().UnixMilli(), 36) + "-"
	}
	return r.replay(cfg, o, rest, stdout, stderr)
}

func (o *Flow) valid(rest []string) error {
	flows := len(rest)
	for _, given := range []bool{o.lobster != "", o.synthetic != 0} {
		if given {
			flows++
		}
	}
	switch {
	case flows != 1:
		return settings.Usagef("replay needs one of a file, --lobster and --synthetic")
	case o.synthetic < 0:
		return settings.Usagef("--synthetic: %d is not above 0", o.synthetic)
	case o.connections < 0 || o.connections > 4096:
		return settings.Usagef("--connections: %d is not 0..4096", o.connections)
	case o.batch < 1 || o.batch > 1024:
		return settings.Usagef("--batch: %d is not 1..1024", o.batch)
	case o.rate < 0 || o.rate != o.rate || o.rate > 1e9:
		return settings.Usagef("--rate: %v is not 0..1e9", o.rate)
	case o.check && o.lobster == "":
		return settings.Usagef("--check goes with --lobster")
	case o.check && (o.connections > 1 || o.batch != 1):
		return settings.Usagef("--check needs --connections=1 and --batch=1")
	case len(o.prefix) > 32:
		return settings.Usagef("--prefix: longer than 32 characters")
	}
	if ids, err := settings.ParseAccountIDs(o.accounts); err != nil || len(ids.([]uint32)) < 2 {
		return settings.Usagef("--accounts: %s is not two or more account ids",
			settings.Printable(o.accounts))
	}
	if list, err := settings.ParseTickers(o.securities); err != nil || len(list.([]string)) == 0 {
		return settings.Usagef("--securities: %s is not a list of tickers",
			settings.Printable(o.securities))
	}
	if px, err := orderflow.ParsePrice(o.mid); err != nil || px < 10*matcher.PriceScale ||
		px%syntheticTickPx != 0 {
		return settings.Usagef("--mid: %s is not a price of 10 or more in steps of 0.01",
			settings.Printable(o.mid))
	}
	o.chooseConnections()
	return nil
}

// syntheticTickPx is the distance between two prices of the synthetic flow: 0.01.
const syntheticTickPx = matcher.PriceScale / 100

// chooseConnections uses one connection for a file, which keeps its order. A synthetic flow gets
// enough callers that a group commit has several commands to group.
func (o *Flow) chooseConnections() {
	switch {
	case o.connections > 0:
	case o.synthetic == 0:
		o.connections = 1
	case o.url != "":
		o.connections = 64
	default:
		o.connections = 256
	}
}

func (o *Flow) accountIDs() []uint32 {
	ids, _ := settings.ParseAccountIDs(o.accounts) // valid has checked them
	return ids.([]uint32)
}

// replay opens the flow and the venue, sends, and reports.
func (r Command) replay(cfg *settings.Config, o *Flow, rest []string,
	stdout, stderr io.Writer) (err error) {
	flow, err := o.open(rest)
	if err != nil {
		return err
	}
	defer flow.close()
	if o.write != "" {
		return writeFlow(o.write, flow, stdout)
	}
	open, stop, err := r.venues(cfg, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if o.setsPrices {
		if err := o.setPrices(open, rest); err != nil {
			return err
		}
	}
	d, err := newDriver(open, o.connections, o.batch, o.rate)
	if err != nil {
		return err
	}
	defer d.close()

	stopProgress := showProgress(stderr, o.progress, &d.done, flow.total)
	begin := time.Now()
	var check *lobsterCheck
	if o.check {
		check = &lobsterCheck{flow: flow.lobster, worker: d.workers[0]}
		err = check.run()
	} else {
		err = d.run(flow)
	}
	elapsed := time.Since(begin)
	stopProgress()
	if err != nil {
		return err
	}
	if err := report(stdout, o, flow, d, elapsed); err != nil {
		return err
	}
	if check != nil {
		return check.verdict(stdout)
	}
	t := d.totals()
	return o.otherPrices(t.Reasons, int64(t.Steps))
}

func (r Command) venues(cfg *settings.Config,
	o *Flow) (venues, func() error, error) {
	if o.url == "" {
		if r.InProcess == nil {
			return nil, nil, settings.Usagef("replay needs --url")
		}
		return r.InProcess(cfg)
	}
	open, err := httpVenues(o.url, o.token)
	return open, func() error { return nil }, err
}

// openFlow is a flow and its open files.
type openFlow struct {
	orderflow.Source
	name    string
	total   int64 // steps, 0 when the number is not known beforehand
	lobster *orderflow.Lobster
	files   []*os.File
}

func (f *openFlow) close() {
	for _, file := range f.files {
		file.Close()
	}
}

func (f *openFlow) file(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		f.close()
		return nil, fmt.Errorf("replay: %s: %w", path, settings.Cause(err))
	}
	f.files = append(f.files, file)
	return file, nil
}

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
		return &openFlow{Source: s, total: o.synthetic, name: fmt.Sprintf("synthetic seed=%d", o.seed)},
			err
	}
	f := &openFlow{name: rest[0]}
	file, err := f.file(rest[0])
	if err != nil {
		return nil, err
	}
	f.Source = orderflow.NewReader(file)
	return f, nil
}

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
	f.Source = &lobsterSteps{lobster: f.lobster}
	return f, nil
}

// lobsterSteps is a LOBSTER translation as one stream of steps.
type lobsterSteps struct {
	lobster *orderflow.Lobster
	event   *orderflow.Event
	next    int
}

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

// writeFlow is --write.
func writeFlow(path string, flow orderflow.Source, stdout io.Writer) (err error) {
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

// report prints what was sent, the rate, and the times.
func report(stdout io.Writer, o *Flow, flow *openFlow, d *driver,
	elapsed time.Duration) error {
	t := d.totals()
	fmt.Fprintf(stdout, "%s: %d steps in %s, %.0f steps/s, %d connections, batch %d",
		flow.name, t.Steps, latency.Short(elapsed), float64(t.Steps)/elapsed.Seconds(), o.connections,
		o.batch)
	if o.rate > 0 {
		fmt.Fprintf(stdout, ", open loop at %.0f/s", o.rate)
	}
	fmt.Fprintf(stdout, "\naccepted %d, refused %d, gone %d, not sent %d, retried %d\n",
		t.Accepted, t.Refused, t.Gone, t.Untracked, t.Retried)
	if len(t.Reasons) > 0 {
		var words []string
		for _, reason := range slices.Sorted(maps.Keys(t.Reasons)) {
			words = append(words, fmt.Sprintf("%s %d", reason, t.Reasons[reason]))
		}
		fmt.Fprintf(stdout, "refusals: %s\n", strings.Join(words, ", "))
	}
	names, rows := d.latencies()
	if err := latency.WriteTable(stdout, names, rows); err != nil {
		return err
	}
	if o.hgrm == "" {
		return nil
	}
	file, err := os.Create(o.hgrm)
	if err != nil {
		return fmt.Errorf("replay: --hgrm %s: %w", o.hgrm, settings.Cause(err))
	}
	return errors.Join(rows[len(rows)-1].WriteHgrm(file), file.Close())
}
