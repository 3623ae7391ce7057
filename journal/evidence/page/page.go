package page

import (
	"bytes"
	_ "embed" // the parts of the page
	"encoding/base64"
	"slices"
)

//go:embed verify.wasm.gz
var wasm []byte

//go:embed wasm_exec.js
var exec []byte

//go:embed worker.js
var worker []byte

//go:embed page.html
var text []byte

// Wasm is the verifier, compressed with gzip.
func Wasm() []byte { return wasm }

// Worker is the script of the verifier's thread: Go's own script, then the messages of the page.
// The caller owns the bytes.
func Worker() []byte { return slices.Concat(exec, worker) }

// HTML is the whole page, with everything in it: some megabytes, put together at each call.
func HTML() []byte {
	b := bytes.Replace(text, []byte("/*WORKER*/"), Worker(), 1)
	return bytes.Replace(b, []byte("WASM"), []byte(base64.StdEncoding.EncodeToString(wasm)), 1)
}
