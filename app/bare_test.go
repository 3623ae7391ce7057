package app_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// TestOnlyMeasurementsUseWhatIsBare: what is declared in a file bare_*.go exists only to be
// measured against. The rest of its package does not use it, and outside of its package only perf
// does.
func TestOnlyMeasurementsUseWhatIsBare(t *testing.T) {
	all := sources(t)
	bare := map[string]map[string]bool{} // the names by package
	for _, s := range all {
		if room := path.Dir(s.name); isBare(s) {
			if bare[room] == nil {
				bare[room] = map[string]bool{}
			}
			for _, name := range declaredIn(s.file) {
				bare[room][name] = true
			}
		}
	}
	if len(bare) < 4 {
		t.Errorf("%d packages have bare files: is the name still the same?", len(bare))
	}
	for _, s := range all {
		room := path.Dir(s.name)
		if s.test || isBare(s) || strings.HasPrefix(room, "perf") {
			continue
		}
		for _, name := range usesOf(s.file, bare[room], bare) {
			t.Errorf("%s uses %s, which exists only to be measured against", s.name, name)
		}
	}
}

func isBare(s sourceFile) bool {
	return !s.test && strings.HasPrefix(path.Base(s.name), "bare_")
}

// declaredIn are the names that a file declares at the top, and those of methods.
func declaredIn(f *ast.File) (names []string) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || !ownType(f, d.Recv.List[0].Type) { // methods of a bare type come with it
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// ownType reports that a file declares the type of a receiver.
func ownType(f *ast.File, receiver ast.Expr) bool {
	id := rootOf(receiver)
	return id != nil && f.Scope.Lookup(id.Name) != nil
}

// usesOf are the bare names that a file uses: those of its own package, and of imported ones.
func usesOf(f *ast.File, own map[string]bool, bare map[string]map[string]bool) (used []string) {
	imported := map[string]map[string]bool{}
	for _, spec := range f.Imports {
		room := strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), "posttrade/")
		if names := bare[room]; names != nil {
			imported[path.Base(room)] = names
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil && imported[x.Name][n.Sel.Name] {
				used = append(used, x.Name+"."+n.Sel.Name)
			}
		case *ast.Ident:
			if n.Obj == nil && own[n.Name] {
				used = append(used, n.Name)
			}
		}
		return true
	})
	return used
}

// TestUsesOfWhatIsBareAreFound plants them.
func TestUsesOfWhatIsBareAreFound(t *testing.T) {
	bare := map[string]map[string]bool{"journal": {"Bare": true, "measured": true}}
	for _, text := range []string{`import "posttrade/journal"; func f() { journal.Bare() }`,
		"func f() { Bare() }", "func f(x y) { x.measured() }", "var x Bare"} {
		if len(usesOf(parsed(t, text)[0], bare["journal"], bare)) == 0 {
			t.Errorf("%q passes", text)
		}
	}
	local := parsed(t, "func f() { Bare := 1; g(Bare) }")[0]
	if used := usesOf(local, bare["journal"], bare); used != nil {
		t.Errorf("a local name counts: %v", used)
	}
}
