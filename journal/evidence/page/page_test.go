package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// TestThePageNeedsNothingElse: every part is in it, and it fetches nothing.
func TestThePageNeedsNothingElse(t *testing.T) {
	html := string(HTML())
	for _, bad := range []string{"/*WORKER*/", "WASM\"", "src=", "fetch(", "http:", "https:",
		"import("} {
		own := strings.Replace(html, string(exec), "", 1) // the script names what it does not use
		if strings.Contains(own, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	if !strings.Contains(html, string(exec)) || len(html) < len(wasm) {
		t.Error("a part is missing")
	}
	z, err := gzip.NewReader(bytes.NewReader(Wasm()))
	must.OK(t, err)
	module, err := io.ReadAll(z)
	if err != nil || !bytes.HasPrefix(module, []byte("\x00asm")) {
		t.Errorf("%d bytes, %v", len(module), err)
	}
}
