package client

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/ring/must"
)

const here = "posttrade/httpapi/client"

// checkPackage type-checks this package, with what it imports as the compiler exported it.
func checkPackage(t *testing.T) *types.Package {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", ".")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	set := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	must.OK(t, err)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := must.Get(parser.ParseFile(set, name, nil, 0))(t)
		files = append(files, f)
	}
	of := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	checked := types.Config{Importer: importer.ForCompiler(set, "gc", of)}
	p, err := checked.Check(here, set, files, nil)
	must.OK(t, err)
	return p
}

// surface collects what is wrong with the exported types and signatures of a package.
type surface struct {
	seen  map[types.Type]bool
	wrong []string
}

func (s *surface) fail(at, format string, args ...any) {
	s.wrong = append(s.wrong, at+": "+fmt.Sprintf(format, args...))
}

// walk looks at a type that users of the package can see at a place.
func (s *surface) walk(at string, of types.Type) {
	if s.seen[of] {
		return
	}
	s.seen[of] = true
	switch of := of.(type) {
	case *types.Named:
		s.named(at, of)
	case *types.Alias:
		s.walk(at, types.Unalias(of))
	case *types.Pointer:
		s.walk(at, of.Elem())
	case *types.Slice:
		s.walk(at, of.Elem())
	case *types.Array:
		s.walk(at, of.Elem())
	case *types.Chan:
		s.walk(at, of.Elem())
	case *types.Map:
		s.walk(at, of.Key())
		s.walk(at, of.Elem())
	case *types.Struct:
		for field := range of.Fields() {
			if field.Exported() || field.Embedded() {
				s.walk(at+"."+field.Name(), field.Type())
			}
		}
	case *types.Signature:
		for _, all := range []*types.Tuple{of.Params(), of.Results()} {
			for v := range all.Variables() {
				s.walk(at, v.Type())
			}
		}
	case *types.Interface:
		for m := range of.Methods() {
			s.walk(at+"."+m.Name(), m.Type())
		}
	}
}

func (s *surface) named(at string, of *types.Named) {
	if p := of.Obj().Pkg(); p == nil || p.Path() != here {
		if p != nil && strings.HasPrefix(p.Path(), "posttrade/") {
			s.fail(at, "%s is a type of an inner package", of)
		}
		for arg := range of.TypeArgs().Types() {
			s.walk(at, arg)
		}
		return
	}
	s.walk(of.Obj().Name(), of.Underlying())
	for m := range of.Methods() {
		if m.Exported() {
			s.method(of.Obj().Name()+"."+m.Name(), m.Signature())
		}
	}
}

// method looks at a method: one of a Client or of a Past that can fail takes a context first.
func (s *surface) method(at string, of *types.Signature) {
	s.walk(at, of)
	if !strings.HasPrefix(at, "Client.") && !strings.HasPrefix(at, "Past.") {
		return
	}
	asks := false
	for result := range of.Results().Variables() {
		text := result.Type().String()
		asks = asks || text == "error" || strings.HasPrefix(text, "iter.")
	}
	if asks && (of.Params().Len() == 0 ||
		of.Params().At(0).Type().String() != "context.Context") {
		s.fail(at, "does not take a context first")
	}
}

// TestUsersNeedNoInnerPackage: no exported name of this package shows a type of another package of
// the product, and every method that asks a server takes a context.
func TestUsersNeedNoInnerPackage(t *testing.T) {
	p := checkPackage(t)
	s := surface{seen: map[types.Type]bool{}}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			s.walk(name, o.Type())
		}
	}
	for _, wrong := range s.wrong {
		t.Error(wrong)
	}
	if len(s.seen) < 100 {
		t.Errorf("only %d types were seen", len(s.seen))
	}
}
