//go:build js && wasm

// Command wasm is packages verify and bundle for a browser. It sets two functions of the page,
//
//	posttradeVerify(proofs, keys, witnessKeys) -> {exit, text}
//
// proofs is a Uint8Array or a string, keys and witnessKeys are strings with any number of verifier
// keys between blanks or commas. exit is 0, 1 or 3, as posttrade evidence verify has it. And
//
//	posttradeVerifyExport(name, read, keys, witnessKeys, report, reportName, told, names)
//	  -> {exit, text}
//
// verifies an export and, unless report is undefined, a report against it. read gives the bytes of
// a path in the folder as a Uint8Array, undefined when it is not there; report is a Uint8Array.
// told(done, of) is called a few times a second with the commands that are replayed. names is an
// array with the paths of all files in the folder: those that are no part of the export are named.
// The functions block their thread, and stay until the module ends: when it has run out of memory,
// a call returns undefined.
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"syscall/js"
	"time"

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

// offer sets a function of the page. A bug that hostile bytes find is an answer, because a panic
// would end the module.
func offer(name string, verify func(args []js.Value) (exit int, said string)) {
	js.Global().Set(name, js.FuncOf(func(_ js.Value, args []js.Value) (result any) {
		defer func() {
			if cause := recover(); cause != nil {
				result = answer(cannot, "cannot read it: "+because(cause))
			}
		}()
		return answer(verify(args))
	}))
}

// cannot is the exit of a call that has nothing to judge
const cannot = verify.ExitCannot

// because is a panic in words: a table that is longer than the whole memory is one.
func because(cause any) string {
	text := fmt.Sprint(cause)
	if strings.Contains(text, "makeslice") {
		return "there is not enough memory in a browser; use posttrade evidence verify"
	}
	return text
}

// verifyExport is posttradeVerifyExport. read is called on the thread of the verifier, which waits
// for its answer.
func verifyExport(args []js.Value) (exit int, said string) {
	defer runtime.GC() // an engine is large, and a browser gives a module 4 GiB at most
	keys, err := verify.ParseKeys(verify.Fields(textOf(args, 2)), verify.Fields(textOf(args, 3)))
	if err != nil {
		return cannot, err.Error()
	}
	job := bundle.Job{Name: textOf(args, 0), Read: func(name string) ([]byte, error) {
		if data := args[1].Invoke(name); data.Type() == js.TypeObject {
			return bytesOf([]js.Value{data}, 0), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}, Progress: progress(args)}
	if len(args) > 5 && args[4].Type() == js.TypeObject {
		job.Report, job.File = bytes.NewReader(bytesOf(args, 4)), textOf(args, 5)
	}
	if len(args) > 7 && args[7].Type() == js.TypeObject {
		for i := range args[7].Length() {
			job.Files = append(job.Files, args[7].Index(i).String())
		}
	}
	var out strings.Builder
	if err := job.Prove(&keys, &out); err != nil {
		return verify.ExitOf(err)
	}
	return verify.ExitProven, strings.TrimSpace(out.String())
}

// progressEvery is how often a page is told how far a replay is.
const progressEvery = 200 * time.Millisecond

// progress calls told, at most every progressEvery; nil when the page gives no function.
func progress(args []js.Value) func(done, of uint64) {
	if len(args) < 7 || args[6].Type() != js.TypeFunction {
		return nil
	}
	last := time.Now()
	return func(done, of uint64) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			args[6].Invoke(float64(done), float64(of))
		}
	}
}

func answer(exit int, text string) map[string]any {
	return map[string]any{"exit": exit, "text": text}
}

// textOf is an argument that is a string; empty for a missing one and for one of another type.
func textOf(args []js.Value, i int) string {
	if i >= len(args) || args[i].Type() != js.TypeString {
		return ""
	}
	return args[i].String()
}

// bytesOf copies the bytes of a Uint8Array out of the page's memory; a string gives its own.
func bytesOf(args []js.Value, i int) []byte {
	if i >= len(args) || args[i].Type() != js.TypeObject {
		return []byte(textOf(args, i))
	}
	b := make([]byte, args[i].Get("length").Int())
	js.CopyBytesToGo(b, args[i])
	return b
}
