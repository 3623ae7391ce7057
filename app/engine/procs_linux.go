package engine

import (
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// allowedCores is a text of the CPU cores that the process may run on.
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
