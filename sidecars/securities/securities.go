package securities

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// Stock is one security. It is tradable when it is enabled and not halted.
type Stock struct {
	Ticker      string
	CompanyName string
	Enabled     bool
	Halted      bool

	// These mark a change that does not set Enabled or Halted: an existing security keeps its value,
	// and a new one gets the value of the field.
	EnabledUnset, HaltedUnset bool
	// By is the operator of a change; nil: no operator's act.
	By *store.Act
}

// ErrStock reports an invalid security: a ticker that is not a control.NewTicker when trimmed and
// in capitals, or not a source.ValidName.
var ErrStock = errors.New("not a stock")

// Securities is the service. Any goroutine may call. Its methods Snapshot, Version and BumpEpoch
// are the table's.
type Securities struct{ *table }

// table is the source's table, under a name that other packages do not see.
type table = source.Table

// New returns the service. It does no I/O.
func New(o source.Options) *Securities {
	return &Securities{source.New(control.Security, source.Columns{
		Table: "stocks",
		Select: "select ticker, company_name, enabled, halted, version, enabled_version, " +
			"halted_version " +
			"from stocks",
		Key: "ticker",
		Upsert: `insert into stocks (ticker, company_name, enabled, halted, version, enabled_version,
			halted_version)
			values ($1, $2, $3, $4, $5, $6, $7)
			on conflict (ticker) do update set
			company_name = excluded.company_name,
			enabled = excluded.enabled, halted = excluded.halted, version = excluded.version,
			enabled_version = excluded.enabled_version, halted_version = excluded.halted_version`,
		Args: func(r *control.Record) []any {
			return []any{r.Ticker, r.Name, r.Enabled, r.Halted, r.Version, r.EnabledVersion, r.HaltedVersion}
		},
		Scan: func(row *store.Row) control.Record {
			return control.Record{
				Ticker: row.Text(0), Name: row.Text(1), Enabled: row.Bool(2), Halted: row.Bool(3),
				Version:        uint64(row.Int64(4)),
				EnabledVersion: uint64(row.Int64(5)), HaltedVersion: uint64(row.Int64(6)),
			}
		},
	}, o)}
}

func ofRecord(r control.Record) Stock {
	return Stock{Ticker: r.Ticker, CompanyName: r.Name, Enabled: r.Enabled, Halted: r.Halted}
}

// record checks a stock and returns its record, with the ticker in its stored form.
//
// It does not look at the database.
func (s Stock) record() (control.Record, error) {
	ticker := strings.Map(capital, strings.TrimSpace(s.Ticker))
	if !control.NewTicker(ticker) || !source.ValidName(s.CompanyName) {
		return control.Record{}, fmt.Errorf("securities: ticker=%.40q: %w", s.Ticker, ErrStock)
	}
	return control.Record{Ticker: ticker, Name: s.CompanyName,
		Enabled: s.Enabled, Halted: s.Halted}, nil
}

// capital turns an ASCII letter into its capital. Some other letters have ASCII capitals too, and
// must not turn into the ticker of another security.
func capital(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r - 'a' + 'A'
	}
	return r
}

// List returns every stock, by the bytes of the ticker.
func (s *Securities) List(ctx context.Context) ([]Stock, error) {
	records, err := s.table.List(ctx)
	all := make([]Stock, len(records))
	for i, r := range records {
		all[i] = ofRecord(r)
	}
	return all, err
}

// Get returns the stock with exactly this ticker; false when there is none.
//
// It does not turn ticker into its stored form.
func (s *Securities) Get(ctx context.Context, ticker string) (Stock, bool, error) {
	r, found, err := s.table.Get(ctx, ticker)
	return ofRecord(r), found, err
}

// Upsert makes a stock or changes the one of its ticker. It returns the stock as stored, the
// change's version, and whether it is new. ErrStock and control.ErrCapacity change nothing.
//
// The change is committed when it returns; it is published later.
func (s *Securities) Upsert(ctx context.Context,
	stock Stock) (stored Stock, version uint64, created bool, err error) {
	r, err := stock.record()
	if err != nil {
		return Stock{}, 0, false, err
	}
	r, created, err = s.table.Upsert(ctx, r,
		source.UnsetFlags{Enabled: stock.EnabledUnset, Halted: stock.HaltedUnset}, stock.By, r.Ticker)
	return ofRecord(r), r.Version, created, err
}

// Seed fills an empty table and returns how many stocks it wrote: none when the table has some, or
// when one is ErrStock.
func (s *Securities) Seed(ctx context.Context, all []Stock) (int, error) {
	records := make([]control.Record, len(all))
	for i, stock := range all {
		var err error
		if records[i], err = stock.record(); err != nil {
			return 0, err
		}
	}
	return s.table.Seed(ctx, records)
}
