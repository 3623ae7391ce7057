package backups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"posttrade/journal/backup"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// journalTo is a journal that ends with a command; its genesis has the hash 0.
type journalTo uint64

func (journalTo) Seed() (none [32]byte)               { return none }
func (j journalTo) Head() (inputSeq, tradeSeq uint64) { return uint64(j), 0 }

// TestARequestWaitsNoLongerThanItsTime: rows can take longer to be put back than a request may. Its
// end neither waits for them nor ends them.
func TestARequestWaitsNoLongerThanItsTime(t *testing.T) {
	data := t.TempDir()
	restoredTo(t, data, "{\"rows\":0}\n")
	db := must.Get(store.Open(store.Options{Dir: data}))(t)
	defer db.Close()
	f := must.Get(NewFirst(FirstOptions{Data: data, DB: db, Journal: journalTo(3),
		Log:  slog.New(slog.DiscardHandler),
		Bump: func(context.Context, string) error { return nil },
	}))(t)
	ran := make(chan error, 1)
	must.OK(t, db.Write(t.Context(), func(*store.Tx) error { // Run waits for the end of this
		go func() { ran <- f.Run(t.Context()) }()
		stopping, stop := context.WithCancelCause(t.Context())
		asked := make(chan error, 1)
		go func() { asked <- f.Wait(stopping) }()
		stop(os.ErrProcessDone)
		if err := <-asked; !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("a request that was ended: %v", err)
		}
		late, cancel := context.WithTimeout(t.Context(), 1)
		defer cancel()
		if err := f.Wait(late); !errors.Is(err, store.ErrNotRestored) {
			t.Errorf("a request whose time is over: %v", err)
		}
		return nil
	}))
	must.OK(t, <-ran)
	must.OK(t, f.Wait(t.Context()))
}

// TestARequestWithMuchTimeWaitsAsOthers: a sweep may take half an hour, and Run may never begin.
func TestARequestWithMuchTimeWaitsAsOthers(t *testing.T) {
	data := t.TempDir()
	restoredTo(t, data, "{\"rows\":0}\n")
	db := must.Get(store.Open(store.Options{Dir: data}))(t)
	defer db.Close()
	f := must.Get(NewFirst(FirstOptions{Data: data, DB: db, Journal: journalTo(3), Patience: 1,
		Log: slog.New(slog.DiscardHandler)}))(t)
	must.Be(t, f.Wait(t.Context()), store.ErrNotRestored)
}

// TestRowsThatCannotBePutBack: the error is final for requests too. Nothing has changed, and the
// next start finds the same.
func TestRowsThatCannotBePutBack(t *testing.T) {
	const seed = "0000000000000000000000000000000000000000000000000000000000000000"
	const whole = "{\"table\":\"sources\",\"columns\":[\"source\",\"epoch\",\"version\"]}\n" +
		"[\"account\",1,2]\n{\"rows\":1}\n"
	for name, c := range map[string]struct {
		origin, rows string
		want         error // of Run
	}{
		"they fit": {`"genesis":"` + seed + `","inputSequence":9,"rowsFrom":"/mon","rowsSequence":7`,
			whole, nil},
		"restored to before their backup's end": {
			`"inputSequence":7,"rowsFrom":"/mon","rowsSequence":9`, whole, nil},
		"of an older build": {`"inputSequence":3`, whole, nil},
		"of a newer build": {`"inputSequence":3`, "{\"table\":\"new\",\"columns\":[]}\n",
			store.ErrKept},
		"cut": {`"inputSequence":3`, whole[:40], store.ErrKept},
		"another genesis": {`"genesis":"1` + seed[1:] + `","inputSequence":3`, whole,
			backup.ErrOtherJournal},
		"behind the journal": {`"inputSequence":9,"rowsFrom":"/mon","rowsSequence":8`, whole,
			backup.ErrOtherJournal},
	} {
		data := t.TempDir()
		restoredTo(t, data, c.rows)
		must.OK(t, os.WriteFile(filepath.Join(data, backup.RestoredName, "origin.json"),
			fmt.Appendf(nil, `{%s,"from":["/mon"]}`, c.origin), 0o600))
		db := must.Get(store.Open(store.Options{Dir: data}))(t)
		f := must.Get(NewFirst(FirstOptions{Data: data, DB: db, Journal: journalTo(7),
			Log:  slog.New(slog.DiscardHandler),
			Bump: func(context.Context, string) error { return nil },
		}))(t)
		if err := f.Run(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: Run: %v, want %v", name, err, c.want)
		}
		origin := must.Get(backup.Restored(data))(t)
		sources := 0
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
			sources = 0
			return tx.Query("select 1 from sources", func(*store.Row) error { sources++; return nil })
		}))
		put := c.want == nil
		if put != (origin == nil) || put != (sources == 1) {
			t.Errorf("%s: notes %v, %d sources", name, origin, sources)
		}
		late, cancel := context.WithTimeout(t.Context(), 1) // there is nothing left to wait for
		err := f.Wait(late)
		cancel()
		if !put && !(errors.Is(err, store.ErrUnavailable) && errors.Is(err, store.ErrNotRestored) &&
			errors.Is(err, c.want)) || put && err != nil {
			t.Errorf("%s: a request gets %v", name, err)
		}
		must.OK(t, db.Close())
	}
}
