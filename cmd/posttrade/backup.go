package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"posttrade/app/backups"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/backup"
	"posttrade/journal/transfer"
	"posttrade/matcher/gate"
	"posttrade/matcher/timetext"
	"posttrade/sidecars/feeds"
)

// backupUsage is the form of the command without --check.
const backupUsage = "backup DIR [--since=DIR1] [flags]"

// runBackup is `posttrade backup`.
//
// It runs on a thread of the lowest priority: a backup may be made on the machine of the server. A
// signal ends it, and the directory counts as unfinished.
func runBackup(args []string, stdout, stderr io.Writer) int {
	var since, server, tokenFile string
	var check, journalOnly bool
	f := newFlags(backupUsage,
		"Makes a backup in DIR of the server, or member, that runs on data.dir: the whole journal, and "+
			"the rows that no\n"+
			"journal gives again. Verifies it while it is written. The server goes on; it reads at the "+
			"lowest priority.\n"+
			"DIR must be new or empty. What was cut short is begun again by the same command.\n"+
			"Example: posttrade backup /backup/mon; posttrade backup /backup/tue --since=/backup/mon")
	f.StringVar(&since, "since", "", "write only what came after the backup in this `directory`")
	f.StringVar(&server, "server", "",
		"`URL` of the admin listener of a server elsewhere, https://host:port; default: from data.dir")
	f.StringVar(&tokenFile, "token-file", "",
		"`file` with an admin token; default: a token is made with auth.jwt.secret")
	f.BoolVar(&check, "check", false,
		"ask no server: compare the backups in the directories, any number, with their manifests")
	f.BoolVar(&journalOnly, "journal-only", false,
		"leave out the rows that no journal gives again, as while the database is away")
	c, err := f.read(args, 1000, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if len(f.rest) == 0 || len(f.rest) > 1 && !check || check && since != "" {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s, or backup --check DIR...",
			backupUsage))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return settings.Exit(stderr, journal.Politely(journal.Bulk, func() error {
		if check {
			return checkBackups(f.rest, stdout)
		}
		from, err := backupSource(c, server, tokenFile)
		if err != nil {
			return err
		}
		from.JournalOnly = journalOnly
		o := backup.Options{Since: since, Build: settings.Version(), Now: time.Now,
			JournalOnly: journalOnly}
		return makeBackup(ctx, f.rest[0], o, from, stdout, stderr)
	}))
}

// makeBackup writes a backup and prints what it holds. Rows that are missing, and were not to be
// left out, are a warning: a part of the journal alone is a backup too.
func makeBackup(ctx context.Context, dir string, o backup.Options, from backup.Contents,
	stdout, stderr io.Writer) error {
	begun := time.Now()
	m, err := backup.Write(ctx, dir, from, o)
	if err != nil {
		return damage(err)
	}
	printBackup(stdout, m)
	fmt.Fprintf(stdout, "took       %s\n", time.Since(begun).Round(time.Millisecond))
	if m.NoTables != "" && !o.JournalOnly {
		fmt.Fprintf(stderr, "posttrade: warning: the backup has no rows: %s; a restore takes those of "+
			"the newest backup before it that has some\n", m.NoTables)
	}
	return nil
}

// damage gives an error of backups its exit code: 3 for content that is not what was written, 2 for
// a directory that cannot be used so, 1 for anything else.
func damage(err error) error {
	switch {
	case errors.Is(err, backup.ErrDamaged), errors.Is(err, transfer.ErrNotWhole),
		errors.Is(err, journal.ErrCorrupt):
		return fmt.Errorf("%w: %w", settings.ErrMismatch, err)
	case errors.Is(err, backup.ErrNotEmpty), errors.Is(err, backup.ErrExists),
		errors.Is(err, backup.ErrChain), errors.Is(err, backup.ErrNone),
		errors.Is(err, backup.ErrUnfinished), errors.Is(err, journal.ErrBase),
		errors.Is(err, syscall.ENOTDIR):
		return settings.Usagef("%v", err)
	}
	return err
}

// printBackup prints what the manifest says, for people: how many commands there are and up to
// which sequence, their event times, why rows are missing, if they are, and genesis and chain in
// hex. A part goes on from the commit that has this chain.
func printBackup(w io.Writer, m *backup.Manifest) {
	bytes := int64(0)
	for _, f := range m.Files {
		bytes += f.Bytes
	}
	what := "whole"
	if m.From.InputSeq > 0 {
		what = fmt.Sprintf("since sequence %d", m.From.InputSeq)
	}
	fmt.Fprintf(w, "backup     %s, %s\n", m.Dir(), what)
	fmt.Fprintf(w, "commands   %d, up to sequence %d, trade %d\n",
		m.To.InputSeq-m.From.InputSeq, m.To.InputSeq, m.To.TradeSeq)
	if m.FirstTime != 0 {
		fmt.Fprintf(w, "times      %s to %s\n", timetext.Of(m.FirstTime),
			timetext.Of(m.LastTime))
	}
	if m.NoTables != "" {
		fmt.Fprintf(w, "rows       none: %s\n", m.NoTables)
	}
	fmt.Fprintf(w, "genesis    %s\nchain      %x\nstored     %d bytes\n", m.Genesis, m.To.Chain, bytes)
}

// checkBackups reads every byte of each backup. Each is judged alone: that they follow each other
// is for restore to check.
func checkBackups(dirs []string, stdout io.Writer) error {
	for _, dir := range dirs {
		m, err := backup.Read(dir)
		if err == nil {
			err = backup.Verify(m)
		}
		if err != nil {
			return damage(err)
		}
		printBackup(stdout, m)
	}
	fmt.Fprintf(stdout, "verified   every byte of %d\n", len(dirs))
	return nil
}

// backupSource is the admin listener of a server, and how to get in: the server on data.dir, by its
// ports.json, or one elsewhere by its URL.
//
// Of the server on data.dir only its own certificate is accepted (feeds.Pinned); of one elsewhere
// the certificate is judged by the system's authorities.
func backupSource(c *settings.Config, server, tokenFile string) (*backups.Remote, error) {
	token := backupToken(c, tokenFile)
	if server != "" {
		if !strings.HasPrefix(server, "http://") && !strings.HasPrefix(server, "https://") {
			return nil, settings.Usagef("server: want http://host:port or https://host:port, got %s",
				settings.Printable(server))
		}
		return backups.NewRemote(server, token, nil), nil
	}
	at, err := listenerOf(c, "admin")
	if err != nil {
		return nil, err
	}
	if err := ownServer(c); err != nil {
		return nil, err
	}
	adminTLS, err := c.AdminTLS()
	if err != nil {
		return nil, err
	}
	scheme := "http://"
	if adminTLS != nil {
		scheme = "https://"
	}
	return backups.NewRemote(scheme+feeds.Reachable(at), token,
		feeds.Pinned("admin.tls-cert", adminTLS)), nil
}

// backupToken makes the admin token of each request, or reads it from a file. It is asked for each
// request anew, because a backup may take longer than a token lives.
func backupToken(c *settings.Config, file string) func() (string, error) {
	if file == "" {
		return func() (string, error) {
			secret, err := c.JWTSecret()
			if err != nil {
				return "", err
			}
			return gate.Mint(secret, gate.Claims{Subject: "backup", Admin: true},
				c.String("auth.jwt.issuer"), localTokenLife, time.Now()), nil
		}
	}
	return func() (string, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("token-file: read %s: %w", file, settings.Cause(err))
		}
		return strings.TrimSpace(string(text)), nil
	}
}

// restoreUsage is the form of the command
const restoreUsage = "restore DIR [DIR2...] --data.dir=NEW [flags]"

// runRestore is `posttrade restore`.
//
// data.dir must be named, so that nothing is restored into the default by mistake.
func runRestore(args []string, stdout, stderr io.Writer) int {
	var to uint64
	f := newFlags(restoreUsage,
		"Makes an installation in data.dir, which must be new or empty, from the whole backup in DIR "+
			"and those that\n"+
			"follow it, in their order. Verifies all that it takes, and replays it as journal "+
			"verify does.\n"+
			"The first start makes everything else again: rows, price history, extracts. The control "+
			"sources begin a new epoch.\n"+
			"Example: posttrade restore /backup/mon /backup/tue --data.dir=/var/lib/posttrade")
	f.Uint64Var(&to, "to-seq", 0, "stop behind the command with this `sequence`, 0 = take all")
	c, err := f.read(args, 1000, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if len(f.rest) == 0 || c.Source("data.dir") == "default" {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", restoreUsage))
	}
	return settings.Exit(stderr, damage(restore(c, f.rest, to, stdout)))
}

// restore restores and verifies as `journal verify` does, before the directory counts as restored.
// The journal's Fatal does nothing: an error of the disk is returned and printed like any other.
func restore(c *settings.Config, dirs []string, to uint64, stdout io.Writer) error {
	chain, err := backup.Chain(dirs)
	if err != nil {
		return err
	}
	got, err := backup.Restore(c.String("data.dir"), chain, backup.RestoreOptions{
		To: to, Journal: journal.Options{Fatal: func(error) {}},
		Verify: func(dir string) error { return verifyJournal(dir, "", stdout) },
	})
	if err != nil {
		return err
	}
	switch {
	case got.RowsFrom == "":
		fmt.Fprintf(stdout, "rows       none in any backup (%s): what no journal gives again is lost\n",
			chain[len(got.From)-1].NoTables)
	case got.RowsOlder():
		fmt.Fprintf(stdout, "rows       of %s, up to sequence %d: what no journal gives again and came "+
			"later is lost\n", got.RowsFrom, got.RowsSequence)
	default:
		fmt.Fprintf(stdout, "rows       of %s\n", got.RowsFrom)
	}
	fmt.Fprintf(stdout, "restored   %s, up to sequence %d, trade %d, from %s\n", c.String("data.dir"),
		got.InputSequence, got.TradeSequence, strings.Join(got.From, ", "))
	return nil
}
