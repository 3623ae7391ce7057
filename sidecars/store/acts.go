package store

import "fmt"

// cursorActs is the number of the last Act.
//
// It only rises: DropAct leaves it, and a backup keeps it (keptTables). So a number is never given
// to two acts, unless a restore has rows older than its journal: it goes on from theirs.
const cursorActs = "operator.acts"

// Act is an operator's act on the database. Its row waits until the act is on record in the
// journal: the transaction that carries the act out cannot write there, and the journal may be
// closed meanwhile.
//
// The life of a row: PutAct in the transaction of the act itself, SeekAct before the note is
// submitted to the desk, DropAct when the journal has the note. A process that ends in between
// finds Sought in the row, and searches the journal from there before it submits the note again.
type Act struct {
	Number                         uint64 // given by PutAct
	Kind, Subject, Address, Reason string
	Object, Old, New               string // JSON texts, "" for none
	MadeAt                         int64  // epoch milliseconds
	Sought                         uint64 // the journal may have it from here on; 0: it has not
}

// PutAct adds an act that waits, in the transaction that carries it out.
//
// It sets a.Number. HoldCursor makes other callers wait until this transaction ends, so two acts
// never draw one number, and a transaction that is rolled back draws none.
func (t *Tx) PutAct(a *Act) error {
	last, err := t.HoldCursor(cursorActs)
	if err != nil {
		return err
	}
	a.Number = last + 1
	if err := t.SetCursor(cursorActs, a.Number); err != nil {
		return err
	}
	_, err = t.Exec("insert into operator_acts (act, kind, subject, address, reason, object, old, "+
		"new, made_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)", a.Number, a.Kind, a.Subject,
		a.Address, a.Reason, a.Object, a.Old, a.New, a.MadeAt)
	return err
}

// FirstAct returns the first act that waits, false for none.
//
// Acts are put on record in the order of their numbers; the row stays until DropAct.
func (t *Tx) FirstAct() (a Act, found bool, err error) {
	err = t.Query("select act, kind, subject, address, reason, object, old, new, made_at, "+
		"coalesce(sought_from, 0) from operator_acts order by act limit 1", func(r *Row) error {
		a = Act{Number: uint64(r.Int64(0)), Kind: r.Text(1), Subject: r.Text(2), Address: r.Text(3),
			Reason: r.Text(4), Object: r.Text(5), Old: r.Text(6), New: r.Text(7), MadeAt: r.Int64(8),
			Sought: uint64(r.Int64(9))}
		found = true
		return nil
	})
	return a, found, err
}

// SeekAct notes that the journal may have an act from a sequence on.
//
// from is an inputSeq. It must be committed before the note is submitted. An act that has no row
// any more is an error that is not ErrUnavailable: another process has put it on record.
func (t *Tx) SeekAct(number, from uint64) error {
	n, err := t.Exec("update operator_acts set sought_from = $1 where act = $2", from, number)
	if err == nil && n != 1 {
		err = fmt.Errorf("store: act %d does not wait any more", number)
	}
	return err
}

// SeekActs notes of all acts that wait, and were never sought, that the journal may have them from
// a sequence on. A restore needs it when the journal goes on behind the rows.
func (t *Tx) SeekActs(from uint64) error {
	_, err := t.Exec("update operator_acts set sought_from = $1 where sought_from is null", from)
	return err
}

// DropAct deletes an act that is on record.
//
// An act without a row is no error.
func (t *Tx) DropAct(number uint64) error {
	_, err := t.Exec("delete from operator_acts where act = $1", number)
	return err
}
