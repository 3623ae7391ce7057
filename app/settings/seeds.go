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

// SeedAccounts are the rows of the accounts file.
func (c *Config) SeedAccounts() ([]seedAccount, error) {
	return readSeeds(c, "seed.accounts", "seeds/accounts.csv", parseAccounts)
}

// SeedSecurities are the rows of the securities file.
func (c *Config) SeedSecurities() ([]seedSecurity, error) {
	return readSeeds(c, "seed.securities", "seeds/securities.csv", parseSecurities)
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
