package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms lists every package and the packages of this module that it may import. A package that is
// not in the list fails the test, so that a new package is a deliberate decision. What tests import
// is held by the order of the storeys alone.
var rooms = map[string][]string{
	"ring":               {},
	"ring/ringtest":      {},
	"ring/waittest":      {},
	"ring/timing":        {},
	"matcher/strictjson": {},
	"matcher":            {"ring"},
	"matcher/flow":       {},
	"matcher/gate":       {"ring", "matcher", "matcher/strictjson"},
	"matcher/desk":       {"ring", "matcher"},
	"journal":            {"ring/timing", "ring", "matcher", "matcher/strictjson"},
	"matcher/note":       {"matcher", "matcher/desk"},
	"blotter":            {"ring", "matcher"},

	"matcher/admission":      {"matcher", "matcher/gate", "matcher/desk", "blotter"},
	"matcher/session/wire":   {"ring", "matcher"},
	"matcher/session/client": {"ring", "matcher", "matcher/session/wire"},
	"matcher/session": {"ring", "matcher", "matcher/admission", "matcher/gate", "matcher/desk",
		"blotter", "matcher/session/wire"},

	"journal/acts":          {"matcher", "matcher/note", "matcher/strictjson", "journal"},
	"journal/audit":         {"ring", "matcher", "matcher/strictjson", "journal"},
	"journal/asof":          {"ring", "matcher", "journal", "blotter"},
	"journal/asof/asoftest": {"matcher", "journal"},
	"journal/whatif":        {"matcher", "matcher/strictjson", "journal", "journal/asof"},
	"journal/why": {"matcher", "matcher/strictjson", "journal", "journal/asof",
		"blotter"},
	"journal/quorum":               {"ring/timing", "ring", "matcher", "journal"},
	"journal/journaltest":          {},
	"journal/evidence/verify":      {"matcher/strictjson"},
	"journal/evidence/verify/wasm": {"journal/evidence/verify"},
	"journal/evidence/bundle": {"matcher", "matcher/strictjson", "journal", "journal/audit",
		"journal/evidence", "journal/evidence/verify"},
	"journal/evidence/page": {},
	"journal/evidence": {"ring", "matcher", "matcher/strictjson", "journal", "journal/asof",
		"journal/evidence/verify"},
	"journal/backup": {"journal"},
	"blotter/feed":   {"ring", "matcher", "journal", "blotter"},

	"sidecars/export":            {"matcher", "matcher/strictjson", "blotter", "sidecars/store"},
	"sidecars/pace":              {},
	"sidecars/store":             {"matcher", "matcher/strictjson", "ring"},
	"sidecars/store/storetest":   {"sidecars/store"},
	"sidecars/broker":            {},
	"sidecars/broker/brokertest": {"sidecars/broker"},
	"sidecars/projection":        {"matcher", "matcher/strictjson", "sidecars/pace", "sidecars/store"},
	"sidecars/settlement":        {"sidecars/pace", "sidecars/store"},
	"sidecars/recon":             {"matcher", "matcher/strictjson", "sidecars/pace", "sidecars/store"},
	"sidecars/tca":               {"matcher", "matcher/strictjson", "sidecars/pace", "sidecars/store"},
	"sidecars/control":           {"matcher/strictjson"},
	"sidecars/source":            {"sidecars/control", "sidecars/store"},
	"sidecars/accounts":          {"sidecars/control", "sidecars/source", "sidecars/store"},
	"sidecars/securities":        {"sidecars/control", "sidecars/source", "sidecars/store"},
	"sidecars/outbox":            {"sidecars/control", "sidecars/pace", "sidecars/store"},
	"sidecars/bootstrap":         {"sidecars/control"},
	"sidecars/riskextract": {"matcher", "matcher/strictjson", "ring", "sidecars/pace",
		"sidecars/store"},

	"httpapi/console":         {"matcher/gate"},
	"httpapi/console/browser": {}, // a module of its own: tests in a real browser
	"httpapi/client":          {"matcher", "matcher/strictjson"},
	"httpapi": {"ring/timing", "ring", "matcher", "matcher/strictjson", "matcher/gate", "matcher/desk",
		"matcher/admission", "matcher/note", "blotter",
		"journal", "journal/acts", "journal/audit", "journal/asof", "journal/evidence", "journal/why",
		"blotter/feed", "sidecars/export",
		"sidecars/store", "sidecars/settlement", "sidecars/recon", "sidecars/tca",
		"sidecars/control", "sidecars/accounts", "sidecars/securities", "sidecars/riskextract",
		"httpapi/client"},

	"perf/orderflow": {"matcher"},
	"perf/load":      {"app/latency", "ring"},
	"perf/regress":   {},
	"perf/report":    {"app/latency"},
	"perf/replay": {"matcher", "matcher/admission", "matcher/desk", "blotter", "httpapi/client",
		"app/engine",
		"app/installation", "app/latency", "app/settings", "app/top", "perf/orderflow"},
	"perf": {"ring", "matcher", "matcher/strictjson", "matcher/gate", "matcher/desk", "matcher/flow",
		"matcher/session/client", "matcher/session/wire", "journal", "journal/asof", "journal/audit",
		"journal/backup", "journal/evidence",
		"journal/quorum", "journal/whatif", "blotter", "sidecars/bootstrap", "sidecars/control",
		"sidecars/feeds",
		"sidecars/outbox", "sidecars/projection", "sidecars/recon", "sidecars/riskextract",
		"sidecars/securities", "sidecars/source", "sidecars/store", "sidecars/tca", "httpapi",
		"httpapi/client", "app/engine", "app/installation", "app/latency", "app/settings",
		"perf/load", "perf/orderflow", "perf/regress", "perf/report"},
	"sidecars/feeds": {"matcher", "matcher/strictjson", "matcher/gate", "matcher/desk", "blotter",
		"httpapi/client", "sidecars/control",
		"sidecars/broker", "sidecars/outbox", "sidecars/bootstrap"},
	"sidecars/prices":   {"matcher", "matcher/strictjson", "matcher/gate", "matcher/desk"},
	"sidecars/bookings": {"sidecars/broker", "sidecars/projection"},

	"app/settings": {"ring", "matcher", "matcher/strictjson", "matcher/session", "journal",
		"journal/quorum", "sidecars/control",
		"sidecars/store", "httpapi"},
	"app/engine": {"ring", "matcher", "matcher/gate", "matcher/desk", "matcher/session", "journal",
		"journal/quorum", "journal/asof",
		"blotter", "blotter/feed"},
	"app/stats": {"ring/timing", "ring", "matcher", "matcher/session", "matcher/session/wire",
		"journal",
		"httpapi"},
	"app/latency": {},
	"app/systemd": {},
	"app/backups": {"journal", "journal/backup", "sidecars/store"},
	"app/top":     {"matcher/session", "sidecars/control", "app/latency", "app/stats"},
	"app/flight":  {"journal", "app/settings", "app/stats"},
	"app/inspect": {"matcher", "matcher/strictjson", "journal", "journal/asof", "journal/why",
		"journal/whatif", "httpapi", "app/settings", "app/top"},
	"app/watch":   {"httpapi/client"},
	"app/apptest": {"ring/waittest", "journal", "app/settings", "app/stats"},
	"app":         {},

	"app/installation": {"ring/timing", "ring", "matcher", "matcher/strictjson", "matcher/gate",
		"matcher/admission", "matcher/desk",
		"matcher/note", "matcher/session", "matcher/session/wire", "journal", "journal/acts",
		"journal/asof", "journal/audit", "journal/backup", "journal/evidence",
		"journal/evidence/page", "journal/quorum",
		"blotter", "blotter/feed", "sidecars/accounts", "sidecars/bookings", "sidecars/bootstrap",
		"sidecars/broker", "sidecars/control", "sidecars/feeds", "sidecars/outbox",
		"sidecars/prices", "sidecars/projection", "sidecars/recon", "sidecars/riskextract",
		"sidecars/securities", "sidecars/settlement", "sidecars/source", "sidecars/store",
		"sidecars/tca", "httpapi", "httpapi/console", "app/backups", "app/engine", "app/flight",
		"app/settings",
		"app/stats", "app/systemd"},

	"cmd/posttrade": {"matcher", "matcher/gate", "journal", "journal/asof", "journal/backup",
		"app/backups",
		"journal/evidence",
		"journal/evidence/bundle", "journal/evidence/page", "journal/evidence/verify",
		"journal/quorum", "sidecars/broker",
		"sidecars/control", "sidecars/feeds", "sidecars/riskextract", "sidecars/store", "httpapi",
		"httpapi/client", "app/engine", "app/inspect", "app/installation", "app/settings",
		"app/stats", "app/top", "app/watch", "perf", "perf/load", "perf/replay"},
}

// storeys is the order of the top-level folders. A package, and a test, may import what is on its
// own storey or below.
var storeys = map[string]int{
	"ring": 0, "matcher": 1, "journal": 2, "blotter": 2, "sidecars": 3, "httpapi": 4, "app": 5,
	"perf": 6, "cmd": 7,
}

// doors are the packages that stand above their folder's storey, with the folder on whose storey
// they are: they read the blotter's views. A session is a way in beside HTTP, and admission is what
// both ask.
var doors = map[string]string{"matcher/admission": "blotter", "matcher/session": "blotter"}

// storeyOf is the storey of a package.
func storeyOf(room string) (storey int, known bool) {
	folder, _, _ := strings.Cut(room, "/")
	if door, ok := doors[room]; ok {
		folder = door
	}
	storey, known = storeys[folder]
	return storey, known
}

// soleImporters names the one folder that may import each outside engine, so that its replacement
// changes one folder.
var soleImporters = map[string][]string{
	"github.com/cockroachdb/pebble": {"journal", "journal/quorum", "journal/journaltest"},
	"github.com/valyala/fasthttp":   {"httpapi"},
	"github.com/hashicorp/raft":     {"journal/quorum"},
	"github.com/nats-io":            {"sidecars/broker", "sidecars/broker/brokertest"},
	"database/sql":                  {"sidecars/store"},
	"zombiezen.com/go/sqlite":       {"sidecars/store"},
	"github.com/jackc/pgx":          {"sidecars/store"},
}

// hotBans are the packages that a file that opens with //perf:hot may not import.
var hotBans = []string{"fmt", "log", "log/slog", "time", "errors", "strings", "reflect", "bytes"}

type sourceFile struct {
	name string // slash separated, from the module root
	file *ast.File
	fset *token.FileSet
	hot  bool
	test bool
}

// sources parses every Go file of the module.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	var all []sourceFile
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if b := d.Name(); name != ".." && (strings.HasPrefix(b, ".") || b == "testdata" || b == "bin" ||
				b == "data") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, sourceFile{
			name: strings.TrimPrefix(filepath.ToSlash(name), "../"), file: file, fset: fset,
			hot:  strings.HasPrefix(string(text), "//perf:hot\n"),
			test: strings.HasSuffix(name, "_test.go"),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func importsOf(s sourceFile) []string {
	var out []string
	for _, spec := range s.file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		out = append(out, name)
	}
	return out
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		room := path.Dir(s.name)
		if _, known := rooms[room]; !known {
			t.Errorf("%s: folder %q is not in the list of rooms", s.name, room)
			continue
		}
		for _, imported := range importsOf(s) {
			if rest, ours := strings.CutPrefix(imported, "posttrade/"); ours {
				if !s.test && rest != room && !slices.Contains(rooms[room], rest) {
					t.Errorf("%s imports %s: the list of rooms does not allow it", s.name, rest)
				}
				above, known := storeyOf(rest)
				if at, ours := storeyOf(room); !known || !ours || above > at {
					t.Errorf("%s imports %s, which is on a storey above it", s.name, rest)
				}
			}
			for outside, allowed := range soleImporters {
				if strings.HasPrefix(imported, outside) && !slices.Contains(allowed, room) {
					t.Errorf("%s imports %s: only %v may", s.name, imported, allowed)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	seen, documented := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		room := path.Dir(s.name)
		seen[room] = true
		if s.file.Doc != nil && (path.Base(s.name) == "doc.go" || room == "cmd/posttrade") {
			documented[room] = true
		}
	}
	for room := range seen {
		if !documented[room] {
			t.Errorf("package %s has no doc.go with a package comment", room)
		}
	}
}

// TestNoPackageHasAnInit: the function that opens a package makes what the package needs.
func TestNoPackageHasAnInit(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init", s.fset.Position(f.Pos()))
			}
		}
	}
}

// TestHotFilesStayHot checks that every file that opens with //perf:hot uses only what the path of
// an order may use.
func TestHotFilesStayHot(t *testing.T) {
	hot := 0
	for _, s := range sources(t) {
		if !s.hot {
			continue
		}
		hot++
		for _, imported := range importsOf(s) {
			if slices.Contains(hotBans, imported) {
				t.Errorf("%s is hot and imports %s", s.name, imported)
			}
		}
		for _, v := range hotViolations(s.file) {
			t.Errorf("%s: %s in a hot file", s.fset.Position(v.pos), v.what)
		}
	}
	if hot < 5 {
		t.Errorf("%d hot files found, want at least 5: is the marker still there?", hot)
	}
}

type violation struct {
	pos  token.Pos
	what string
}

// hotViolations finds the statements that lock, block, start or allocate.
func hotViolations(file *ast.File) []violation {
	var out []violation
	add := func(n ast.Node, what string) { out = append(out, violation{n.Pos(), what}) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "go statement")
		case *ast.DeferStmt:
			add(n, "defer")
		case *ast.SelectStmt:
			add(n, "select")
		case *ast.SendStmt:
			add(n, "channel send")
		case *ast.ChanType:
			add(n, "channel")
		case *ast.MapType:
			add(n, "map")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				add(n, "channel receive")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "sync" {
				add(n, "sync."+n.Sel.Name)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "make" || f.Name == "new") {
				add(n, f.Name)
			}
		}
		return true
	})
	return out
}

// TestHotRulesCanFail adds each banned thing and expects the rule to find it.
func TestHotRulesCanFail(t *testing.T) {
	for _, body := range []string{
		"go f()", "defer f()", "ch <- 1", "<-ch", "select {}", "_ = make([]int, 1)",
		"var m map[int]int; _ = m", "var mu sync.Mutex; mu.Lock()", "_ = new(int)",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc g() { "+body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(hotViolations(file)) == 0 {
			t.Errorf("%q passes the hot-file rules", body)
		}
	}
}

// TestLinkerSetsVariablesThatAreThere: the linker says nothing about a -X that names no variable.
func TestLinkerSetsVariablesThatAreThere(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	set := regexp.MustCompile(`-X posttrade/([a-z/]+)\.(\w+)=`).FindAllStringSubmatch(string(makefile),
		-1)
	if len(set) == 0 {
		t.Fatal("the Makefile sets no variable")
	}
	for _, s := range set {
		found := false
		for _, file := range sources(t) {
			if path.Dir(file.name) == s[1] && file.file.Scope.Lookup(s[2]) != nil {
				found = true
			}
		}
		if !found {
			t.Errorf("the Makefile sets %s of %s, which has no such variable", s[2], s[1])
		}
	}
}
