package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"posttrade/app/settings"
	"posttrade/ring/must"
)

// aCommand finds what follows the program's name where a command begins, up to the end of the line,
// of a substitution or of the command.
var aCommand = regexp.MustCompile(
	`(?m)(?:^|\$\(|; )\s*(?:\./bin/)?posttrade ((?:"[^"]*"|[^"#)&>|;\n])*)`)

// aVariable finds a variable with a plain value.
var aVariable = regexp.MustCompile(`(?m)^([A-Z]+=[^$\s]+)$`)

// commandsOf returns the arguments of every command line of the program in a block.
func commandsOf(t *testing.T, b block) (all [][]string) {
	t.Helper()
	text := strings.ReplaceAll(b.text, "\\\n", " ")
	variables := strings.Join(aVariable.FindAllString(text, -1), "\n")
	for _, m := range aCommand.FindAllStringSubmatch(text, -1) {
		words := strings.NewReplacer(" ... ", " ", "=... ", "="+strings.Repeat("x", 32)+" ").
			Replace(m[1] + " ") // what is left out stands elsewhere on the page
		out, err := exec.Command("bash", "-c", variables+"\nprintf '%s\\n' "+words).Output()
		must.OK(t, err)
		all = append(all, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"))
	}
	return all
}

// TestCommandsOfDocumentsAreTaken gives every command line of every page to the program. A setting
// with a wrong value stands behind it, which is refused behind the arguments, so none is carried
// out.
func TestCommandsOfDocumentsAreTaken(t *testing.T) {
	found := 0
	for _, page := range documents(t) {
		for _, b := range blocksOf(t, page) {
			for _, args := range commandsOf(t, b) {
				found++
				var out, errs strings.Builder
				code := dispatch(commands(), append(args, "--ring.idle=wrong"), &out, &errs)
				if code != settings.ExitUsage || !strings.Contains(errs.String(), "ring.idle") {
					t.Errorf("%s:%d: posttrade %s: exit code %d: %s%s", filepath.Base(page), b.line,
						strings.Join(args, " "), code, out.String(), errs.String())
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("%d command lines found, the pages have more", found)
	}
}

// ways say how the blocks of commands of each page are run, beside a server that has done what
// README does: "run" as written, "stopped" after the server has ended, "stream" until it prints,
// "" not: it needs other machines, other programs or minutes.
var ways = map[string][]string{
	"cluster.md":     {"", "members", ""},
	"feeds.md":       {"stream", ""},
	"http.md":        {"run", "run", "run"},
	"operations.md":  {"run", "stopped", "", "run", "", "", "", ""},
	"performance.md": {""},
	"profiling.md":   {"", "", "", "", ""},
	"sessions.md":    {""},
	"time.md":        {"run", "run", "run"},
}

// TestPagesRunAsWritten runs the commands of the pages in docs but those of the tutorial, which has
// a test of its own. A page with another number of blocks must be listed anew. The pages need the
// machine's own curl, which CI has.
func TestPagesRunAsWritten(t *testing.T) {
	path := machinesTools(t)
	for _, page := range must.Get(filepath.Glob("../../docs/*.md"))(t) {
		name := filepath.Base(page)
		var blocks []block
		for _, b := range blocksOf(t, page) {
			if b.kind == "sh" {
				blocks = append(blocks, b)
			}
		}
		if name == "tutorial.md" {
			continue
		}
		if len(blocks) != len(ways[name]) {
			t.Errorf("%s has %d blocks of commands, want %d", name, len(blocks), len(ways[name]))
			continue
		}
		if path == "" || strings.Join(ways[name], "") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newReader(t, path)
			for _, b := range blocksOf(t, "../../README.md") {
				if b.kind == "sh" {
					s.do(b)
				}
			}
			s.do(block{text: "TOKEN=$T; posttrade() { ./bin/posttrade \"$@\" </dev/null; }\n"})
			for i, b := range blocks {
				b.runs(s, ways[name][i])
			}
			if name == "http.md" {
				file := must.Get(os.ReadFile(filepath.Join(s.dir, "trades.parquet")))(t)
				if !strings.HasPrefix(string(file), "PAR1") {
					t.Errorf("trades.parquet begins %.100q", file)
				}
			}
		})
	}
}

// runs runs a block in a way of ways.
func (b block) runs(s *reader, way string) {
	switch way {
	case "run":
		if s.server == nil {
			s.startServer()
		}
		if printed := s.do(b); strings.Contains(printed, `"code":"`) {
			s.t.Errorf("line %d: a request was refused: %s", b.line, printed)
		}
	case "stopped":
		s.stopServer()
		s.do(b)
	case "stream":
		b.text = "{ " + strings.TrimSpace(b.text) + " || true; } | sed -n '/^data:/{p;q}'\n"
		if printed := s.do(b); !strings.Contains(printed, "data:") {
			s.t.Errorf("line %d: no event came: %q", b.line, printed)
		}
	case "members":
		addresses := must.Get(freeAddresses(6))(s.t)
		var pairs []string
		for i, address := range addresses {
			pairs = append(pairs, fmt.Sprintf("127.0.0.1:%d10%d", 7+i/3, 1+i%3), address)
		}
		// The members end with the shell, too, when a command fails.
		b.text = "trap 'kill $(jobs -p)' EXIT\n" +
			strings.NewReplacer(append(pairs, "/tmp/", s.dir+"/")...).Replace(b.text) +
			"kill %1 %2 %3; wait %1 %2 %3\n"
		s.do(b)
	}
}

// freeAddresses are addresses on the loopback on which nothing listens.
func freeAddresses(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}
