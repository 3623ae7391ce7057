package riskextract

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
)

// The built-in files: a counterparty for every account of the built-in universe,
// and some instruments that are no plain shares.
var (
	//go:embed reference/counterparties.csv
	builtInCounterparties string
	//go:embed reference/instruments.csv
	builtInInstruments string
)

// Reference is the content of the two reference files. It does not change.
//
// The texts are stored beside each cut as they were read, comments and order included.
type Reference struct {
	counterpartiesText string
	instrumentsText    string
	counterparties     map[uint32]counterparty
	instruments        map[string]instrument
}

// counterparty is the counterparty of an account.
type counterparty struct {
	id         string
	nettingSet string
	currency   string
}

// counterpartiesHeader is the first line of the file, exactly.
const counterpartiesHeader = "accountId,counterpartyId,nettingSetId,currency"

// loadReference reads the reference files; an empty path means the built-in file. Refused content
// of a file is ErrRefused, with the line.
//
// Each extract calls it, so a corrected file is used without a restart. The two files are not read
// at one moment.
func loadReference(counterparties, instruments string) (*Reference, error) {
	first, err := readReference(counterparties, builtInCounterparties)
	if err != nil {
		return nil, err
	}
	second, err := readReference(instruments, builtInInstruments)
	if err != nil {
		return nil, err
	}
	return parseReference(first, second)
}

// readReference reads one byte more than a file may have: table then refuses it as too large.
func readReference(path, builtIn string) (string, error) {
	if path == "" {
		return builtIn, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("riskextract: read reference: %w", err)
	}
	defer file.Close() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(file, MaxReferenceBytes+1))
	if err != nil {
		return "", fmt.Errorf("riskextract: read reference: %w", err)
	}
	return string(text), nil
}

// parseReference reads the texts of the two files.
//
// ErrRefused with file and line for any content that is not of the form in doc.go.
func parseReference(counterparties, instruments string) (*Reference, error) {
	r := &Reference{
		counterpartiesText: counterparties, counterparties: make(map[uint32]counterparty),
		instrumentsText: instruments, instruments: make(map[string]instrument),
	}
	if err := table("counterparties", counterpartiesHeader, counterparties,
		r.addCounterparties()); err != nil {
		return nil, err
	}
	if err := table("instruments", instrumentsHeader, instruments, r.addInstrument); err != nil {
		return nil, err
	}
	return r, nil
}

// addCounterparties returns a function that adds a line of the counterparties. A netting set is an
// agreement with one counterparty, so it must not name two.
func (r *Reference) addCounterparties() func(columns []string) error {
	parties := make(map[string]string) // of the netting sets
	return func(columns []string) error {
		account, err := whole("accountId", columns[0], 1, math.MaxUint32)
		if err != nil {
			return err
		}
		c := counterparty{}
		if c.id, err = identifier("counterpartyId", columns[1]); err != nil {
			return err
		}
		if c.nettingSet, err = identifier("nettingSetId", columns[2]); err != nil {
			return err
		}
		if c.currency, err = currency(columns[3]); err != nil {
			return err
		}
		if _, there := r.counterparties[uint32(account)]; there {
			return fmt.Errorf("accountId=%d %w", account, errTwice)
		}
		if party, there := parties[c.nettingSet]; there && party != c.id {
			return fmt.Errorf("nettingSetId=%s has two counterparties: %w", c.nettingSet, errValue)
		}
		parties[c.nettingSet] = c.id
		r.counterparties[uint32(account)] = c
		return nil
	}
}

// currency reads a code of three capital letters.
func currency(text string) (string, error) {
	const letters = 3
	bad := len(text) != letters
	for i := range len(text) {
		bad = bad || text[i] < 'A' || text[i] > 'Z'
	}
	if bad {
		return "", fmt.Errorf("currency=%q: %w", text, errValue)
	}
	return text, nil
}

// counterparty returns the counterparty of an account. An account without one stops the extract.
func (r *Reference) counterparty(accountID uint32) (counterparty, error) {
	c, ok := r.counterparties[accountID]
	if !ok {
		return c, refuse("accountId=%d is mapped to no counterparty", accountID)
	}
	return c, nil
}
