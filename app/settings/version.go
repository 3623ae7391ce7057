package settings

import (
	"fmt"
	"runtime/debug"
)

// BuildCommit is set by the linker; see the Makefile.
var BuildCommit string

// Version is one line: name, commit, Go version, platform.
func Version() string {
	commit, goVersion, goos, goarch, dirty := BuildCommit, "", "", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				if commit == "" {
					commit = s.Value[:min(12, len(s.Value))]
				}
			case "vcs.modified":
				if s.Value == "true" && BuildCommit == "" {
					dirty = "-dirty"
				}
			case "GOOS":
				goos = s.Value
			case "GOARCH":
				goarch = s.Value
			}
		}
	}
	if commit == "" {
		commit = "unknown"
	}
	return fmt.Sprintf("posttrade %s%s %s %s/%s", commit, dirty, goVersion, goos, goarch)
}
