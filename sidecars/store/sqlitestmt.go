package store

import (
	"fmt"
	"strconv"

	"zombiezen.com/go/sqlite"
)

// sqliteStmt is a prepared statement. Its parameter i takes argument order[i].
//
// It lives as long as its connection. A statement that was stepped must be reset before the next
// use.
type sqliteStmt struct {
	*sqlite.Stmt
	order []int
}

// prepare returns the statement for sql, from the cache if it was used before. SQLite numbers named
// parameters by first appearance; their names say which argument each one takes.
//
// One argument may appear several times in a text; it is one parameter of SQLite then. Placeholders
// that are not $1..$n are an error, so that a text that works here works on PostgreSQL.
func (c *sqliteConn) prepare(sql string) (*sqliteStmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	stmt, err := c.db.Prepare(sql)
	if err != nil {
		return nil, err
	}
	s := &sqliteStmt{Stmt: stmt, order: make([]int, stmt.BindParamCount())}
	for i := range s.order {
		name := stmt.BindParamName(i + 1)
		if name != "" {
			s.order[i], err = strconv.Atoi(name[1:])
		}
		if name == "" || name[0] != '$' || err != nil || s.order[i] < 1 {
			return nil, fmt.Errorf("placeholder %q is not $1..$n", name)
		}
		s.order[i]--
	}
	c.stmts[sql] = s
	return s, nil
}

// bound prepares sql and binds args to it.
//
// Every argument must have a placeholder, as PostgreSQL demands.
func (c *sqliteConn) bound(sql string, args []any) (*sqliteStmt, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	if len(s.order) != len(args) {
		return nil, fmt.Errorf("%d placeholders, %d arguments", len(s.order), len(args))
	}
	for i, at := range s.order {
		if at >= len(args) {
			return nil, fmt.Errorf("placeholder $%d, %d arguments", at+1, len(args))
		}
		if err := s.bind(i+1, args[at]); err != nil {
			return nil, fmt.Errorf("$%d: %w", at+1, err)
		}
	}
	return s, nil
}

// bind sets a parameter, which counts from 1. The types are those of Tx.Exec; a Date becomes text
// and a list of numbers becomes a JSON array. A nil []byte is NULL.
func (s *sqliteStmt) bind(param int, arg any) error {
	if n, ok, err := integer(arg); ok {
		s.BindInt64(param, n)
		return err
	}
	switch a := arg.(type) {
	case nil:
		s.BindNull(param)
	case string:
		s.BindText(param, a)
	case bool:
		s.BindBool(param, a)
	case []byte:
		if a == nil {
			s.BindNull(param)
		} else {
			s.BindBytes(param, a)
		}
	case Date:
		s.BindText(param, a.String())
	case numbers:
		s.BindText(param, a.json())
	default:
		return fmt.Errorf("argument of type %T", arg)
	}
	return nil
}
