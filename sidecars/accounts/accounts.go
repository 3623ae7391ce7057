package accounts

import (
	"context"
	"errors"
	"fmt"

	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// Account is one account.
//
// EnabledUnset and By are set by the caller of Upsert only; List and Get leave them zero.
type Account struct {
	// ID is above 0, the accountId of orders and trades.
	ID          uint32
	DisplayName string
	Enabled     bool

	// EnabledUnset marks a change that does not set Enabled: an existing account keeps its value, and
	// a new one gets the value of Enabled.
	EnabledUnset bool
	// By is the operator of a change; nil: no operator's act.
	By *store.Act
}

// ErrAccount reports an invalid account: no id, or not a source.ValidName.
var ErrAccount = errors.New("not an account")

// Accounts is the service. Any goroutine may call. Its methods Snapshot, Version and BumpEpoch are
// the table's.
//
// The methods that take or return a control.Record are hidden by those below.
type Accounts struct{ *table }

// table is the source's table, under a name that other packages do not see.
type table = source.Table

// New returns the service. It does no I/O.
func New(o source.Options) *Accounts {
	return &Accounts{source.New(control.Account, source.Columns{
		Table:  "accounts",
		Select: "select id, display_name, enabled, version, enabled_version from accounts",
		Key:    "id",
		Upsert: `insert into accounts (id, display_name, enabled, version, enabled_version) values ($1,
			$2, $3, $4, $5)
			on conflict (id) do update set display_name = excluded.display_name, enabled = excluded.enabled,
			version = excluded.version, enabled_version = excluded.enabled_version`,
		Args: func(r *control.Record) []any {
			return []any{r.ID, r.Name, r.Enabled, r.Version, r.EnabledVersion}
		},
		Scan: func(row *store.Row) control.Record {
			return control.Record{
				ID: uint32(row.Int64(0)), Name: row.Text(1), Enabled: row.Bool(2),
				Version: uint64(row.Int64(3)), EnabledVersion: uint64(row.Int64(4)),
			}
		},
	}, o)}
}

func ofRecord(r control.Record) Account {
	return Account{ID: r.ID, DisplayName: r.Name, Enabled: r.Enabled}
}

// record checks an account and returns its record.
//
// It does not look at the database.
func (a Account) record() (control.Record, error) {
	if a.ID == 0 || !source.ValidName(a.DisplayName) {
		return control.Record{}, fmt.Errorf("accounts: id=%d: %w", a.ID, ErrAccount)
	}
	return control.Record{ID: a.ID, Name: a.DisplayName, Enabled: a.Enabled}, nil
}

// List returns every account, by id.
//
// The list is whole and of one moment; on an error it is empty.
func (s *Accounts) List(ctx context.Context) ([]Account, error) {
	records, err := s.table.List(ctx)
	all := make([]Account, len(records))
	for i, r := range records {
		all[i] = ofRecord(r)
	}
	return all, err
}

// Get returns an account; false when there is none.
func (s *Accounts) Get(ctx context.Context, id uint32) (Account, bool, error) {
	r, found, err := s.table.Get(ctx, id)
	return ofRecord(r), found, err
}

// Upsert makes an account or changes the one of its id, and returns the change's
// version. ErrAccount and control.ErrCapacity change nothing.
//
// The change is committed when it returns; it is published later. A call with the values that the
// account has already is a change as well and gets a version.
func (s *Accounts) Upsert(ctx context.Context, a Account) (version uint64, err error) {
	r, err := a.record()
	if err != nil {
		return 0, err
	}
	stored, _, err := s.table.Upsert(ctx, r, source.UnsetFlags{Enabled: a.EnabledUnset}, a.By, r.ID)
	return stored.Version, err
}

// Seed fills an empty table and returns how many accounts it wrote: none when the table has some,
// or when one is ErrAccount.
func (s *Accounts) Seed(ctx context.Context, all []Account) (int, error) {
	records := make([]control.Record, len(all))
	for i, a := range all {
		var err error
		if records[i], err = a.record(); err != nil {
			return 0, err
		}
	}
	return s.table.Seed(ctx, records)
}
