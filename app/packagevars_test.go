package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// shared are the package variables that code takes the address of or that hold a lock, with the
// reason why nothing that one caller does is seen by another.
var shared = map[string]string{
	"ring.sleeperLists":                  "stands for the futex of systems that have none",
	"ring/timing.splits":                 "a table that is read by pointer",
	"sidecars/store.keptTables":          "a table that is read by pointer",
	"app/settings.List":                  "a table that is read by pointer",
	"httpapi.undecided":                  "an answer that is read by pointer",
	"perf.starts":                        "the kernel ends a child with the thread that started it",
	"app/apptest.built":                  "a test process builds the program once",
	"app/apptest.program":                "a test process builds the program once",
	"sidecars/store/storetest.theServer": "a test process starts one database server",
}

// TestPackageVariablesDoNotChange: a variable of a package is a table, a sentinel or an embedded
// file. It is neither assigned to, nor counted up, nor does its type lock or count, nor is its
// address taken, but for those that are listed as shared.
func TestPackageVariablesDoNotChange(t *testing.T) {
	rooms := map[string][]*ast.File{}
	for _, s := range sources(t) {
		if !s.test {
			room := path.Dir(s.name)
			rooms[room] = append(rooms[room], s.file)
		}
	}
	found := map[string]bool{}
	for room, files := range rooms {
		for _, v := range changing(files) {
			name := room + "." + v.name
			if found[name] = true; shared[name] == "" {
				t.Errorf("%s: %s", name, v.what)
			}
		}
	}
	for name := range shared {
		if !found[name] {
			t.Errorf("%s is listed and does not change", name)
		}
	}
}

// changingVar is a package variable that changes, or can.
type changingVar struct{ name, what string }

// changing finds the package variables of a package that change, or can.
func changing(files []*ast.File) (list []changingVar) {
	vars := map[string]*ast.ValueSpec{}
	for _, f := range files {
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for _, name := range v.Names {
					if name.Name == "_" {
						continue // an assertion about types
					}
					vars[name.Name] = v
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if locks(vars[name]) {
			list = append(list, changingVar{name, "locks or counts"})
		}
	}
	for _, f := range files {
		hit := func(e ast.Expr, what string) {
			id := rootOf(e)
			if id == nil || vars[id.Name] == nil || id.Obj != nil && id.Obj.Decl != vars[id.Name] {
				return // not of the package, or hidden by a local name
			}
			list = append(list, changingVar{id.Name, what})
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					if n.Tok != token.DEFINE {
						hit(left, "is assigned to")
					}
				}
			case *ast.IncDecStmt:
				hit(n.X, "is counted")
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					hit(n.X, "has its address taken")
				}
			}
			return true
		})
	}
	return list
}

// rootOf is the variable of which an expression is a part.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// locks reports that a declaration names something of sync, except an error to compare with.
func locks(v *ast.ValueSpec) (found bool) {
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // what a function does when it is called is seen where it does it
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			found = found || ok && (x.Name == "sync" || x.Name == "atomic")
		}
		return true
	}
	if v.Type != nil {
		ast.Inspect(v.Type, look)
	}
	for _, value := range v.Values {
		ast.Inspect(value, look)
	}
	return found
}

// TestChangesOfPackageVariablesAreFound plants each way to change one.
func TestChangesOfPackageVariablesAreFound(t *testing.T) {
	for _, text := range []string{
		"var x int; func f() { x = 1 }", "var x int; func f() { x++ }", "var x int; func f() { x += 2 }",
		"var x []int; func f() { x[0] = 1 }", "var x struct{ y int }; func f() { x.y = 1 }",
		"var x *int; func f() { *x = 1 }", "var x int; func f() *int { return &x }",
		"var x [2]int; func f() []int { g(&x[1]); return nil }", "var x sync.Mutex", "var x atomic.Int64",
		"var x = sync.OnceValue(g)", "var x = &atomic.Bool{}",
		"var x map[string]int; func f() { x[``] = 1 }",
		"var x int; func f() { var y int; x, y = y, x }",
	} {
		if list := changing(parsed(t, text)); len(list) == 0 || list[0].name != "x" {
			t.Errorf("%q passes: %v", text, list)
		}
	}
	for _, text := range []string{
		"var x = 1; func f() int { return x }", "var x int; func f() { x := 1; x++; _ = &x }",
		"var x = []int{1}; func f() { for i := range x { g(x[i]) } }",
		"var x int; type t struct{ x int }; func f(v *t) { v.x = 1 }",
	} {
		if list := changing(parsed(t, text)); len(list) != 0 {
			t.Errorf("%q: %v", text, list)
		}
	}
}

func parsed(t *testing.T, text string) []*ast.File {
	t.Helper()
	file := must.Get(parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+
		strings.ReplaceAll(text, "; func", "\nfunc"), 0))(t)
	return []*ast.File{file}
}
