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

	"posttrade/sidecars/control"
)

// seedFiles are the built-in universe: the accounts and securities of this repository.
//
// They are used when seed.accounts or seed.securities is empty.
//
//go:embed seeds/accounts.csv seeds/securities.csv
var seedFiles embed.FS

// seedAccount is a row of the accounts file: id,displayName,enabled.
//
// ID is 1 to 4294967295 and occurs once in a file. The display name is for the account-service;
// the engine does not have it.
type seedAccount struct {
	ID          uint32
	DisplayName string
	Enabled     bool
}

// seedSecurity is a row of the securities file: ticker,companyName,enabled,halted.
//
// Ticker is a control.NewTicker and occurs once in a file. A security that is not enabled takes
// no orders; one that is halted takes none until it is resumed.
type seedSecurity struct {
	Ticker      string
	CompanyName string
	Enabled     bool
	Halted      bool
}

// SeedAccounts are the rows of the accounts file.
//
// They are in the order of the file. The tables of the account-service are filled with them when
// they are empty. The error is a UsageError with the setting, the file and the line.
func (c *Config) SeedAccounts() ([]seedAccount, error) {
	return readSeeds(c, "seed.accounts", "seeds/accounts.csv", parseAccounts)
}

// SeedSecurities are the rows of the securities file.
//
// Order, use and errors are as with SeedAccounts, for the reference-data service.
func (c *Config) SeedSecurities() ([]seedSecurity, error) {
	return readSeeds(c, "seed.securities", "seeds/securities.csv", parseSecurities)
}

// readSeeds reads the file that the setting names, or the built-in one.
//
// All rows are kept in memory; maxSeedRows bounds them.
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
//
// It is the upper bound of risk.max-accounts.
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
			if !control.NewTicker(ticker) {
				return fmt.Errorf("line %d: ticker %s does not match [A-Z0-9.-]{1,16}, or is dots alone", line,
					Printable(ticker))
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
//
// The slice that use gets is valid until it returns. line counts from 1 and is the line where the
// row begins, because a quoted cell may have line breaks. An error of use ends the reading.
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
//
// The position in columns and the text around it are left out: the caller names file and setting.
func csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %w", parse.Line, parse.Err)
	}
	return err
}

// parseName reads a display name: 1 to 200 bytes of UTF-8 without control characters, white space
// around it dropped. A text that is not UTF-8 is refused.
func parseName(line int, column, s string) (string, error) {
	name := strings.TrimSpace(s)
	if name == "" || len(name) > 200 ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\uFFFD' }) {
		return "", fmt.Errorf("line %d: %s %s is not 1 to 200 printable bytes", line, column,
			Printable(s))
	}
	return name, nil
}

// parseFlag accepts true and false only: a seed file is data, and other spellings are likely
// mistakes.
func parseFlag(line int, column, s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("line %d: %s %s is not true or false", line, column, Printable(s))
}
