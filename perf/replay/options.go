package replay

import (
	"flag"

	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/perf/orderflow"
)

// Flow are the own flags of posttrade replay. Declare sets the defaults; Run checks them. A Flow is
// for one run, because Run fills in what was left open.
type Flow struct {
	// lobster is a folder, hgrm and write are files, url is the order-matcher's base; "" for none.
	// prefix opens the client order ids of a flow that is made or translated here.
	lobster, url, token, hgrm, write, prefix string
	// accounts, securities and mid are lists and a price as text, as the flags have them.
	accounts, securities, mid string
	// synthetic is the number of steps to make; 0: the flow comes from files.
	synthetic int64
	seed      uint64
	// connections is how many requests may be under way, 0 to choose (see chooseConnections); batch is
	// the most new orders in one request.
	connections, batch int
	// rate is steps a second of an open loop; 0: each connection sends as fast as answers come.
	rate                        float64
	check, progress, setsPrices bool
}

// Declare adds the flags of the options to f.
//
// The texts are those of the command's help.
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

// valid refuses flags that are out of range or do not go together, each by its name, before
// anything is opened or sent. It chooses the number of connections.
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

// syntheticTickPx is the distance between two prices of the synthetic flow: 0.01, in matcher's
// fixed point.
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

// accountIDs are the accounts of the flow, of which valid has made sure that there are two or more.
func (o *Flow) accountIDs() []uint32 {
	ids, _ := settings.ParseAccountIDs(o.accounts) // valid has checked them
	return ids.([]uint32)
}
