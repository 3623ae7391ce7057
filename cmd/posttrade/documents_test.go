package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"posttrade/ring/must"
)

// defaultPorts are the addresses in the documents.
var defaultPorts = map[string]string{
	"order-matcher": "18110", "trade-processor": "18091", "account-service": "18088",
	"reference-data": "18085", "admin": "18111", "console": "18100",
}

// block is a fenced block of a document.
type block struct {
	line int
	kind string // sh, json or empty
	text string
}

// blocksOf reads a document's fenced blocks, in order.
func blocksOf(t *testing.T, path string) (all []block) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	var open *block
	for n, line := range strings.Split(string(text), "\n") {
		switch fence, ok := strings.CutPrefix(line, "```"); {
		case ok && open == nil:
			open = &block{line: n + 1, kind: fence}
		case ok:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block does not end", path, open.line)
	}
	return all
}

// TestDocumentsRunAsWritten runs every command of README and tutorial, in order, from an empty
// folder, and compares the output with the text of the document: with the machine's own curl and
// sqlite3 where they are, and with the stand-ins for both.
func TestDocumentsRunAsWritten(t *testing.T) {
	paths := map[string]string{"stand-ins": toolsInPath(t, "curl", "sqlite3")}
	if own := machinesTools(t); own != "" {
		paths["machine's tools"] = own
	}
	for tools, path := range paths {
		for _, document := range []string{"../../README.md", "../../docs/tutorial.md"} {
			t.Run(filepath.Base(document)+" with "+tools, func(t *testing.T) {
				t.Parallel()
				runDocument(t, document, path)
			})
		}
	}
}

// runDocument runs the commands of a document with a PATH.
func runDocument(t *testing.T, document, path string) {
	s := newReader(t, path)
	var printed string
	for _, b := range blocksOf(t, document) {
		switch b.kind {
		case "sh":
			printed = s.do(b)
		case "json":
			wantShown(t, fmt.Sprintf("%s:%d", document, b.line), b.text, printed)
		}
	}
}

// machinesTools is the PATH when the machine has the documents' tools, which CI has.
func machinesTools(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"curl", "sqlite3"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Error(err)
			}
			t.Logf("the stand-ins alone: %v", err)
			return ""
		}
	}
	return os.Getenv("PATH")
}

// reader does what a reader of a document does, with a shell in a folder and a server.
type reader struct {
	t      *testing.T
	dir    string
	in     io.Writer
	out    *bufio.Scanner
	server *exec.Cmd
	ports  *strings.Replacer
}

// blockEnd is printed after a block that has succeeded.
const blockEnd = "-- end of block --"

func newReader(t *testing.T, path string) *reader {
	s := &reader{t: t, dir: t.TempDir(), ports: strings.NewReplacer()}
	binary, err := exec.LookPath("posttrade") // the test program itself, see TestMain
	must.OK(t, err)
	must.OK(t, os.Mkdir(filepath.Join(s.dir, "bin"), 0o755))
	must.OK(t, os.Symlink(binary, filepath.Join(s.dir, "bin/posttrade")))
	shell := exec.Command("bash", "-euo", "pipefail")
	shell.Dir = s.dir
	shell.Env = append(os.Environ(), "PATH="+path)
	shell.Stderr = t.Output()
	if s.in, err = shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	must.OK(t, err)
	s.out = bufio.NewScanner(out)
	s.out.Buffer(nil, 1<<20)
	must.OK(t, shell.Start())
	t.Cleanup(func() {
		s.stopServer()
		_ = s.in.(io.Closer).Close()
		_ = shell.Wait() // the block that failed has reported it
	})
	return s
}

// do runs a block and returns what it prints.
func (s *reader) do(b block) (printed string) {
	s.t.Helper()
	switch {
	case strings.HasPrefix(b.text, "make run"):
		s.startServer()
		return ""
	case strings.HasPrefix(b.text, "make test"):
		return "" // this test is what the command runs
	case strings.HasPrefix(b.text, "./bin/posttrade journal"):
		s.stopServer()
	}
	fmt.Fprintf(s.in, "%s\nprintf '\\n%%s\\n' '%s'\n", s.ports.Replace(b.text), blockEnd)
	for s.out.Scan() {
		if s.out.Text() == blockEnd {
			return printed
		}
		printed += s.out.Text() + "\n"
	}
	s.t.Fatalf("line %d: the block has failed:\n%s\nit printed:\n%s", b.line, b.text, printed)
	return ""
}

// startServer does what make run does, on any free ports.
func (s *reader) startServer() {
	s.t.Helper()
	args := []string{"serve"}
	for name := range defaultPorts {
		args = append(args, "--"+name+".listen=127.0.0.1:0")
	}
	s.server = exec.Command("./bin/posttrade", args...)
	s.server.Dir = s.dir
	s.server.Stderr = s.t.Output()
	out := must.Get(s.server.StdoutPipe())(s.t)
	must.OK(s.t, s.server.Start())
	lines := bufio.NewScanner(out)
	var pairs []string
	for len(pairs) < 2*len(defaultPorts) {
		if !lines.Scan() {
			s.t.Fatal("the server ended before it listened")
		}
		if name, address, found := strings.Cut(lines.Text(), " listening on "); found {
			pairs = append(pairs, "localhost:"+defaultPorts[name], address)
		}
	}
	s.ports = strings.NewReplacer(pairs...)
}

// stopServer does what Ctrl-C does.
func (s *reader) stopServer() {
	if s.server == nil {
		return
	}
	server := s.server
	s.server = nil
	if err := server.Process.Signal(syscall.SIGINT); err != nil {
		s.t.Error(err)
	}
	if err := server.Wait(); err != nil {
		s.t.Errorf("the server: %v", err)
	}
}

// wantShown reports lines that a document shows and a command has not printed: each line of shown
// must be part of a JSON value in printed, in order.
func wantShown(t *testing.T, where, shown, printed string) {
	t.Helper()
	values := jsonIn(printed)
	for _, line := range strings.Split(strings.TrimSpace(shown), "\n") {
		var want any
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatalf("%s: %v in %s", where, err, line)
		}
		found := false
		for len(values) > 0 && !found {
			found = part(want, values[0])
			values = values[1:]
		}
		if !found {
			t.Fatalf("%s: the document shows\n%s\nthe commands printed\n%s", where, line, printed)
		}
	}
}

// jsonIn finds the JSON objects in the output of commands; curl adds no line end.
func jsonIn(printed string) (values []any) {
	for {
		at := strings.IndexByte(printed, '{')
		if at < 0 {
			return values
		}
		printed = printed[at:]
		var value any
		d := json.NewDecoder(strings.NewReader(printed))
		if d.Decode(&value) != nil {
			printed = printed[1:]
			continue
		}
		values = append(values, value)
		printed = printed[d.InputOffset():]
	}
}

// part reports that every member of want is in got, with the same value.
func part(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for name := range w {
			value, has := g[name]
			ok = ok && has && part(w[name], value)
		}
		return ok
	case []any:
		g, ok := got.([]any)
		ok = ok && len(g) == len(w)
		for i := range w {
			ok = ok && part(w[i], g[i])
		}
		return ok
	}
	return want == got
}

// documents are the paths of all pages.
func documents(t *testing.T) []string {
	t.Helper()
	pages := must.Get(filepath.Glob("../../docs/*.md"))(t)
	return append(pages, "../../README.md", "../../ARCHITECTURE.md", "../../CHANGELOG.md",
		"../../journal/FORMAT.md")
}

// TestDocumentsArePages: README has one page, and no line is wider than a reader's window.
func TestDocumentsArePages(t *testing.T) {
	for name, most := range map[string]int{"../../README.md": 200, "../../ARCHITECTURE.md": 200} {
		text := must.Get(os.ReadFile(name))(t)
		if lines := strings.Count(string(text), "\n"); lines >= most {
			t.Errorf("%s has %d lines, want fewer than %d", name, lines, most)
		}
		if filepath.Base(name) == "README.md" && len(text) >= 10_000 {
			t.Errorf("README.md has %d bytes, want fewer than 10,000", len(text))
		}
	}
	vague := regexp.MustCompile(`(?i)\b(nobody|somebody|whoever)\b|(^|[.:;] )Who [a-z]`)
	for _, name := range documents(t) {
		most := 120
		if filepath.Base(name) == "CHANGELOG.md" {
			most = 160
		}
		eachLine(t, name, func(n int, line string, code bool) {
			table := strings.HasPrefix(line, "|")
			if width := utf8.RuneCountInString(line); width > most && !code && !table {
				t.Errorf("%s:%d is %d columns wide, want at most %d", name, n, width, most)
			}
			if found := vague.FindString(line); found != "" && !code {
				t.Errorf("%s:%d says %q: name the caller, the client or the process", name, n, found)
			}
		})
	}
}

// eachLine calls f for each line of a document; code tells whether the line is in a fenced block.
func eachLine(t *testing.T, name string, f func(n int, line string, code bool)) {
	t.Helper()
	text := must.Get(os.ReadFile(name))(t)
	code := false
	for n, line := range strings.Split(string(text), "\n") {
		fence := strings.HasPrefix(line, "```")
		f(n+1, line, code || fence)
		if fence {
			code = !code
		}
	}
}

// TestDocumentsLinkToWhatIsThere: each relative link of a page leads to a file, and its anchor to a
// heading there.
func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, name := range documents(t) {
		eachLine(t, name, func(n int, line string, code bool) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if code {
					continue
				}
				page := name // of a link within the page
				if m[1] != "" {
					page = filepath.Join(filepath.Dir(name), m[1])
				}
				if _, err := os.Stat(page); err != nil {
					t.Errorf("%s:%d: %v", name, n, err)
				} else if m[2] != "" && !slices.Contains(anchors(t, page), m[2]) {
					t.Errorf("%s:%d: %s has no heading for #%s", name, n, page, m[2])
				}
			}
		})
	}
}

// anchors are those of a page's headings, as the pages' readers make them: in lower case, a hyphen
// for a blank, and no other character but letters, digits, hyphens and underscores.
func anchors(t *testing.T, page string) (all []string) {
	t.Helper()
	eachLine(t, page, func(_ int, line string, code bool) {
		heading := strings.TrimLeft(line, "#")
		if code || heading == line || !strings.HasPrefix(heading, " ") {
			return
		}
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading)))
	})
	return all
}

// TestPartSeesADifference: a document with another number is detected.
func TestPartSeesADifference(t *testing.T) {
	printed := jsonIn(`text {"a":1,"b":[{"c":2,"d":3}]}{"e":1} text`)
	if len(printed) != 2 {
		t.Fatalf("%d values in the text, want 2", len(printed))
	}
	for _, tt := range []struct {
		shown string
		same  bool
	}{
		{`{"a":1}`, true},
		{`{"b":[{"c":2}]}`, true},
		{`{"a":2}`, false},
		{`{"b":[]}`, false},
		{`{"b":[{"c":2},{"c":2}]}`, false},
		{`{"e":1}`, false},
	} {
		if got := part(jsonIn(tt.shown)[0], printed[0]); got != tt.same {
			t.Errorf("%s is part of %v: %v, want %v", tt.shown, printed[0], got, tt.same)
		}
	}
}
