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
	"sync"
	"testing"

	"posttrade/ring/must"
)

type sourceFile struct {
	name string // slash separated, from the module root
	file *ast.File
	fset *token.FileSet
	hot  bool
	test bool
}

// sources are all Go files of the module.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	return must.Get(parseModule())(t)
}

var parseModule = sync.OnceValues(func() (all []sourceFile, err error) {
	err = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch b := d.Name(); { // what Go itself passes over, and what runs and builds leave behind
			case name == "..":
			case strings.HasPrefix(b, "."), b == "testdata", name == "../bin", name == "../data":
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
		all = append(all, sourceFile{
			name: strings.TrimPrefix(filepath.ToSlash(name), "../"), file: file, fset: fset,
			hot:  strings.HasPrefix(string(text), "//perf:hot\n"),
			test: strings.HasSuffix(name, "_test.go"),
		})
		return err
	})
	return all, err
})

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
			if other, ours := strings.CutPrefix(imported, "posttrade/"); ours && other != room {
				inTest := s.test && (other == "ring/must" || slices.Contains(testRooms[room], other))
				if !inTest && !slices.Contains(rooms[room], other) {
					t.Errorf("%s imports %s: the list of rooms does not allow it", s.name, other)
				}
				above, known := storeyOf(other)
				if at, ours := storeyOf(room); !known || !ours || above > at {
					t.Errorf("%s imports %s, which is on a storey above it", s.name, other)
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

// TestTheListOfRoomsIsShort: the list allows nothing that is not there.
func TestTheListOfRoomsIsShort(t *testing.T) {
	code, tests := map[string]bool{}, map[string]bool{} // "room imports other"
	for _, s := range sources(t) {
		for _, imported := range importsOf(s) {
			other, _ := strings.CutPrefix(imported, "posttrade/")
			if edge := path.Dir(s.name) + " imports " + other; s.test {
				tests[edge] = true
			} else {
				code[edge] = true
			}
		}
	}
	for list, seen := range map[*map[string][]string]map[string]bool{&rooms: code, &testRooms: tests} {
		for room, others := range *list {
			for _, other := range others {
				if edge := room + " imports " + other; !seen[edge] {
					t.Errorf("the list says that %s", edge)
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

// TestFoldersOfWhatMustLastAreDurable: os.MkdirAll syncs no name, so a power cut could take back a
// folder with every synced file in it. The packages here keep what is not made again.
func TestFoldersOfWhatMustLastAreDurable(t *testing.T) {
	lasts := []string{"journal/evidence", "journal/backup", "sidecars/riskextract"}
	derived := map[string]string{ // function by file
		"journal/evidence/files.go": "write", // the tiles, which follow from the journal
	}
	for _, s := range sources(t) {
		if s.test || !slices.Contains(lasts, path.Dir(s.name)) {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == derived[s.name] {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if ok && call.Sel.Name == "MkdirAll" {
					t.Errorf("%s: want disk.MakeDir", s.fset.Position(n.Pos()))
				}
				return true
			})
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
		must.OK(t, err)
		if len(hotViolations(file)) == 0 {
			t.Errorf("%q passes the hot-file rules", body)
		}
	}
}

// TestLinkerSetsVariablesThatAreThere: the linker says nothing about a -X that names no variable.
func TestLinkerSetsVariablesThatAreThere(t *testing.T) {
	makefile := must.Get(os.ReadFile("../Makefile"))(t)
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
