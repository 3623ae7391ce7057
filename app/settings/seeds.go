package settings

import (
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"posttrade/matcher"
	"posttrade/sidecars/control"
)

// seedFiles are the built-in universe: the accounts and securities of this repository.
//
//go:embed seeds/accounts.csv seeds/securities.csv
var seedFiles embed.FS

// seedAccount is a row of the accounts file: id,displayName,enabled.
type seedAccount struct {
	ID          uint32
	DisplayName string
	Enabled     bool
}

// seedSecurity is a row of the securities file: ticker,companyName,enabled,halted.
type seedSecurity struct {
	Ticker      string
	CompanyName string
	Enabled     bool
	Halted      bool
}

// defaultTickPx is the tick of a security that has no other: 0.001.
const defaultTickPx = 1000

// genesisFrom builds the universe and the limits of a new journal from the rows of the seed files:
// all rows, or those that risk.seed.accounts and risk.seed.securities name. A named id that the
// file does not have is enabled.
func genesisFrom(c *Config) (*matcher.Genesis, error) {
	accounts, err := c.genesisAccounts()
	if err != nil {
		return nil, err
	}
	securities, err := c.genesisSecurities()
	if err != nil {
		return nil, err
	}
	g := &matcher.Genesis{Format: matcher.GenesisFormat, TickPx: defaultTickPx, Limits: c.Limits()}
	for _, a := range accounts {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: a.ID, Enabled: a.Enabled})
	}
	for _, s := range securities {
		g.Securities = append(g.Securities,
			matcher.GenesisSecurity{Ticker: s.Ticker, Enabled: s.Enabled, Halted: s.Halted})
	}
	if n, room := len(g.Accounts), g.Limits.MaxAccounts; n > room {
		return nil, Usagef("risk.max-accounts: %d is less than the %d seed accounts", room, n)
	}
	if n, room := len(g.Securities), g.Limits.MaxSecurities; n > room {
		return nil, Usagef("risk.max-securities: %d is less than the %d seed securities", room, n)
	}
	return g, nil
}

// NewGenesis is the record of a new journal: the values of the settings, and secrets of its own.
func NewGenesis(c *Config) (*matcher.Genesis, error) {
	g, err := genesisFrom(c)
	if err == nil {
		g.ClientKey, g.EvidenceKey = matcher.NewClientKey(), matcher.NewEvidenceKey()
	}
	return g, err
}

// Limits are the engine's bounds. The kinds of the settings have already refused values that do not
// fit an int64 x 1e6.
func (c *Config) Limits() matcher.Limits {
	return matcher.Limits{
		MaxOrderQty:              c.Int64("risk.max-order-quantity"),
		MaxOrderNotional:         c.Decimal("risk.max-order-notional"),
		MaxPositionQty:           c.Int64("risk.max-position-quantity"),
		MaxConcentrationNotional: c.Decimal("risk.max-concentration-notional"),
		CreditLimit:              c.Decimal("risk.credit-limit"),
		PriceMaxAgeMillis:        c.Int64("risk.price.max-age-ms"),
		PriceCollarBps:           c.Int64("risk.price.collar-bps"),
		IdempotencyCapacity:      c.Int("risk.idempotency.capacity"),
		MaxAccounts:              c.Int("risk.max-accounts"),
		MaxSecurities:            c.Int("risk.max-securities"),
		MaxContracts:             c.Int("risk.max-contracts"),
		MaxOpenOrders:            c.Int("risk.max-open-orders"),
		RetainedOrders:           c.Int("risk.retained-orders"),
	}
}

// SeedAccounts are the rows of the accounts file.
func (c *Config) SeedAccounts() ([]seedAccount, error) {
	return readSeeds(c, "seed.accounts", "seeds/accounts.csv", parseAccounts)
}

// genesisAccounts returns the accounts of a new journal, by id.
func (c *Config) genesisAccounts() ([]seedAccount, error) {
	rows, err := c.SeedAccounts()
	if err != nil {
		return nil, err
	}
	if ids := c.AccountIDs("risk.seed.accounts"); ids != nil {
		known := rows
		rows = nil
		for _, id := range ids {
			row := seedAccount{ID: id, Enabled: true}
			if at := slices.IndexFunc(known, func(a seedAccount) bool { return a.ID == id }); at >= 0 {
				row = known[at]
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b seedAccount) int { return int(int64(a.ID) - int64(b.ID)) })
	return rows, nil
}

// SeedSecurities are the rows of the securities file.
func (c *Config) SeedSecurities() ([]seedSecurity, error) {
	return readSeeds(c, "seed.securities", "seeds/securities.csv", parseSecurities)
}

// genesisSecurities returns the securities of a new journal, by ticker.
func (c *Config) genesisSecurities() ([]seedSecurity, error) {
	rows, err := c.SeedSecurities()
	if err != nil {
		return nil, err
	}
	if names := c.Tickers("risk.seed.securities"); names != nil {
		known := rows
		rows = nil
		for _, ticker := range names {
			row := seedSecurity{Ticker: ticker, Enabled: true}
			if at := slices.IndexFunc(known,
				func(s seedSecurity) bool { return s.Ticker == ticker }); at >= 0 {
				row = known[at]
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b seedSecurity) int { return strings.Compare(a.Ticker, b.Ticker) })
	return rows, nil
}

// readSeeds reads the file that the setting names, or the built-in one.
func readSeeds[T any](c *Config, setting, builtIn string,
	parse func(io.Reader) ([]T, error)) ([]T, error) {
	name := c.String(setting)
	var file io.ReadCloser
	var err error
	if name == "" {
		name = builtIn
		file, err = seedFiles.Open(builtIn)
	} else {
		file, err = os.Open(name)
	}
	if err != nil {
		return nil, Usagef("%s: %s: %s", setting, name, Cause(err))
	}
	defer file.Close()
	rows, err := parse(file)
	if err != nil {
		return nil, Usagef("%s: %s: %s", setting, name, err)
	}
	return rows, nil
}

// maxSeedRows bounds a seed file; the engine's tables are smaller.
const maxSeedRows = 1 << 22

// parseAccounts reads id,displayName,enabled. Errors name the line.
func parseAccounts(r io.Reader) ([]seedAccount, error) {
	seen := map[uint32]int{}
	var rows []seedAccount
	err := eachRow(r, []string{"id", "displayName", "enabled"}, func(line int, cell []string) error {
		id, err := strconv.ParseUint(cell[0], 10, 32)
		if err != nil || id == 0 {
			return fmt.Errorf("line %d: id %s is not 1..4294967295", line, Printable(cell[0]))
		}
		if first, twice := seen[uint32(id)]; twice {
			return fmt.Errorf("line %d: account %d is on line %d already", line, id, first)
		}
		seen[uint32(id)] = line
		name, err := parseName(line, "displayName", cell[1])
		if err != nil {
			return err
		}
		enabled, err := parseFlag(line, "enabled", cell[2])
		if err != nil {
			return err
		}
		rows = append(rows, seedAccount{ID: uint32(id), DisplayName: name, Enabled: enabled})
		return nil
	})
	return rows, err
}

// parseSecurities reads ticker,companyName,enabled,halted. Errors name the line.
func parseSecurities(r io.Reader) ([]seedSecurity, error) {
	seen := map[string]int{}
	var rows []seedSecurity
	err := eachRow(r, []string{"ticker", "companyName", "enabled", "halted"},
		func(line int, cell []string) error {
			ticker := cell[0]
			if !control.ValidTicker(ticker) {
				return fmt.Errorf("line %d: ticker %s does not match [A-Z0-9.-]{1,16}", line, Printable(ticker))
			}
			if first, twice := seen[ticker]; twice {
				return fmt.Errorf("line %d: ticker %s is on line %d already", line, ticker, first)
			}
			seen[ticker] = line
			name, err := parseName(line, "companyName", cell[1])
			if err != nil {
				return err
			}
			enabled, err := parseFlag(line, "enabled", cell[2])
			if err != nil {
				return err
			}
			halted, err := parseFlag(line, "halted", cell[3])
			if err != nil {
				return err
			}
			rows = append(rows, seedSecurity{Ticker: ticker, CompanyName: name, Enabled: enabled,
				Halted: halted})
			return nil
		})
	return rows, err
}

// eachRow reads a CSV file and hands each row after the first to use. The first line must be
// exactly header. A file without rows is refused.
func eachRow(r io.Reader, header []string, use func(line int, cell []string) error) error {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = len(header)
	rows.ReuseRecord = true
	n := 0
	for ; n <= maxSeedRows; n++ {
		cell, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return csvError(err)
		}
		line, _ := rows.FieldPos(0)
		if n == 0 {
			if !slices.Equal(cell, header) {
				return fmt.Errorf("line %d: want the header %s", line, strings.Join(header, ","))
			}
			continue
		}
		if err := use(line, cell); err != nil {
			return err
		}
	}
	switch {
	case n == 0:
		return fmt.Errorf("line 1: want the header %s", strings.Join(header, ","))
	case n == 1:
		return errors.New("line 1: a header and no rows")
	case n > maxSeedRows:
		return fmt.Errorf("more than %d rows", maxSeedRows)
	}
	return nil
}

// csvError turns an error of package csv into one short line.
func csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %w", parse.Line, parse.Err)
	}
	return err
}

func parseName(line int, column, s string) (string, error) {
	name := strings.TrimSpace(s)
	if name == "" || len(name) > 200 ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\uFFFD' }) {
		return "", fmt.Errorf("line %d: %s %s is not 1 to 200 printable bytes", line, column,
			Printable(s))
	}
	return name, nil
}

func parseFlag(line int, column, s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("line %d: %s %s is not true or false", line, column, Printable(s))
}
