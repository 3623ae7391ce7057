package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/evidence"
	"posttrade/journal/evidence/page"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

const evidenceUsage = "evidence key|proof|verify|page [flags]"

// evidenceFlags are what the commands of evidence read beside the settings.
type evidenceFlags struct {
	keys, witnesses []string
}

// runEvidence is `posttrade evidence`: the commands of the transparency log.
func runEvidence(args []string, stdout, stderr io.Writer) int {
	var e evidenceFlags
	f := newFlags(evidenceUsage,
		"The transparency log of the journal: what it proves, and how an outsider checks it.\n"+
			"  key      print the public key of the log in data.dir, for verifiers\n"+
			"  proof    prove records to a stranger: evidence proof trd-1 ord-7 SW-9 12 > p.json\n"+
			"           An id of digits is an input sequence. Works on data.dir, also beside its server\n"+
			"  verify   check proofs: evidence verify p.json --key VKEY [--witness-key VKEY...]\n"+
			"           Needs no data directory and no network. Exit 0 proven, 3 not proven, 1 cannot read\n"+
			"  page     print a web page that verifies in a browser, from a file: evidence page > verify.html")
	list := func(to *[]string) func(string) error {
		return func(text string) error {
			*to = append(*to, text)
			return nil
		}
	}
	f.Func("key", "verify: public `key` of the log, or the file that holds it; any of several",
		list(&e.keys))
	f.Func("witness-key", "verify: public `key` of a witness that must have cosigned",
		list(&e.witnesses))
	c, err := f.read(args, maxProofIDs, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if len(f.rest) == 0 {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", evidenceUsage))
	}
	rest := f.rest[1:]
	switch f.rest[0] {
	case "key":
		return settings.Exit(stderr, printLogKey(c, stdout))
	case "proof":
		return settings.Exit(stderr, printProofs(c, rest, stdout))
	case "verify":
		return settings.Exit(stderr, e.verify(rest, stdout))
	case "page":
		_, err := stdout.Write(page.HTML())
		return settings.Exit(stderr, err)
	}
	return settings.Exit(stderr,
		settings.Usagef("unknown evidence command %s; there are key, proof, verify and page",
			settings.Printable(f.rest[0])))
}

// maxProofIDs bounds the ids on a command line.
const maxProofIDs = 1000

// withJournal opens the journal of data.dir for reading.
func withJournal(c *settings.Config,
	f func(j *journal.Journal, o evidence.Options) error) (err error) {
	j, err := journal.Read(c.InDataDir("journal"), journal.VerifyOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	text, _ := j.Genesis()
	g, err := matcher.ParseGenesis(text)
	if err != nil {
		return err
	}
	return f(j, installation.EvidenceOptions(c, g))
}

func printLogKey(c *settings.Config, stdout io.Writer) error {
	return withJournal(c, func(j *journal.Journal, o evidence.Options) error {
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return err
		}
		s, err := evidence.LoadSigner(o.Dir, o.KeyFile, evidence.Origin(o.Origin, j.Seed()))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(stdout, s.VKey)
		return err
	})
}

// printProofs prints a proof a line, each against the newest published head.
func printProofs(c *settings.Config, ids []string, stdout io.Writer) error {
	if len(ids) == 0 {
		return settings.Usagef("proof needs ids: trd-1, ord-7, SW-9, SWPT-9 or an input sequence")
	}
	wanted := make([]evidence.Wanted, len(ids))
	for i, id := range ids {
		w, ok := evidence.ParseWanted(id)
		if !ok {
			return settings.Usagef("%s is not trd-1, ord-7, SW-9, SWPT-9 or an input sequence",
				settings.Printable(id))
		}
		wanted[i] = w
	}
	out := bufio.NewWriter(stdout)
	err := withJournal(c, func(j *journal.Journal, o evidence.Options) error {
		g, _ := j.Genesis()
		parsed, err := matcher.ParseGenesis(g)
		if err != nil {
			return err
		}
		p, err := evidence.NewProver(j, o.Dir, engine.RebuildFrom(parsed).Engine)
		if err != nil {
			return err
		}
		note, err := p.Newest()
		if err != nil {
			return err
		}
		for _, w := range wanted {
			if err := printProof(p, w, note, out); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, out.Flush())
}

func printProof(p *evidence.Prover, w evidence.Wanted, note []byte, out io.Writer) error {
	ctx := context.Background()
	at, err := p.Find(ctx, w)
	if err != nil {
		return err
	}
	proof, err := p.Prove(ctx, at, note)
	if errors.Is(err, evidence.ErrContradiction) {
		return fmt.Errorf("%w: %w", settings.ErrMismatch, err)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(proof.Append(nil))
	return err
}

// keysOf reads the keys on the command line; a key may be the name of a file that holds it.
func (e *evidenceFlags) keysOf() (verify.Keys, error) {
	if len(e.keys) == 0 {
		return verify.Keys{}, settings.Usagef("verify needs --key, as posttrade evidence key prints it")
	}
	read := func(list []string) ([]string, error) {
		var out []string
		for _, text := range list {
			if strings.Contains(text, "+") {
				out = append(out, text)
				continue
			}
			b, err := os.ReadFile(text)
			if err != nil {
				return nil, err
			}
			out = append(out, strings.TrimSpace(string(b)))
		}
		return out, nil
	}
	log, err := read(e.keys)
	if err != nil {
		return verify.Keys{}, err
	}
	witnesses, err := read(e.witnesses)
	if err != nil {
		return verify.Keys{}, err
	}
	k, err := verify.ParseKeys(log, witnesses)
	if err != nil {
		return k, settings.Usagef("%v", err)
	}
	return k, nil
}

// verify checks proofs.
func (e *evidenceFlags) verify(names []string, stdout io.Writer) error {
	keys, err := e.keysOf()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return settings.Usagef("verify needs a file of proofs")
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		proofs, err := verify.Proofs(text)
		if err != nil {
			return notProven(name, err)
		}
		for _, p := range proofs {
			proven, err := keys.Check(p)
			if err != nil {
				return notProven(name, err)
			}
			fmt.Fprintln(stdout, "proven", proven)
		}
	}
	return nil
}

// unproven is the error of what is not proven: exit 3.
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
