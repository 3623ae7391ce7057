package installation

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/quorum"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// The alert rules, and the page that explains them.
const (
	rulesFile   = "../../deploy/prometheus/alerts.yml"
	runbookFile = "../../docs/operations.md"
)

func readText(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(name))(t)
	return string(text)
}

// alerts are the names in the rules.
func alerts(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(
		readText(t, rulesFile), -1) {
		names = append(names, m[1])
	}
	return names
}

// readyzParts are the names of the parts of /readyz, read from the source: each is a text at Name
// in a httpapi.Part. A name that goes on ("source account") is found by its beginning.
func readyzParts(t *testing.T) (names []string) {
	t.Helper()
	files := must.Get(filepath.Glob("*.go"))(t)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || !isPart(literal) {
				return true
			}
			for _, e := range literal.Elts {
				if inner, ok := e.(*ast.CompositeLit); ok {
					names = append(names, partNames(inner)...)
				}
			}
			names = append(names, partNames(literal)...)
			return true
		})
		ast.Inspect(file, func(n ast.Node) bool { // those that a helper makes
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "part" {
				names = append(names, textOf(call.Args[0])...)
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && isLoops(f) {
				at := 0
				if f.Sel.Name == "startAt" {
					at = 1
				}
				names = append(names, textOf(call.Args[at])...)
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isLoops is d.loops.start or startAt: a loop that ends with an error is a part by its name.
func isLoops(f *ast.SelectorExpr) bool {
	of, ok := f.X.(*ast.SelectorExpr)
	return ok && of.Sel.Name == "loops" && (f.Sel.Name == "start" || f.Sel.Name == "startAt")
}

// isPart reports a httpapi.Part or a list of them.
func isPart(c *ast.CompositeLit) bool {
	of := c.Type
	if list, ok := of.(*ast.ArrayType); ok {
		of = list.Elt
	}
	s, ok := of.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Part"
}

func partNames(c *ast.CompositeLit) (names []string) {
	for _, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Name" {
				names = append(names, textOf(kv.Value)...)
			}
		}
	}
	return names
}

// textOf is a text, or the beginning of a sum.
func textOf(e ast.Expr) []string {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		e = sum.X
	}
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return nil
	}
	text, _ := strconv.Unquote(literal.Value)
	return []string{text}
}

// TestTheNightShiftFindsEverything: each alert has a heading of its own with its three parts, each
// part of /readyz and each code of a refused start a line; and the page explains nothing that does
// not exist.
func TestTheNightShiftFindsEverything(t *testing.T) {
	page := readText(t, runbookFile)
	names := alerts(t)
	if len(names) < 30 {
		t.Fatalf("only %d alerts: %v", len(names), names)
	}
	for _, name := range names {
		_, rest, found := strings.Cut(page, "\n#### "+name+"\n")
		paragraph, _, _ := strings.Cut(rest, "\n#")
		for _, part := range []string{"**Means.** ", "**Look at.** ", "**Do.** "} {
			if !found || !strings.Contains(paragraph, part) {
				t.Errorf("%s: no %q under its heading", name, part)
			}
		}
		if !strings.Contains(readText(t, rulesFile),
			"runbook: docs/operations.md#"+strings.ToLower(name)+"\n") {
			t.Errorf("%s: the rule does not name its paragraph", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^#### (\w+)$`).FindAllStringSubmatch(page, -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("the page explains %s, which is no alert", m[1])
		}
	}

	_, section, _ := strings.Cut(page, "\n## What `/readyz` says\n")
	section, _, _ = strings.Cut(section, "\n## ")
	parts := readyzParts(t)
	if len(parts) < 20 || !slices.Contains(parts, "kill switch") || !slices.Contains(parts, "tca") {
		t.Fatalf("the parts of /readyz: %q", parts)
	}
	for _, part := range parts {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + regexp.QuoteMeta(part)).MatchString(section) {
			t.Errorf("/readyz: no line for the part %q", part)
		}
	}

	_, section, _ = strings.Cut(page, "\n## When a start is refused\n")
	section, _, _ = strings.Cut(section, "\n## ")
	codes := []string{refusedSetting, refusedOther}
	for _, r := range refusals {
		codes = append(codes, r.code)
	}
	for _, code := range codes {
		if !strings.Contains(section, "\n| `"+code+"` |") {
			t.Errorf("refused starts: no line for %s", code)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(section,
		-1) {
		if !slices.Contains(codes, m[1]) {
			t.Errorf("refused starts: %s is no code", m[1])
		}
	}
}

// TestARefusedStartHasACode: wrapped errors too, the particular one first, and a line in the log.
func TestARefusedStartHasACode(t *testing.T) {
	for want, err := range map[string]error{
		"OLDER_JOURNAL":    fmt.Errorf("TCA file: %w", errOlderJournal),
		"HISTORY_DIVERGED": errors.Join(journal.ErrDiverged, journal.ErrCorrupt),
		"JOURNAL_CORRUPT":  journal.ErrCorrupt,
		"NO_PERMISSION":    fmt.Errorf("data.dir: %w", os.ErrPermission),
		"CLUSTER_FOREIGN":  fmt.Errorf("cluster: %w", quorum.ErrOtherMember),
		refusedSetting:     settings.Usagef("x.y: no"),
		refusedOther:       errors.New("a new one"),
	} {
		if got := codeOfRefusal(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	readOnly := &os.PathError{Op: "open", Path: "anchor", Err: syscall.EROFS}
	if got := codeOfRefusal(readOnly); got != "NO_PERMISSION" {
		t.Errorf("%v: %s", readOnly, got)
	}
	var log waittest.Log
	notStarted(slog.New(slog.NewTextHandler(&log, nil)), settings.Usagef("x.y: no"))
	if !strings.Contains(log.String(), "code=SETTING") {
		t.Errorf("the log: %s", log.String())
	}
	seen := map[string]bool{}
	for i, r := range refusals {
		if seen[r.code] && refusals[i-1].code != r.code || r.is == nil {
			t.Errorf("%s is at two places of the list, or without an error", r.code)
		}
		seen[r.code] = true
	}
}
