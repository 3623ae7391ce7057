// Package page is the verifier of packages verify and bundle as one page for a browser: it needs no
// server and no network, and works when it is opened from a file.
// The parts are embedded: the verifier as WebAssembly (built by .ci/verifier from verify/wasm,
// compressed with gzip), the script of Go's distribution that starts it (wasm_exec.js, see
// wasm_exec.LICENSE), and the page's own text.
//
// The verifier works on a thread of its own, a worker of the browser, so that the page can say how
// far it is and can be closed at any time. worker.js has the messages between the two.
//
// Other pages may serve the parts: Wasm, and the script of the thread.
// Any goroutine may use the package; its bytes are never changed.
package page
