package orderflow

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Writer writes the CSV form. The caller calls Flush at the end; without it the last rows are lost.
// One goroutine.
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

// Write writes one step. A step that Reader would refuse is an error, and nothing of it is written:
// a flow that is written can be read. Fields that the action does not use are left out.
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

// column formats one column; zero values are empty, so that the strict reading of them names the
// column that is missing. Side, type and time in force have a word for zero.
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
