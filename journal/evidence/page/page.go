package page

import (
	"bytes"
	_ "embed" // the parts of the page
	"encoding/base64"
)

//go:embed verify.wasm.gz
var wasm []byte

//go:embed wasm_exec.js
var exec []byte

//go:embed page.html
var text []byte

// Wasm is the verifier, compressed with gzip.
func Wasm() []byte { return wasm }

// Exec is the script that a page needs before it starts the verifier.
func Exec() []byte { return exec }

// HTML is the whole page, with everything in it.
func HTML() []byte {
	b := bytes.Replace(text, []byte("/*EXEC*/"), exec, 1)
	return bytes.Replace(b, []byte("WASM"), []byte(base64.StdEncoding.EncodeToString(wasm)), 1)
}
