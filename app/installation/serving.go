package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/backup"
)

// ServeToTheEnd serves until ctx ends or a part fails, and returns the exit code for that.
//
// stdout gets the lines that say where the services listen; stderr gets the log and the last line.
// The code is one of settings.Exit*. After a failure of the journal or of a thread of the engine it
// does not return: stderr ends the process.
func ServeToTheEnd(ctx context.Context, c *settings.Config, o engine.Options, stdout io.Writer,
	stderr *FatalStderr) int {
	// SIGHUP is taken from the first moment: by itself it ends a process, and a recovery takes
	// minutes. One that comes before an installation serves is done when it does.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	o.Fatal = endsWith(c, stderr.Failed)
	stderr.json = logsJSON(c)
	logStart(c, stderr)
	log := newLog(c, stderr, c.LogLevel())
	err := serve(ctx, c, o, log, stdout, hangups)
	if errors.Is(err, journal.ErrPoisoned) || errors.Is(err, engine.ErrEnded) || stderr.hasEnded() {
		stderr.Failed(err) // the failure may come here before it is written, or after that
	}
	if err != nil && stderr.json {
		log.Error("stopped", "error", err)
		return settings.Exit(io.Discard, err)
	}
	return settings.Exit(stderr, err)
}

// serve starts the installation, waits for ctx or a failure, and stops it.
//
// One process can open several installations, one after the other: see errRestart.
func serve(ctx context.Context, c *settings.Config, o engine.Options, log *slog.Logger,
	stdout io.Writer, hangups <-chan os.Signal) error {
	if exposed := c.Exposed(); c.String("profile") == "dev" && len(exposed) > 0 {
		log.Warn("profile=dev answers other machines: anything there may place orders and mint tokens; "+
			"use profile=production", "listeners", strings.Join(exposed, " "))
	}
	held, err := holdData(c)
	if err != nil {
		notStarted(log, err)
		return err
	}
	defer held.Close()
	told := newSupervision(c, log)
	told.begin(ctx)
	for {
		if c, err = serveOnce(ctx, c, o, log, stdout, told, hangups); !restarts(err, log) {
			return err
		}
	}
}

// makeData makes the folder data.dir if need be. It refuses one that a restore is still writing.
func makeData(c *settings.Config) error {
	if err := backup.Whole(c.String("data.dir")); err != nil {
		return err
	}
	if err := os.MkdirAll(c.String("data.dir"), 0o700); err != nil {
		return fmt.Errorf("data.dir: %w", err)
	}
	return nil
}

// holdData takes the lock of data.dir, by which `posttrade stop` finds this process from its start
// to its end: a member that waits to join, or that opens again with another journal, has no journal
// open.
//
// Errors are those of makeData, and journal.ErrLocked when another server has it.
func holdData(c *settings.Config) (io.Closer, error) {
	if err := makeData(c); err != nil {
		return nil, err
	}
	return journal.LockDir(c.String("data.dir"))
}

// restarts reports whether an installation that ended with err must be opened again. If so, it logs
// all of err, because no caller sees it then.
func restarts(err error, log *slog.Logger) bool {
	if !errors.Is(err, errRestart) {
		return false
	}
	log.Warn("starting again", "because", err)
	return true
}

// serveOnce opens an installation and serves as serveOpen does.
func serveOnce(ctx context.Context, c *settings.Config, o engine.Options, log *slog.Logger,
	stdout io.Writer, told *supervision, hangups <-chan os.Signal) (*settings.Config, error) {
	in, err := Open(ctx, c, o, log)
	if err != nil {
		told.stops()
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // a stop, and no refusal
			log.Warn("stopped while it was opening", "error", err)
			return nil, nil
		}
		notStarted(log, err)
		return nil, err
	}
	return in.serveOpen(ctx, c, log, stdout, told, hangups)
}

// serveOpen serves until the installation must be opened again, errRestart, with the settings next:
// c with the secrets that are in force. It stops the installation.
//
// The addresses are written and printed when orders are admitted, or when that takes too long. So
// a program that waits for ports.json can send orders at once.
func (in *Installation) serveOpen(ctx context.Context, c *settings.Config, log *slog.Logger,
	stdout io.Writer, told *supervision, hangups <-chan os.Signal) (next *settings.Config, err error) {
	in.level = levelOf(log)
	defer func() {
		if errors.Is(err, errRestart) {
			told.opensAgain()
		} else {
			told.stops()
		}
		next, err = in.tokens.inForce(c), errors.Join(err, in.Stop())
	}()
	defer in.reloadOnHangup(hangups, log)()
	in.awaitReady(ctx)
	if err := writePorts(c.InDataDir("ports.json"), in.listeners.addresses()); err != nil {
		return nil, err
	}
	if at := in.listeners.consoleURL(); at != "" {
		fmt.Fprintf(stdout, "console: open %s in a browser\n", at)
	}
	for _, e := range in.listeners.open {
		fmt.Fprintf(stdout, "%s listening on %s\n", e.name, e.listener.Addr())
	}
	told.serves(in.Core)
	select {
	case <-ctx.Done():
		log.Info("stopping")
		return nil, nil
	case err := <-in.listeners.failed:
		return nil, err
	case <-in.restart():
		return nil, errRestart
	case err := <-in.replaced():
		notStarted(log, err)
		return nil, err
	}
}

// logRecovery logs what the start has found: a warning for each snapshot that was skipped, and one
// line with the head and the time. boot is journal.BootID.
func logRecovery(log *slog.Logger, k *engine.Engine, boot string) {
	r := k.Recovered
	for _, note := range r.Notes {
		log.Warn("snapshot passed over", "reason", note)
	}
	if r.Room != nil {
		log.Warn("memory is not made resident ahead of the orders", "error", r.Room)
	}
	if k.Options.Durability == journal.DurabilityOS && !k.Options.Member && boot == "" {
		log.Warn("the system hides its boot id: a start does not notice commands that were lost after "+
			"their answers", "file", "/proc/sys/kernel/random/boot_id")
	}
	log.Info("recovered", "sequence", r.Sequence, "trades", r.TradeSeq, "snapshot", r.Snapshot,
		"replayed", r.Replayed, "took", r.Took.Round(time.Millisecond), "durability",
		k.Options.Durability)
}
