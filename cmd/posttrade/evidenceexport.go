package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/evidence"
	"posttrade/journal/evidence/export"
	"posttrade/journal/evidence/verify"
)

// export writes the folder of a range, and verifies it with the log's own key. The head is read
// before the journal is opened, as for proofs.
func (e *evidenceFlags) export(c *settings.Config, rest []string, stdout io.Writer) error {
	if len(rest) != 1 {
		return settings.Usagef("usage: posttrade evidence export --from A --to B DIR")
	}
	head, err := evidence.ReadHead(installation.EvidenceDir(c))
	if err != nil {
		return err
	}
	return withJournal(c, func(j *journal.Journal, o evidence.Options) error {
		s, err := evidence.LoadSigner(o.Dir, o.KeyFile, evidence.Origin(o.Origin, j.Seed()))
		if err != nil {
			return err
		}
		p, err := export.Write(context.Background(), export.Input{Journal: j, Log: o.Dir,
			Engine: o.Engine, Key: s.VKey, Head: head}, max(e.from, 1), e.to, rest[0])
		if errors.Is(err, evidence.ErrContradiction) {
			return unproven{err}
		}
		if err != nil {
			return err
		}
		p.Print(stdout)
		return nil
	})
}

// unproven is the error of what is not proven: exit 3. It keeps the words of the error, which a
// wrapped ErrMismatch would begin with its own.
type unproven struct{ error }

// Unwrap implements errors.Unwrap.
func (u unproven) Unwrap() error { return u.error }

// Is makes an unproven error a mismatch.
func (u unproven) Is(target error) bool { return target == settings.ErrMismatch }

// notProven words what a verifier has refused. What cannot be read is a plain failure.
func notProven(name string, err error) error {
	var refused *verify.Refusal
	if !errors.As(err, &refused) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return unproven{fmt.Errorf("not proven: %s: %w", name, err)}
}
