//go:build !js

package ring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// The release store of amd64 is a plain assignment, so nothing but the compiler's own order keeps
// it behind the stores before it. The test reads that order in the compiler's listing. On arm64 the
// store is one instruction, and neither a call nor an exchange.
func TestTheCompilerKeepsTheOrderOfStores(t *testing.T) {
	source := must.Get(os.ReadFile("testdata/order/order.go"))(t)
	lines := strings.Split(string(source), "\n")
	want := map[string][]string{
		"Word":     {"before = row[7]", "row[0] = v", "row[2] = 1", "release", "row[5] = v"},
		"Sequence": {"row[0] = v", "row[2] = v", "release", "row[5] = v"},
		"Lock":     {"release", "row[0] = v", "row[2] = v", "release", "row[5] = v"},
	}
	for arch, release := range map[string]string{"amd64": "MOVQ", "arm64": "STLR"} {
		t.Run(arch, func(t *testing.T) {
			listing := compiled(t, arch)
			for name, order := range want {
				if got := stores(listing, name, release, lines); !slices.Equal(got, order) {
					t.Errorf("%s: the listing has\n%q, want\n%q", name, got, order)
				}
			}
		})
	}
}

// compiled returns the compiler's listing of testdata/order, by function.
func compiled(t *testing.T, arch string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "build", "-gcflags=-S", "./testdata/order")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	listing, name := map[string][]string{}, ""
	for line := range strings.Lines(string(out)) {
		if before, _, found := strings.Cut(line, " STEXT "); found {
			name = before[strings.LastIndexByte(before, '.')+1:]
		}
		listing[name] = append(listing[name], strings.TrimSuffix(line, "\n"))
	}
	return listing
}

// An instruction of a listing with its place in the source.
var instruction = regexp.MustCompile(`\(([^()]+\.go):(\d+)\)\t(\w[\w.]*)\t(.*)`)

// stores returns what a function does to memory, in the order of its instructions: the text of the
// line that touches a row, and "release" for the instruction that publishes it. A call of Begin, on
// a system where the compiler does not inline it, is a release.
func stores(listing map[string][]string, name, release string, source []string) (order []string) {
	memory := regexp.MustCompile(`(^|\s|\d)\((AX|BX|CX|DX|SI|DI|R\d+)\)`)
	for _, line := range listing[name] {
		m := instruction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[2])
		switch file := filepath.Base(m[1]); {
		case strings.HasPrefix(file, "store_"):
			if m[3] == release && memory.MatchString(m[4]) {
				order = append(order, "release")
			}
		case file != "order.go":
		case m[3] == "CALL" && strings.Contains(m[4], "Begin"):
			order = append(order, "release")
		case memory.MatchString(m[4]) && strings.Contains(source[number-1], "row["):
			order = append(order, strings.TrimSpace(source[number-1]))
		}
	}
	return order
}
