package engine

import (
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// allowedCores is a text of the CPU cores that the process may run on.
//
// It has one letter for each of the machine's cores, t or f, so two texts are equal exactly when
// the sets are. An empty text stands for a set that the kernel does not tell.
func allowedCores() string {
	var cores unix.CPUSet
	if unix.SchedGetaffinity(0, &cores) != nil {
		return ""
	}
	var b strings.Builder
	for cpu := range runtime.NumCPU() {
		b.WriteString(strconv.FormatBool(cores.IsSet(cpu))[:1])
	}
	return b.String()
}
