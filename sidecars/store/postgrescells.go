package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgCells reads the raw values of the current row. It reads the usual types itself, without an
// allocation, and leaves the others to pgx (a sum of bigint is a numeric).
//
// The driver asks for the binary form of the types that it knows and gets text for the others, so
// each method looks at the column's format as well as at its type. A type that a method does not
// expect is an error, never a conversion: a column that was altered by hand is noticed.
type pgCells struct {
	// fields and types are those of the query; values is the current row, valid until the next one.
	fields []pgconn.FieldDescription
	values [][]byte
	types  *pgtype.Map
}

// of returns the raw value of column i; nil for NULL.
//
// The bytes belong to the driver's buffer: a method copies what outlives the row.
func (r *pgCells) of(i int) ([]byte, error) {
	if i < 0 || i >= len(r.values) {
		return nil, errColumn
	}
	return r.values[i], nil
}

func (r *pgCells) null(i int) bool { return i >= 0 && i < len(r.values) && r.values[i] == nil }

// int64 reads bigint and integer by itself, smallint and numeric through pgx. A numeric with a
// fraction or beyond 64 bits is an error.
func (r *pgCells) int64(i int) (int64, error) {
	b, err := r.of(i)
	if b == nil || err != nil {
		return 0, err
	}
	binaryForm := r.fields[i].Format == pgx.BinaryFormatCode
	switch oid := r.fields[i].DataTypeOID; {
	case binaryForm && oid == pgtype.Int8OID && len(b) == 8:
		return int64(binary.BigEndian.Uint64(b)), nil
	case binaryForm && oid == pgtype.Int4OID && len(b) == 4:
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case !binaryForm && (oid == pgtype.Int8OID || oid == pgtype.Int4OID):
		return strconv.ParseInt(string(b), 10, 64)
	case oid == pgtype.Int2OID || oid == pgtype.NumericOID:
		return scanned[int64](r, i, b)
	default:
		return 0, r.holds(i)
	}
}

// holds returns the error of a column that has another type.
func (r *pgCells) holds(i int) error {
	if t, ok := r.types.TypeForOID(r.fields[i].DataTypeOID); ok {
		return fmt.Errorf("it holds %s", t.Name)
	}
	return fmt.Errorf("it holds type %d", r.fields[i].DataTypeOID)
}

// scratch makes no copy. The unknown type is that of a literal in the query.
func (r *pgCells) scratch(i int) ([]byte, error) {
	b, err := r.of(i)
	if b == nil || err != nil {
		return nil, err
	}
	switch r.fields[i].DataTypeOID {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.UnknownOID:
		return b, nil
	}
	return nil, r.holds(i)
}

func (r *pgCells) text(i int) (string, error) {
	b, err := r.scratch(i)
	return string(b), err
}

func (r *pgCells) bool(i int) (bool, error) {
	b, err := r.of(i)
	if b == nil || err != nil {
		return false, err
	}
	if r.fields[i].DataTypeOID != pgtype.BoolOID {
		return false, r.holds(i)
	}
	return scanned[bool](r, i, b)
}

// pgEpoch is day 0 of PostgreSQL's dates: 2000-01-01.
const pgEpoch Date = 10957

// date reads the binary form: big-endian days since pgEpoch in 32 bits, whose two extremes stand
// for the infinities. PostgreSQL's dates reach beyond those of this system in both directions.
func (r *pgCells) date(i int) (Date, error) {
	b, err := r.of(i)
	if b == nil || err != nil {
		return 0, err
	}
	if r.fields[i].DataTypeOID != pgtype.DateOID {
		return 0, r.holds(i)
	}
	if r.fields[i].Format != pgx.BinaryFormatCode {
		return ParseDate(string(b))
	}
	days := int32(binary.BigEndian.Uint32(b))
	if days == math.MaxInt32 || days == math.MinInt32 {
		return 0, errors.New("it holds infinity")
	}
	day := int64(days) + int64(pgEpoch)
	if day < int64(firstDate) || day > int64(lastDate) {
		return 0, errNoDate
	}
	return Date(day), nil
}

func (r *pgCells) bytes(i int) ([]byte, error) {
	b, err := r.of(i)
	if b == nil || err != nil {
		return nil, err
	}
	if r.fields[i].DataTypeOID != pgtype.ByteaOID {
		return nil, r.holds(i)
	}
	return scanned[[]byte](r, i, b)
}

// scanned reads a value of a rarer type through pgx, at the cost of an allocation.
func scanned[T any](r *pgCells, i int, b []byte) (v T, err error) {
	err = r.types.Scan(r.fields[i].DataTypeOID, r.fields[i].Format, b, &v)
	return v, err
}
