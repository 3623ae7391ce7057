package orderflow

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"posttrade/matcher"
)

// header is the first line of the CSV form. One line is one step; a column that the action does not
// use is empty:
//
//	action         new, cancel, replace, trade or price
//	clientOrderId  new, trade, replace (optional): 1 to 64 printable ASCII characters
//	accountId      new, trade: 1..4294967295; cancel, replace: optional
//	security       new, trade, price: [A-Z0-9.-]{1,16}
//	side           new, trade: Buy or Sell
//	type           new: LIMIT (the default) or MARKET
//	timeInForce    new: GTC (the default), IOC, FOK or POST_ONLY
//	quantity       new, trade, replace (the new total): 1..2147483647
//	limitPrice     new LIMIT, replace, price: decimal, above 0, at most 6 decimals
//	ref            cancel, replace: clientOrderId of the order meant
//
// The names and their order are the format: Reader refuses another first line, so a change makes
// written files unreadable.
var header = []string{"action", "clientOrderId", "accountId", "security", "side", "type",
	"timeInForce", "quantity", "limitPrice", "ref"}

// The columns, in the order of header: indexes into a row.
const (
	colAction = iota
	colClientOrderID
	colAccountID
	colSecurity
	colSide
	colType
	colTimeInForce
	colQuantity
	colLimitPrice
	colRef
)

// columnsOf lists per action the columns that must be filled and those that may be.
//
// A column that is in neither list must be empty. What depends on two columns at once is in
// parseStep.
var columnsOf = [...]struct{ must, may []int }{
	New: {[]int{colClientOrderID, colAccountID, colSecurity, colSide, colQuantity},
		[]int{colType, colTimeInForce, colLimitPrice}},
	Cancel:  {[]int{colRef}, []int{colAccountID}},
	Replace: {[]int{colRef, colQuantity, colLimitPrice}, []int{colAccountID, colClientOrderID}},
	Trade:   {[]int{colClientOrderID, colAccountID, colSecurity, colSide, colQuantity}, nil},
	Price:   {[]int{colSecurity, colLimitPrice}, nil},
}

// Reader reads the CSV form strictly: every error names the line, and no step is skipped. It is a
// StepReader. One goroutine.
type Reader struct {
	rows *csv.Reader
	// open says that the header has been read, which the first call of Next does.
	open bool
}

// NewReader returns a reader of the CSV form. It reads nothing yet; it buffers, so the place of r
// is further on than the last step.
func NewReader(r io.Reader) *Reader {
	rows := csv.NewReader(bufio.NewReader(r))
	rows.FieldsPerRecord = len(header)
	rows.ReuseRecord = true
	return &Reader{rows: rows}
}

// Next reads the next step, or returns io.EOF. Any other error is about the line that it names: a
// header that differs, a row with another number of columns, or a value that the column or the
// action does not allow. The reader must not be used after it.
func (r *Reader) Next(step *Step) error {
	if !r.open {
		cell, err := r.rows.Read()
		if err == io.EOF || err == nil && !slices.Equal(cell, header) {
			return fmt.Errorf("orderflow: line 1: want the header %s", strings.Join(header, ","))
		}
		if err != nil {
			return csvError(err)
		}
		r.open = true
	}
	cell, err := r.rows.Read()
	if err == io.EOF {
		return io.EOF
	}
	if err != nil {
		return csvError(err)
	}
	line, _ := r.rows.FieldPos(0)
	if *step, err = parseStep(cell); err != nil {
		return fmt.Errorf("orderflow: line %d: %w", line, err)
	}
	return nil
}

// csvError names the line of an error of encoding/csv, and passes a read error on.
func csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("orderflow: line %d: %w", parse.Line, parse.Err)
	}
	return fmt.Errorf("orderflow: %w", err)
}

// parseStep reads a row of as many cells as header has. The cells are used only during the call,
// but the step's strings are parts of them: encoding/csv makes new text for every row.
func parseStep(cell []string) (Step, error) {
	action := slices.Index(actionNames[:], cell[colAction])
	if action < 0 {
		return Step{}, fmt.Errorf("action %q", cell[colAction])
	}
	s := Step{Action: Action(action)}
	columns := columnsOf[action]
	for i, text := range cell[1:] {
		column := i + 1
		switch {
		case text == "" && slices.Contains(columns.must, column):
			return Step{}, fmt.Errorf("%s needs %s", s.Action, header[column])
		case text == "":
			continue
		case !slices.Contains(columns.must, column) && !slices.Contains(columns.may, column):
			return Step{}, fmt.Errorf("%s takes no %s", s.Action, header[column])
		}
		if err := s.setColumn(column, text); err != nil {
			return Step{}, err
		}
	}
	if s.Action != New {
		return s, nil
	}
	if (s.Type == Limit) != (s.LimitPx != 0) {
		return Step{}, errors.New("LIMIT needs limitPrice, MARKET takes none")
	}
	if s.Type == Market && s.TimeInForce == PostOnly {
		return Step{}, errors.New("MARKET cannot be POST_ONLY")
	}
	return s, nil
}

// setColumn reads one filled column. An error has the column's name and the text.
func (s *Step) setColumn(column int, text string) (err error) {
	ok := true
	switch column {
	case colClientOrderID:
		s.ClientOrderID, ok = text, validClientID(text)
	case colRef:
		s.Ref, ok = text, validClientID(text)
	case colAccountID:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 32)
		s.AccountID, ok = uint32(n), err == nil && n > 0
	case colSecurity:
		s.Security, ok = text, matcher.ValidTicker(text)
	case colSide:
		i := slices.Index(sideNames[:], text)
		s.Side, ok = matcher.Side(max(i, 0)), i >= 0
	case colType:
		i := slices.Index(orderTypeNames[:], text)
		s.Type, ok = OrderType(max(i, 0)), i >= 0
	case colTimeInForce:
		i := slices.Index(timeInForceNames[:], text)
		s.TimeInForce, ok = TimeInForce(max(i, 0)), i >= 0
	case colQuantity:
		var n int64
		n, err = parsePositive(text, maxQty)
		s.Quantity, ok = int32(n), err == nil
	case colLimitPrice:
		s.LimitPx, err = ParsePrice(text)
		ok = err == nil
	}
	if !ok {
		return fmt.Errorf("%s %q", header[column], text)
	}
	return nil
}

// validClientID reports 1 to 64 printable ASCII characters, blanks included.
func validClientID(s string) bool {
	return len(s) >= 1 && len(s) <= 64 &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
