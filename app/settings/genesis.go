package settings

import (
	"slices"
	"strings"

	"posttrade/matcher"
)

// defaultTickPx is the tick of the securities of a new journal: 0.001 currency units, in
// millionths.
const defaultTickPx = 1000

// genesisFrom builds the universe and the limits of a new journal from the rows of the seed files:
// all rows, or those that risk.seed.accounts and risk.seed.securities name. A named id that the
// file does not have is enabled.
//
// The result depends on the settings and the seed files alone. Errors: the seed files', and a
// usage error when there are more rows than the capacities have room for.
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
//
// The secrets are random: the key under which client order ids are hashed, and the one from which
// the transparency log makes its salts. So two journals from equal settings have different genesis
// records. It is called when there is no journal; of several members the cluster agrees on one
// result.
func NewGenesis(c *Config) (*matcher.Genesis, error) {
	g, err := genesisFrom(c)
	if err == nil {
		g.ClientKey, g.EvidenceKey = matcher.NewClientKey(), matcher.NewEvidenceKey()
	}
	return g, err
}

// Limits are the engine's bounds. The kinds of the settings have already refused values that do not
// fit an int64 x 1e6.
//
// Quantities are whole units, money is in millionths of a currency unit, ages in milliseconds, the
// collar in hundredths of a percent.
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

// genesisAccounts returns the accounts of a new journal, by id.
//
// The order is part of the genesis record, and so of its hash: it must not depend on the file's
// order.
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

// genesisSecurities returns the securities of a new journal, by ticker.
//
// The order is fixed for the same reason; it also gives each security its number in the engine.
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
