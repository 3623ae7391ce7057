package perf

import (
	"os/exec"
	"runtime"
	"sync"
)

// starts is where children are started: one thread that lives as long as the process, because the
// kernel ends a child when the thread that started it ends.
var starts = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts a child that ends with this process, however that ends: a measurement that is killed
// with -9 leaves no server behind. Children that the child starts in the same way end with the
// child.
//
// It is for every child that this package starts. cmd.Start itself reports what could not be
// started; the caller waits for the child. On other systems than Linux nothing ties the child to
// this process.
func start(cmd *exec.Cmd) error {
	endWithParent(cmd)
	done := make(chan error, 1)
	starts() <- func() { done <- cmd.Start() }
	return <-done
}
