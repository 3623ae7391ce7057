package settings

import (
	"fmt"
	"runtime/debug"
)

// Release is the release that this source is, or is becoming: see CHANGELOG.md.
const Release = "0.4.0-dev"

// BuildCommit is set by the linker; see the Makefile.
//
// It is "" in a build without that flag, such as a test; ReadBuild then takes what the go command
// has noted.
var BuildCommit string

// Build says what a binary was made from.
//
// Commit has up to 12 hexadecimal digits, with -dirty behind them for a tree with changes, or is
// "unknown". Platform is GOOS/GOARCH.
type Build struct{ Commit, Go, Platform string }

// ReadBuild reads what the linker and the go command have written into this binary.
//
// It reads no file. A binary without build information has empty fields.
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
//
// posttrade version, the admin listener and the console show it.
func Version() string {
	b := ReadBuild()
	return fmt.Sprintf("posttrade %s %s %s %s", Release, b.Commit, b.Go, b.Platform)
}
