//go:build !unix

package storetest

import "os/exec"

// apart has nothing to do: a server of the tests' own runs on Unix systems only.
func apart(*exec.Cmd, string) error { return nil }
