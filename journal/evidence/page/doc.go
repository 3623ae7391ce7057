// Package page is the verifier of packages verify and bundle as one page for a browser: it needs no
// server and no network, and works when it is opened from a file.
// The parts are embedded: the verifier as WebAssembly (built by .ci/verifier from verify/wasm,
// compressed with gzip), the script of Go's distribution that starts it (wasm_exec.js, see
// wasm_exec.LICENSE), and the page's own text.
//
// Other pages may serve the parts: Wasm and Exec. The module sets the functions
//
//	posttradeVerify(proofs, keys, witnessKeys) -> {exit, text}
//	posttradeVerifyExport(name, files, keys, witnessKeys, report, reportName) -> {exit, text}
//
// Any goroutine may use the package; its bytes are never changed.
package page
