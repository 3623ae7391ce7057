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
var header = []string{"action", "clientOrderId", "accountId", "security", "side", "type",
	"timeInForce", "quantity", "limitPrice", "ref"}

// The columns, in order.
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
var columnsOf = [...]struct{ must, may []int }{
	New: {[]int{colClientOrderID, colAccountID, colSecurity, colSide, colQuantity},
		[]int{colType, colTimeInForce, colLimitPrice}},
	Cancel:  {[]int{colRef}, []int{colAccountID}},
	Replace: {[]int{colRef, colQuantity, colLimitPrice}, []int{colAccountID, colClientOrderID}},
	Trade:   {[]int{colClientOrderID, colAccountID, colSecurity, colSide, colQuantity}, nil},
	Price:   {[]int{colSecurity, colLimitPrice}, nil},
}

// Reader reads the CSV form strictly: every error names the line.
type Reader struct {
	rows *csv.Reader
	open bool // the header has been read
}

// NewReader returns a reader of the CSV form.
func NewReader(r io.Reader) *Reader {
	rows := csv.NewReader(bufio.NewReader(r))
	rows.FieldsPerRecord = len(header)
	rows.ReuseRecord = true
	return &Reader{rows: rows}
}

// Next reads the next step, or returns io.EOF.
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

func csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("orderflow: line %d: %w", parse.Line, parse.Err)
	}
	return fmt.Errorf("orderflow: %w", err)
}

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

// setColumn reads one filled column.
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
		s.Security, ok = text, validTicker(text)
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

func validClientID(s string) bool {
	return len(s) >= 1 && len(s) <= 64 &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func validTicker(s string) bool {
	return len(s) >= 1 && len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-'
	})
}

// ParsePrice reads a decimal above 0 with at most 6 decimals into millionths.
func ParsePrice(s string) (int64, error) {
	whole, fraction, dotted := strings.Cut(s, ".")
	if dotted && fraction == "" || len(fraction) > 6 {
		return 0, errNumber
	}
	units, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || units > (1<<63-1)/matcher.PriceScale {
		return 0, errNumber
	}
	micros, err := strconv.ParseUint((fraction + "000000")[:6], 10, 32)
	if err != nil {
		return 0, errNumber
	}
	px := units*matcher.PriceScale + micros
	if px == 0 || px > 1<<63-1 {
		return 0, errNumber
	}
	return int64(px), nil
}

// AppendPrice writes millionths as a decimal without trailing zeros.
func AppendPrice(b []byte, px int64) []byte {
	if px < 0 {
		panic(fmt.Sprintf("orderflow: price %d", px))
	}
	b = strconv.AppendInt(b, px/matcher.PriceScale, 10)
	micros := px % matcher.PriceScale
	if micros == 0 {
		return b
	}
	b = append(b, '.')
	for scale := int64(matcher.PriceScale / 10); micros > 0; scale /= 10 {
		b = append(b, byte('0'+micros/scale))
		micros %= scale
	}
	return b
}

// Writer writes the CSV form. The caller calls Flush at the end.
type Writer struct {
	rows *csv.Writer
	cell []string
}

// NewWriter returns a writer of the CSV form; the header is written at once.
func NewWriter(w io.Writer) *Writer {
	out := &Writer{rows: csv.NewWriter(w), cell: make([]string, len(header))}
	out.rows.Write(header) // an error stays in the csv.Writer until Flush
	return out
}

// Write writes one step. A step that Reader would refuse is an error.
func (w *Writer) Write(s *Step) error {
	if int(s.Action) >= len(columnsOf) {
		return fmt.Errorf("orderflow: write: action %d", s.Action)
	}
	columns := columnsOf[s.Action]
	w.cell[colAction] = s.Action.String()
	for column := 1; column < len(header); column++ {
		w.cell[column] = ""
		if slices.Contains(columns.must, column) || slices.Contains(columns.may, column) {
			w.cell[column] = s.column(column)
		}
	}
	if _, err := parseStep(w.cell); err != nil {
		return fmt.Errorf("orderflow: write: %w", err)
	}
	return w.rows.Write(w.cell)
}

// column formats one column; zero values are empty.
func (s *Step) column(column int) string {
	switch column {
	case colClientOrderID:
		return s.ClientOrderID
	case colRef:
		return s.Ref
	case colSecurity:
		return s.Security
	case colSide:
		return SideName(s.Side)
	case colType:
		return s.Type.String()
	case colTimeInForce:
		return s.TimeInForce.String()
	case colAccountID:
		if s.AccountID != 0 {
			return strconv.FormatUint(uint64(s.AccountID), 10)
		}
	case colQuantity:
		if s.Quantity != 0 {
			return strconv.Itoa(int(s.Quantity))
		}
	case colLimitPrice:
		if s.LimitPx > 0 {
			return string(AppendPrice(nil, s.LimitPx))
		}
	}
	return ""
}

// Flush writes the buffered rows and returns the first error of all writes.
func (w *Writer) Flush() error {
	w.rows.Flush()
	if err := w.rows.Error(); err != nil {
		return fmt.Errorf("orderflow: write: %w", err)
	}
	return nil
}
