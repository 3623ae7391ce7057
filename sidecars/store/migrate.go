package store

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"time"
)

// migrationFiles hold one folder per dialect, with files NNNN_name.sql. A released file is never
// edited: a change is a new file.
//
//go:embed migrations/*/*.sql
var migrationFiles embed.FS

// migration is one step of the schema.
//
// The two dialects have migrations of their own under the same numbers and names. A checksum is one
// of a dialect's text.
type migration struct {
	// version is the NNNN of the file name. Numbers need not be consecutive; they decide the order.
	version  int64
	name     string // the file name without .sql
	sql      string
	checksum string // hex SHA-256 of sql
	// makes are the tables and views that sql creates. No migration drops one.
	makes []string
}

var (
	migrationName = regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)
	madeByScript  = regexp.MustCompile(`(?m)^create (?:table|view) (\w+)`)
)

// plan reads a dialect's migrations in the order of their versions.
//
// Its errors are those of a build with a misnamed file; no database is involved.
func plan(files fs.FS, d Dialect) ([]migration, error) {
	folder := "migrations/" + d.String()
	entries, err := fs.ReadDir(files, folder) // sorted by name, and so by version
	if err != nil {
		return nil, fmt.Errorf("store: read %s: %w", folder, err)
	}
	var all []migration
	for _, e := range entries {
		match := migrationName.FindStringSubmatch(e.Name())
		if match == nil {
			return nil, fmt.Errorf("store: migration %s/%s is not named NNNN_name.sql", folder, e.Name())
		}
		text, err := fs.ReadFile(files, path.Join(folder, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("store: read migration %s: %w", e.Name(), err)
		}
		version, _ := strconv.ParseInt(match[1], 10, 64)
		if n := len(all) - 1; n >= 0 && all[n].version == version {
			return nil, fmt.Errorf("store: migrations %s and %s have one number", all[n].name, e.Name())
		}
		sum := sha256.Sum256(text)
		m := migration{version: version, name: e.Name()[:len(e.Name())-len(".sql")], sql: string(text),
			checksum: hex.EncodeToString(sum[:])}
		for _, match := range madeByScript.FindAllStringSubmatch(m.sql, -1) {
			m.makes = append(m.makes, match[1])
		}
		all = append(all, m)
	}
	return all, nil
}

// migrationLock is the key of PostgreSQL's advisory lock: the bytes of "migrate" as a number.
//
// The lock is of the database, not of a schema: installations in two schemas of one database wait
// for each other while they migrate.
const migrationLock int64 = 0x6d696772617465

// migrate applies the missing migrations, one transaction each. Processes that start at the same
// time take turns: each looks for missing migrations again once it holds the lock.
//
// One transaction each means that a process that ends in the middle leaves a schema of whole
// migrations, and the next start goes on from there. A migration takes as long as its tables need;
// State names it meanwhile.
func (d *DB) migrate(ctx context.Context) error {
	e, plan := d.engine, d.plan
	for {
		// The first look takes no lock, so that a start with nothing to apply needs none.
		missing := -1
		err := e.read(ctx, func(t *Tx) (err error) { missing, err = nextMigration(t, plan); return err })
		if err != nil {
			return fmt.Errorf("store: look at the schema: %w", err)
		}
		if missing < 0 {
			return nil
		}
		_ = d.note(ctx, writing, fmt.Errorf("store: %w: the schema is being migrated: %s",
			ErrUnavailable, plan[missing].name))
		err = e.write(ctx, func(t *Tx) (err error) { missing, err = applyNext(t, plan); return err })
		if err != nil {
			return err
		}
		if missing >= 0 {
			d.log.Info("database migrated", "migration", plan[missing].name)
		}
	}
}

// nextMigration compares the applied migrations with the plan and returns the index of the first
// missing one, -1 when none is missing.
//
// ErrMigration stands for an applied migration that this build does not know (the database is
// newer), has under another name, or has with another text, and for a table or view of an applied
// migration that is missing. The comparison covers every applied migration, not only the last.
func nextMigration(t *Tx, plan []migration) (int, error) {
	there, err := relations(t)
	if err != nil {
		return 0, err
	}
	if !there["schema_migrations"] {
		return 0, nil
	}
	known := make(map[int64]*migration, len(plan))
	for i := range plan {
		known[plan[i].version] = &plan[i]
	}
	applied := make(map[int64]bool, len(plan))
	err = t.Query("select version, name, checksum from schema_migrations order by version",
		func(r *Row) error {
			version, name, checksum := r.Int64(0), r.Text(1), r.Text(2)
			switch m := known[version]; {
			case m == nil:
				return refused("the database has %s, which this build does not know", name)
			case m.name != name:
				return refused("the database has %s where this build has %s", name, m.name)
			case m.checksum != checksum:
				return refused("%s is not what was applied: checksum %.12s, applied %.12s", name,
					m.checksum, checksum)
			}
			for _, relation := range known[version].makes {
				if !there[relation] {
					return refused("%s is missing, which %s has made", relation, name)
				}
			}
			applied[version] = true
			return nil
		})
	if err != nil {
		return 0, err
	}
	for i := range plan {
		if !applied[plan[i].version] {
			return i, nil
		}
	}
	return -1, nil
}

// relations are the names of the tables and views that are there.
func relations(t *Tx) (there map[string]bool, err error) {
	catalog := "select name from sqlite_schema where type in ('table', 'view')"
	if t.dialect == Postgres {
		// Not to_regclass: inside a transaction it answers from a cache that may be older than the lock
		// for which the transaction waited.
		catalog = "select relname::text from pg_catalog.pg_class where relkind in ('r', 'v') and " +
			"relnamespace = (select oid from pg_catalog.pg_namespace where nspname = current_schema())"
	}
	there = map[string]bool{}
	return there, t.Query(catalog, func(r *Row) error { there[r.Text(0)] = true; return nil })
}

// applyNext applies the first missing migration and returns its index, or -1 when another process
// has applied it meanwhile. The transaction holds the lock, so one process at a time migrates.
//
// An error of the script that is not ErrUnavailable, such as a table that exists already, becomes
// ErrMigration: a retry would fail the same way.
func applyNext(t *Tx, plan []migration) (int, error) {
	if err := t.Unlimited(); err != nil {
		return 0, err
	}
	if t.dialect == Postgres {
		// SQLite's BEGIN IMMEDIATE already is such a lock.
		err := t.Query("select pg_advisory_xact_lock($1)", func(*Row) error { return nil }, migrationLock)
		if errors.Is(err, ErrLocked) {
			err = fmt.Errorf("store: the schema is being migrated by another process: %w", err)
		}
		if err != nil {
			return 0, err
		}
	}
	i, err := nextMigration(t, plan)
	if err != nil || i < 0 {
		return i, err
	}
	m := plan[i]
	_, err = t.Exec(
		"create table if not exists schema_migrations (version bigint primary key not null, " +
			"name text not null, checksum text not null, applied_at bigint not null)")
	if err != nil {
		return 0, err
	}
	if err := t.conn.script(t.ctx, m.sql); err != nil {
		if !errors.Is(err, ErrUnavailable) { // a database that cannot hold the schema needs a person
			err = refused("%s: %w", m.name, err)
		}
		return 0, t.fail("migrate", m.name, err)
	}
	_, err = t.Exec(
		"insert into schema_migrations (version, name, checksum, applied_at) values ($1, $2, $3, $4)",
		m.version, m.name, m.checksum, time.Now().UnixMilli())
	return i, err
}

// refused returns the error of a schema that cannot be used.
//
// It is ErrUnavailable as well, so that callers in a running process wait and report instead of
// ending: an operator may repair the database meanwhile. A start is refused.
func refused(format string, args ...any) error {
	return fmt.Errorf("store: %w: %w: "+format,
		append([]any{ErrUnavailable, ErrMigration}, args...)...)
}
