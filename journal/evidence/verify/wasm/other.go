//go:build !js || !wasm

package main

import "log"

// Elsewhere than in a browser no page can call the functions.
func main() {
	log.Fatal("this program runs in a browser: build it with GOOS=js GOARCH=wasm")
}
