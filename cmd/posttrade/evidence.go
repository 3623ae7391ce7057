package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/journal/evidence"
	"posttrade/journal/evidence/page"
	"posttrade/matcher"
)

// evidenceUsage is the forms of the command
const evidenceUsage = "evidence key|proof|verify|export|page [flags]"

// evidenceFlags are what the commands of evidence read beside the settings.
type evidenceFlags struct {
	// keys are those of the log, any of which may have signed; witnesses must all have cosigned.
	keys, witnesses []string
	// old is the file of an older head and log the address of a running log, for verify.
	old, log string
	// report is the file of a regulatory report, for verify.
	report string
	// from and to are the range of export, and of the report in lines that is verified. 0: from the
	// first on, to what the newest head covers; and of a report what was exported.
	from, to uint64
}

// runEvidence is `posttrade evidence`: the commands of the transparency log.
//
// verify and page are for a party that has no data directory: they use no setting.
func runEvidence(args []string, stdout, stderr io.Writer) int {
	var e evidenceFlags
	f := newFlags(evidenceUsage,
		"The transparency log of the journal: what it proves, and how an outsider checks it.\n"+
			"  key      print the public key of the log in data.dir, for verifiers\n"+
			"  proof    prove records to a stranger: evidence proof trd-1 ord-7 SW-9 12 > p.json\n"+
			"           An id of digits is an input sequence. Works on data.dir, also beside its server\n"+
			"  verify   check proofs: evidence verify p.json --key VKEY [--witness-key VKEY...]\n"+
			"           Needs no data directory, no network. Exit 0 proven, 3 not proven, 1 cannot read\n"+
			"           verify --checkpoint OLD --key VKEY (DIR | NEW --log URL)  is OLD a prefix?\n"+
			"           verify DIR --key VKEY                 a log, or an export: all of it\n"+
			"           verify --report FILE --key VKEY DIR   a regulatory report, byte by byte\n"+
			"  export   write a folder that proves a range: evidence export --from A --to B DIR\n"+
			"  page     print a web page that verifies in a browser, from a file")
	e.declare(f)
	c, err := f.read(args, maxProofIDs, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if len(f.rest) == 0 {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", evidenceUsage))
	}
	return settings.Exit(stderr, e.run(f.rest[0], c, f.rest[1:], stdout))
}

// declare declares the flags of all commands. Each says in its help which command reads it; the
// others pass it over.
func (e *evidenceFlags) declare(f *flags) {
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
	f.StringVar(&e.old, "checkpoint", "", "verify: `file` of an older head that was kept")
	f.StringVar(&e.log, "log", "", "verify: `address` of a running log, such as http://host:18110/log")
	f.StringVar(&e.report, "report", "", "verify: `file` of a regulatory report")
	f.Uint64Var(&e.from, "from", 0, "first `sequence` of an export (default: 1), or of the report in "+
		"lines that is verified")
	f.Uint64Var(&e.to, "to", 0, "last `sequence` of an export (default: what the newest head "+
		"covers), or of that report")
	f.once("checkpoint", "log", "report", "from", "to")
}

// run runs the command of that name.
func (e *evidenceFlags) run(name string, c *settings.Config, args []string,
	stdout io.Writer) error {
	switch name {
	case "key":
		return printLogKey(c, stdout)
	case "proof":
		return printProofs(c, args, stdout)
	case "verify":
		return e.verify(args, settings.Plain{W: stdout}) // names of a stranger's log are in it
	case "export":
		return e.export(c, args, stdout)
	case "page":
		_, err := stdout.Write(page.HTML())
		return err
	}
	return settings.Usagef(
		"unknown evidence command %s; there are key, proof, verify, export and page",
		settings.Printable(name))
}

// maxProofIDs bounds the arguments of a command line, and so the ids of proof.
const maxProofIDs = 1000

// withJournal opens the journal of data.dir for reading, also beside a running server, and gives f
// the options of its log as the server has them. The journal is as it is at the call.
func withJournal(c *settings.Config,
	f func(j *journal.Journal, o evidence.Options) error) (err error) {
	j, err := journal.Read(c.InDataDir("journal"),
		journal.VerifyOptions{ArchiveDir: c.String("journal.archive-dir")})
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

// printLogKey prints the public key. Before the first start of a server it makes the key, as that
// start would, so that the operator can hand it out first.
func printLogKey(c *settings.Config, stdout io.Writer) error {
	return withJournal(c, func(j *journal.Journal, o evidence.Options) error {
		s, err := evidence.LoadSigner(o.Dir, o.KeyFile, evidence.Origin(o.Origin, j.Seed()))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(stdout, s.VKey)
		return err
	})
}

// printProofs prints a proof a line, each against the newest published head. The head is read
// before the journal is opened: then the journal has all that the head covers. All ids are read
// before the first proof is made, so a wrong one prints nothing.
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
	note, err := evidence.ReadHead(installation.EvidenceDir(c))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(stdout)
	err = withJournal(c, func(j *journal.Journal, o evidence.Options) (err error) {
		past, err := asof.New(j, asof.Options{Dir: c.InDataDir("asof")})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, past.Close()) }()
		p, err := evidence.NewProver(past, o.Dir)
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

// printProof prints one proof. A contradiction between journal and head is exit code 3.
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
