//go:build js && wasm

// Command wasm is packages verify and bundle for a browser. It sets two functions of the page,
//
//	posttradeVerify(proofs, keys, witnessKeys) -> {exit, text}
//
// proofs is a Uint8Array or a string, keys and witnessKeys are strings with any number of verifier
// keys between blanks or commas. exit is 0, 1 or 3, as posttrade evidence verify has it. And
//
//	posttradeVerifyExport(name, files, keys, witnessKeys, report, reportName) -> {exit, text}
//
// verifies an export and, unless report is undefined, a report against it. files are pairs of a
// path in the folder and a Uint8Array, report is a Uint8Array. The functions stay for as long as
// the page.
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"syscall/js"

	"posttrade/journal/evidence/bundle"
	"posttrade/journal/evidence/verify"
)

func main() {
	offer("posttradeVerify", func(args []js.Value) (int, string) {
		return verify.Say(bytesOf(args, 0), []string{textOf(args, 1)}, []string{textOf(args, 2)})
	})
	offer("posttradeVerifyExport", verifyExport)
	select {} // the functions are called for as long as the page lives
}

// offer sets a function of the page. A bug that hostile bytes find is an answer.
func offer(name string, verify func(args []js.Value) (exit int, said string)) {
	js.Global().Set(name, js.FuncOf(func(_ js.Value, args []js.Value) (result any) {
		defer func() {
			if cause := recover(); cause != nil {
				result = answer(cannot, fmt.Sprint("cannot read it: ", cause))
			}
		}()
		return answer(verify(args))
	}))
}

const cannot = verify.ExitCannot

func verifyExport(args []js.Value) (exit int, said string) {
	defer runtime.GC() // an engine is large, and a browser gives a module 4 GiB at most
	keys, err := verify.ParseKeys(verify.Fields(textOf(args, 2)), verify.Fields(textOf(args, 3)))
	if err != nil {
		return cannot, err.Error()
	}
	files := map[string][]byte{}
	for i := range args[1].Length() {
		pair := args[1].Index(i)
		files[pair.Index(0).String()] = bytesOf([]js.Value{pair.Index(1)}, 0)
	}
	job := bundle.Job{Name: textOf(args, 0), Read: func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return data, nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}}
	if len(args) > 5 && args[4].Type() == js.TypeObject {
		job.Report, job.File = bytes.NewReader(bytesOf(args, 4)), textOf(args, 5)
	}
	var out strings.Builder
	if err := job.Prove(&keys, &out); err != nil {
		return verify.ExitOf(err)
	}
	return verify.ExitProven, strings.TrimSpace(out.String())
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
