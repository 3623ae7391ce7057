package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"posttrade/app/settings"
	"posttrade/journal/evidence/bundle"
	"posttrade/journal/evidence/verify"
)

// keysOf reads the keys on the command line; a key may be the name of a file that holds it. A key
// always has a + in it, and a text without one is taken for a file's name.
//
// Errors: a usage error for no key, and for a text or a file that is none. A file that is there and
// cannot be read is no usage error.
func (e *evidenceFlags) keysOf() (verify.Keys, error) {
	if len(e.keys) == 0 {
		return verify.Keys{}, settings.Usagef("verify needs --key, as posttrade evidence key prints it")
	}
	read := func(flag string, list []string) ([]string, error) {
		var out []string
		for _, text := range list {
			if strings.Contains(text, "+") {
				out = append(out, text)
				continue
			}
			b, err := bundle.ReadFile(text, maxFetched)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, settings.Usagef("%s: %s is no key, and no file of that name exists", flag,
					settings.Printable(text))
			}
			if err != nil {
				return nil, err
			}
			out = append(out, strings.TrimSpace(string(b)))
		}
		return out, nil
	}
	log, err := read("key", e.keys)
	if err != nil {
		return verify.Keys{}, err
	}
	witnesses, err := read("witness-key", e.witnesses)
	if err != nil {
		return verify.Keys{}, err
	}
	k, err := verify.ParseKeys(log, witnesses)
	if err != nil {
		return k, settings.Usagef("%v", err)
	}
	return k, nil
}

// verify checks proofs, logs and exports. What it reads is not trusted, so a bug that it meets is a
// line, not a stack trace.
//
// The first argument decides: the folder of an export, the folder of a log, a newer head when an
// older one is named, else files of proofs.
func (e *evidenceFlags) verify(names []string, stdout io.Writer) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("evidence: cannot read it: %v", cause)
		}
	}()
	keys, err := e.keysOf()
	if err != nil {
		return err
	}
	switch {
	case len(names) == 0:
		return settings.Usagef("verify needs a file of proofs, or a folder")
	case e.old != "" && len(names) > 1:
		return settings.Usagef("unexpected argument %s: --checkpoint is compared with one head or folder",
			settings.Printable(names[1]))
	case e.log != "" && e.old == "":
		return settings.Usagef("--log goes with --checkpoint and a newer head")
	case (e.from != 0 || e.to != 0) && e.report == "":
		return settings.Usagef("--from and --to are the range of a report: they go with --report")
	}
	info, err := os.Stat(names[0])
	if err != nil {
		return err
	}
	switch {
	case info.IsDir() && len(names) > 1:
		return settings.Usagef("unexpected argument %s", settings.Printable(names[1]))
	case info.IsDir() && e.log != "":
		return settings.Usagef("--log goes with the file of a newer head, not with a folder")
	case info.IsDir() && bundle.Is(bundle.Folder(names[0])):
		return e.verifyBundle(&keys, names[0], stdout)
	case e.report != "":
		return settings.Usagef("--report needs the folder of an export")
	case info.IsDir():
		return e.verifyFolder(&keys, names[0], stdout)
	case e.old != "":
		return e.verifyHead(&keys, names[0], stdout)
	}
	return verifyProofs(&keys, names, stdout)
}

// verifyProofs checks every proof of every file, and ends at the first that does not hold. The
// lines before it are proven.
func verifyProofs(keys *verify.Keys, names []string, stdout io.Writer) error {
	for _, name := range names {
		text, err := bundle.ReadFile(name, maxProofs)
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

// oldNote reads the older head; nil when none is given.
func (e *evidenceFlags) oldNote() ([]byte, error) {
	if e.old == "" {
		return nil, nil
	}
	return readNote(e.old)
}

// readNote reads the file of a head.
func readNote(name string) ([]byte, error) {
	text, err := bundle.ReadFile(name, maxFetched)
	if err == nil && !verify.LooksLikeNote(text) {
		err = fmt.Errorf("%s: %w: it is not a note", name, verify.ErrRead)
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

// blamed is the file that an error of comparing two heads is about: that of the older one, or name.
func (e *evidenceFlags) blamed(name string, err error) string {
	var refused *verify.Refusal
	if errors.As(err, &refused) && refused.Blames == verify.BlameOld {
		return e.old
	}
	return name
}

// verifyFolder checks every tile of a log, and the older head if one is given. It lists the files,
// because a log may have partial tiles of several widths at one place, and names those that nothing
// is proven of, such as the heads in checkpoints.
func (e *evidenceFlags) verifyFolder(keys *verify.Keys, dir string, stdout io.Writer) error {
	old, err := e.oldNote()
	if err != nil {
		return err
	}
	names, err := filesOf(dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "checkpoint" })
	x, err := keys.Folder(old, names, bundle.Folder(dir))
	if err != nil {
		return notProven(e.blamed(dir, err), err)
	}
	if old != nil {
		_, err = fmt.Fprintln(stdout, "proven", x)
		return errors.Join(err, nameBehind(x, stdout))
	}
	_, err = fmt.Fprintf(stdout, "proven %s: every tile leads to the head at sequence %d\n",
		x.New.Origin, x.New.Head)
	return errors.Join(err, nameBehind(x, stdout))
}

// filesOf lists the files below a folder, by their names in it.
func filesOf(dir string) (names []string, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// nameBehind names the files that the head does not cover: they may hold anything.
func nameBehind(x *verify.Extension, stdout io.Writer) error {
	for _, name := range x.Behind {
		if _, err := fmt.Fprintf(stdout, "nothing is proven of %s: the head does not cover %s\n",
			settings.Printable(name), howMuch(name, x.New.Size)); err != nil {
			return err
		}
	}
	return nil
}

// howMuch says how much of a file a head does not cover: of a tile it may cover the beginning.
func howMuch(name string, size uint64) string {
	level, n, _, ok := verify.ParseTile(name)
	if ok && n<<verify.TileBits < size>>(verify.TileBits*max(level, 0)) {
		return "all of it"
	}
	return "it"
}

// verifyHead checks that a newer head continues an older one, with the tiles of a running log.
//
// The running log is believed nothing: the tiles prove themselves against the newer head, which is
// signed.
func (e *evidenceFlags) verifyHead(keys *verify.Keys, name string, stdout io.Writer) error {
	if e.log == "" {
		return settings.Usagef("verify --checkpoint needs a folder, or a newer head and --log")
	}
	old, err := e.oldNote()
	if err != nil {
		return err
	}
	note, err := readNote(name)
	if err != nil {
		return err
	}
	x, err := keys.Extends(old, note, fetcher(e.log))
	if err != nil {
		return notProven(e.blamed(name, err), err)
	}
	_, err = fmt.Fprintln(stdout, "proven", x)
	return err
}

// The bounds of what is read, because it comes from strangers: the time of a request; a tile, a
// note or a key, and a file of proofs, in bytes.
const (
	fetchTimeout = 30 * time.Second
	maxFetched   = 1 << 20
	maxProofs    = 1 << 28
)

// fetcher reads the files of a log over HTTP. 404 is a file that is not there; any other status but
// 200 is an error, so nothing is proven.
func fetcher(address string) verify.Read {
	client := &http.Client{Timeout: fetchTimeout}
	return func(name string) ([]byte, error) {
		answer, err := client.Get(strings.TrimSuffix(address, "/") + "/" + name)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		switch answer.StatusCode {
		case http.StatusOK:
			return io.ReadAll(io.LimitReader(answer.Body, maxFetched))
		case http.StatusNotFound:
			return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("%s: status %d", name, answer.StatusCode)
	}
}

// verifyBundle replays an export. It lists the files, so that those that are no part of the export
// are named.
func (e *evidenceFlags) verifyBundle(keys *verify.Keys, dir string, stdout io.Writer) (err error) {
	job := bundle.Job{Name: dir, Read: bundle.Folder(dir)}
	if job.Files, err = filesOf(dir); err != nil {
		return err
	}
	if job.Old, err = e.oldNote(); err != nil {
		return err
	}
	if e.report != "" {
		file, err := os.Open(e.report)
		if err != nil {
			return err
		}
		defer file.Close()
		job.Report, job.File, job.From, job.To = file, e.report, e.from, e.to
	}
	err = job.Prove(keys, stdout)
	var refused *verify.Refusal
	if errors.As(err, &refused) {
		return unproven{fmt.Errorf("not proven: %w", err)}
	}
	return err
}
