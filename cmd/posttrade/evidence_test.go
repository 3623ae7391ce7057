package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"posttrade/app/settings"
	"posttrade/journal/evidence"
	"posttrade/journal/evidence/verify"
	"posttrade/ring/must"
)

// desk is what an auditor has: files, and the folder of a log without a command.
type desk struct {
	t    *testing.T
	dir  string
	log  string // the folder of the log
	head string // the file of its head
	key  string // of the log
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	d := &desk{t: t, dir: dir, log: filepath.Join(dir, "log"), head: filepath.Join(dir, "head")}
	must.OK(t, os.Mkdir(d.log, 0o700))
	s := must.Get(evidence.LoadSigner(t.TempDir(), "", "posttrade/test"))(t)
	d.key = s.VKey
	empty := verify.Checkpoint{Origin: s.Name(), Root: verify.Root(nil), HeadRoot: verify.Root(nil)}
	text := must.Get(note.Sign(&note.Note{Text: empty.Text()}, s))(t)
	must.OK(t, os.WriteFile(d.head, text, 0o600))
	must.OK(t, os.WriteFile(filepath.Join(d.log, "checkpoint"), text, 0o600))
	return d
}

// file writes a file and returns its path.
func (d *desk) file(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	must.OK(d.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// want runs a verification, which must end with an exit code and one line that begins so.
func (d *desk) want(exit int, begins string, args ...string) {
	d.t.Helper()
	var out bytes.Buffer
	code := runEvidence(append([]string{"verify", "--key", d.key}, args...), &out, &out)
	if code != exit || !strings.HasPrefix(out.String(), begins) ||
		strings.Count(out.String(), "\n") != 1 {
		d.t.Errorf("%.300q: exit %d, want %d: %swant %s", args, code, exit, &out, begins)
	}
}

// TestWhatNeverWasAHead is nothing to judge, and the line names its file.
func TestWhatNeverWasAHead(t *testing.T) {
	d := newDesk(t)
	nowhere := "--log=http://127.0.0.1:1" // heads of empty trees need no tile
	d.want(settings.ExitOK, "proven ", "--checkpoint", d.head, d.log)
	d.want(settings.ExitOK, "proven ", "--checkpoint", d.head, d.head, nowhere)
	for name, text := range map[string]string{"hello": "hello\n", "empty": "",
		"paragraphs": "Dear auditor,\n\nthe head is well.\n", "binary": "\x00\xff\n\n\x80"} {
		file := d.file(name, text)
		said := "posttrade: " + file + ": cannot be read: it is not a note"
		d.want(settings.ExitFailed, said, "--checkpoint", file, d.log)
		d.want(settings.ExitFailed, said, "--checkpoint", file, d.head, nowhere)
		d.want(settings.ExitFailed, said, "--checkpoint", d.head, file, nowhere)
		folder := filepath.Join(d.dir, name+" log")
		must.OK(t, os.Mkdir(folder, 0o700))
		must.OK(t, os.WriteFile(filepath.Join(folder, "checkpoint"), []byte(text), 0o600))
		d.want(settings.ExitFailed, "posttrade: "+folder+": cannot be read: its checkpoint is not a note",
			folder)
	}
	missing := filepath.Join(d.dir, "missing")
	d.want(settings.ExitFailed, "posttrade: open "+missing, "--checkpoint", missing, d.log)
}

// TestWhatTheHeadDoesNotCoverIsNamed: a file that no head covers may hold anything.
func TestWhatTheHeadDoesNotCoverIsNamed(t *testing.T) {
	d := newDesk(t)
	must.OK(t, os.MkdirAll(filepath.Join(d.log, "tile", "0"), 0o700))
	for _, name := range []string{"tile/0/x\n", "checkpoints", "log.pub"} {
		must.OK(t, os.WriteFile(filepath.Join(d.log, filepath.FromSlash(name)), nil, 0o600))
	}
	said := ""
	for _, name := range []string{"checkpoints", "log.pub", "tile/0/x\n"} {
		said += "\nnothing is proven of " + settings.Printable(name) + ": the head does not cover it"
	}
	for _, args := range [][]string{{d.log}, {"--checkpoint", d.head, d.log}} {
		var out bytes.Buffer
		code := runEvidence(append([]string{"verify", "--key", d.key}, args...), &out, &out)
		if code != settings.ExitOK || !strings.HasSuffix(out.String(), said+"\n") {
			t.Errorf("%q: exit %d: %s", args, code, &out)
		}
	}
}

// TestATileMayBeCoveredInPart: what is said of one depends on its place.
func TestATileMayBeCoveredInPart(t *testing.T) {
	for _, tt := range []struct {
		name string
		size uint64
		want string
	}{
		{"tile/entries/000", 0, "it"}, {"tile/entries/000", 1, "all of it"},
		{"tile/0/001", 256, "it"}, {"tile/0/001.p/7", 257, "all of it"}, {"tile/1/000", 255, "it"},
		{"tile/1/000", 256, "all of it"}, {"tile/0/01", 900, "it"}, {"checkpoints", 900, "it"},
	} {
		if got := howMuch(tt.name, tt.size); got != tt.want {
			t.Errorf("%s, %d leaves: %s, want %s", tt.name, tt.size, got, tt.want)
		}
	}
}

// TestNoArgumentOfVerifyIsPassedOver: what is not looked at must not seem proven.
func TestNoArgumentOfVerifyIsPassedOver(t *testing.T) {
	d := newDesk(t)
	nowhere := "--log=http://127.0.0.1:1"
	for _, args := range [][]string{
		{"--checkpoint", d.head, d.head, d.head, nowhere}, {"--checkpoint", d.head, d.log, d.head},
		{d.head, nowhere}, {d.log, nowhere}, {"--from=1", d.log}, {"--to=1", d.log},
		{"--from=1", "--to=2", d.head}, {"--checkpoint", d.head, "--to=2", d.head, nowhere},
	} {
		d.want(settings.ExitUsage, "posttrade: ", args...)
	}
}

// TestAStrangersNamesStayPrintable: the origin of a log is text that its operator has chosen.
func TestAStrangersNamesStayPrintable(t *testing.T) {
	d := newDesk(t)
	s := must.Get(evidence.LoadSigner(t.TempDir(), "", "posttrade/test"))(t)
	d.key = s.VKey
	none := verify.Root(nil)
	empty := verify.Checkpoint{Origin: "a\u009b2Jb", Root: none, HeadRoot: none}
	text := must.Get(note.Sign(&note.Note{Text: empty.Text()}, s))(t)
	must.OK(t, os.WriteFile(filepath.Join(d.log, "checkpoint"), text, 0o600))
	d.want(settings.ExitOK, `proven a\u009b2Jb: `, d.log)
}

// TestADamagedHeadIsNotProven, whichever byte it is, and the line names its file.
func TestADamagedHeadIsNotProven(t *testing.T) {
	d := newDesk(t)
	text := must.Get(os.ReadFile(d.head))(t)
	for at := range text {
		changed := bytes.Clone(text)
		changed[at] ^= 1 << (at % 8)
		file := d.file("changed", string(changed))
		said := "posttrade: not proven: " + file
		d.want(settings.ExitMismatch, said, "--checkpoint", file, d.log)
		d.want(settings.ExitMismatch, said, "--checkpoint", file, d.head, "--log=http://127.0.0.1:1")
		d.want(settings.ExitMismatch, said, "--checkpoint", d.head, file, "--log=http://127.0.0.1:1")
	}
}

// TestEvidenceFlagsAreGivenOnce: a second value would leave the first file unchecked.
func TestEvidenceFlagsAreGivenOnce(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"checkpoint", "log", "report", "from", "to"} {
		said := "posttrade: flag --" + name + " is given twice\n"
		d.want(settings.ExitUsage, said, "--"+name, "1", d.log, "--"+name+"=1")
		d.want(settings.ExitUsage, said, "-"+name+"=1", "--"+name, "2", d.log)
	}
	another := must.Get(evidence.LoadSigner(t.TempDir(), "", "posttrade/test"))(t)
	d.want(settings.ExitOK, "proven ", "--key", another.VKey, d.log) // of several keys any may sign
	d.want(settings.ExitUsage, "posttrade: invalid value", "--from", "x", d.log)
}
