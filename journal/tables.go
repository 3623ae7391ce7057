package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkTables reads of every table what the store itself reads of it in the second after it was
// opened for writing, or at the first read of the table: footer, directory, properties and index,
// each with its checksum. It does not read data: a damaged old block fails only the read that meets
// it. Cost: some reads a table, of about a thousandth of its bytes.
func checkTables(db *blockStore, fs vfs.FS, store string, o *pebble.Options) error {
	levels, err := tablesOf(db)
	if err != nil {
		return fmt.Errorf("journal: open store=%s: %w", store, err)
	}
	options := o.MakeReaderOptions()
	for _, tables := range levels {
		for i := range tables {
			name := fs.PathJoin(store, tableName(uint64(tables[i].BackingSSTNum)))
			err := checkTable(fs, name, options)
			if notExist(err) {
				return fmt.Errorf("journal: read file=%s: %w: %w", name, err, ErrCorrupt)
			}
			if err != nil { // the reader does not know the number of its table
				text := strings.ReplaceAll(err.Error(), "000000:", fs.PathBase(name)+":")
				return fmt.Errorf("journal: read file=%s: %w", name, &storeError{text, err, spoiled(err)})
			}
		}
	}
	return nil
}

// checkTable reads one table's frame: what the store needs to find its blocks.
func checkTable(fs vfs.FS, name string, o sstable.ReaderOptions) (err error) {
	f, err := fs.Open(name)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return guard(func() (err error) {
		// A reader that could not be made has closed the file.
		r, err := sstable.NewReader(context.Background(), readable, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		if _, err := r.ReadPropertiesBlock(context.Background(), nil); err != nil {
			return err
		}
		_, err = r.Layout()
		return err
	})
}

// tablesOf is the store's list of tables, by level.
func tablesOf(db *blockStore) (levels [][]pebble.SSTableInfo, err error) {
	err = guard(func() (err error) {
		levels, err = db.SSTables()
		return err
	})
	return levels, err
}

// explained adds what the store's folder shows to the refusal of a history that is too short, or a
// different one: tables that the store's list of files does not name. The store accepts a list that
// was cut as a whole, older list. Other errors come back as they are.
func explained(err error, db *blockStore, fs vfs.FS, store string) error {
	if !errors.Is(err, ErrShortened) && !errors.Is(err, ErrDiverged) && !errors.Is(err, ErrCorrupt) {
		return err
	}
	levels, listErr := tablesOf(db)
	names, _ := fs.List(store) // what cannot be listed explains nothing
	if listErr != nil {
		return err
	}
	known := map[string]bool{}
	for _, tables := range levels {
		for i := range tables {
			known[tableName(uint64(tables[i].BackingSSTNum))] = true
		}
	}
	for _, name := range names {
		if isTable(name) && !known[name] {
			return fmt.Errorf("%w; file=%s does not name %s, which is there: it may have been cut",
				err, manifestOf(fs, store), name)
		}
	}
	return err
}

// tableName is the name of a table's file.
func tableName(n uint64) string { return fmt.Sprintf("%06d.sst", n) }
