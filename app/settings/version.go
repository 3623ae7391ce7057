package settings

import (
	"fmt"
	"runtime/debug"
)

// Release is the release that this source is, or is becoming: see CHANGELOG.md.
const Release = "0.4.0-dev"

// BuildCommit is set by the linker; see the Makefile.
var BuildCommit string

// Build says what a binary was made from.
type Build struct{ Commit, Go, Platform string }

// ReadBuild reads what the linker and the go command have written into this binary.
func ReadBuild() Build {
	b := Build{Commit: BuildCommit}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b.Go = info.GoVersion
	of := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		of[s.Key] = s.Value
	}
	b.Platform = of["GOOS"] + "/" + of["GOARCH"]
	if revision := of["vcs.revision"]; b.Commit == "" && revision != "" {
		b.Commit = revision[:min(12, len(revision))]
		if of["vcs.modified"] == "true" {
			b.Commit += "-dirty"
		}
	}
	if b.Commit == "" {
		b.Commit = "unknown"
	}
	return b
}

// Version is one line: name, release, commit, Go version, platform.
func Version() string {
	b := ReadBuild()
	return fmt.Sprintf("posttrade %s %s %s %s", Release, b.Commit, b.Go, b.Platform)
}
