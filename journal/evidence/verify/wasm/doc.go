//go:build js && wasm

// Command wasm is package verify for a browser. It sets one function of the page,
//
//	posttradeVerify(proofs, keys, witnessKeys) -> {exit, text}
//
// proofs is a Uint8Array or a string, keys and witnessKeys are strings with any number of verifier
// keys between blanks or commas. exit is 0, 1 or 3, as posttrade evidence verify has it. The
// function stays for as long as the page.
package main

import (
	"fmt"
	"syscall/js"

	"posttrade/journal/evidence/verify"
)

func main() {
	js.Global().Set("posttradeVerify", js.FuncOf(func(_ js.Value, args []js.Value) (result any) {
		defer func() {
			if cause := recover(); cause != nil {
				result = answer(verify.ExitCannot, fmt.Sprint(cause))
			}
		}()
		return answer(verify.Say(bytesOf(args, 0), []string{textOf(args, 1)}, []string{textOf(args, 2)}))
	}))
	select {} // the function is called for as long as the page lives
}

func answer(exit int, text string) map[string]any {
	return map[string]any{"exit": exit, "text": text}
}

func textOf(args []js.Value, i int) string {
	if i >= len(args) || args[i].Type() != js.TypeString {
		return ""
	}
	return args[i].String()
}

func bytesOf(args []js.Value, i int) []byte {
	if i >= len(args) || args[i].Type() != js.TypeObject {
		return []byte(textOf(args, i))
	}
	b := make([]byte, args[i].Get("length").Int())
	js.CopyBytesToGo(b, args[i])
	return b
}
