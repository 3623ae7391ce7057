package store

import (
	"context"
	"errors"
)

// access is the purpose of an attempt. A lock stops writers and lets readers pass, so each has its
// own finding: otherwise the state would change with every retry of a writer.
type access uint8

const (
	reading access = iota
	writing
	holding // see Hold
)

// finding is the result of the last attempt of a kind: the trouble, "" when there is none, and
// whether the trouble is that another history fills the database.
//
// The zero finding is "no trouble".
type finding struct {
	trouble string
	foreign bool
}

// State returns what the last attempt to use the database found. It does no I/O.
//
// detail is the dialect's name when ready, else the trouble of the last Hold, of the last write or
// of the last read, the first of them that had one. It may be stale: a database that is not used is
// not looked at.
func (d *DB) State() (ready bool, detail string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stateLocked()
}

func (d *DB) stateLocked() (ready bool, detail string) {
	for _, f := range [...]finding{d.found[holding], d.found[writing], d.found[reading]} {
		if f.trouble != "" {
			return false, f.trouble
		}
	}
	return true, d.dialect.String()
}

// note keeps what an attempt found about the database, and logs a change. An error that the caller
// made itself says nothing about the database, and neither does a caller that went away.
//
// One line is logged when the state changes, however many calls fail in between. It returns err as
// it is.
func (d *DB) note(ctx context.Context, kind access, err error) error {
	trouble := ""
	if err != nil {
		if !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		trouble = err.Error()
	}
	d.mu.Lock()
	was, _ := d.stateLocked()
	d.found[kind] = finding{trouble: trouble, foreign: errors.Is(err, ErrForeign)}
	is, detail := d.stateLocked()
	d.mu.Unlock()
	switch {
	case is && !was:
		d.log.Info("database is ready", "dialect", detail)
	case was && !is:
		d.log.Warn("database is not available", "dialect", d.dialect.String(), "cause", detail)
	}
	return err
}
