package installation

import (
	"context"
	"errors"
	"log/slog"

	"posttrade/app/backups"
	"posttrade/app/settings"
	"posttrade/matcher/note"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// newBackups makes the resources that backups read.
//
// The database is asked for at each request: a member has one only while it leads. The text beside
// a nil database tells the operator why a backup of this process has no rows. Tokens are those of
// the admin listener; they are checked here even when admin.token-guard is off.
func newBackups(c *settings.Config, in *Installation, log *slog.Logger) (*backups.Server, error) {
	verifier, err := in.newVerifier(c)
	if err != nil {
		return nil, err
	}
	return backups.NewServer(backups.ServerOptions{
		Journal: in.Core.Journal,
		Database: func() (*store.DB, string) {
			switch d := in.Beside.Load(); {
			case d != nil:
				return d.Db, ""
			case in.Member != nil && c.Bool("sidecars.enabled"):
				return nil, "this member does not lead"
			}
			return nil, "sidecars.enabled is false"
		},
		Rows: c.Bool("sidecars.enabled"),
		Admit: func(token string) (subject string, valid, admin bool) {
			claims, err := verifier.Verify([]byte(token))
			if err != nil {
				return "", false, false
			}
			return claims.Subject, true, claims.Admin
		},
		Holds:  func(token string) bool { return verifier.Holds([]byte(token)) },
		Data:   c.String("data.dir"),
		Logger: log,
	}), nil
}

// afterRestore makes what a first start after a restore has to do. No request writes into the
// database, and no source begins, before the rows of the backup are back: a database that has a
// source already is not filled.
//
// Without a restore it changes nothing that can be seen: First lets every loop through at once. It
// must be called before any loop starts and before any service has the database.
func (d *downstream) afterRestore(c *settings.Config, of backups.FirstJournal,
	log *slog.Logger) (err error) {
	begun := map[control.Source]bool{} // the sources that have a new epoch
	d.first, err = backups.NewFirst(backups.FirstOptions{
		Data: c.String("data.dir"), DB: d.Db, Journal: of, Log: log,
		Bump: func(ctx context.Context, why string) (err error) {
			for _, name := range control.Sources() {
				if begun[name] { // the other one has failed: a second epoch would quarantine this one again
					continue
				}
				_, e := d.sources.Bump(ctx, name, note.Note{Reason: why})
				begun[name] = e == nil
				err = errors.Join(err, e)
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	d.Db.RequestsAfter(d.first.Wait)
	return nil
}
