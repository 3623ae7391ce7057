package apptest

import (
	"errors"
	"strings"
	"testing"

	"posttrade/app/settings"
	"posttrade/app/stats"
	"posttrade/journal"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// Settled returns a configuration of flags alone: names and values in turns.
//
// Names without a value at the end are left out. A bad setting fails the test.
func Settled(t testing.TB, nameValue ...string) *settings.Config {
	t.Helper()
	return must.Get(SettleFlags(nameValue))(t)
}

// SettleFlags is Settled with its error.
func SettleFlags(nameValue []string) (*settings.Config, error) {
	var flags []settings.FlagValue
	for i := 0; i+1 < len(nameValue); i += 2 {
		flags = append(flags, settings.FlagValue{Name: nameValue[i], Text: nameValue[i+1]})
	}
	return settings.Read(settings.Sources{Flags: flags})
}

// WantUsageError requires a usage error of one line that contains want.
func WantUsageError(t testing.TB, err error, want string) {
	t.Helper()
	var usage settings.UsageError
	if !errors.As(err, &usage) {
		t.Fatalf("got %v, want a usage error with %q", err, want)
	}
	if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "\n") {
		t.Errorf("got %q, want one line with %q", text, want)
	}
}

// Patience is how long a test waits for an expected event.
const Patience = waittest.Patience

// Until waits until other goroutines have brought about a state.
//
// holds is called again and again on the test's goroutine. seen is shown when Patience ends first.
func Until(t testing.TB, what string, holds func() (ok bool, seen any)) {
	t.Helper()
	waittest.Until(t, what, holds)
}

// StillSources are the sources of a process in which nothing happens.
//
// Only the number of looks rises, as in every process.
func StillSources() stats.Sources {
	return stats.Sources{Path: func(p *stats.Path) { p.Looks++ },
		Commits: func() journal.Metrics { return journal.Metrics{} }}
}

// StatsIn reads a stats file as another process does.
//
// It fails the test when the file is not there or cannot be read whole.
func StatsIn(t testing.TB, path string) (image stats.Image, alive bool) {
	t.Helper()
	f, err := stats.OpenStats(path)
	must.OK(t, err)
	defer f.Close()
	must.OK(t, f.Load(&image))
	if alive, err = f.Alive(); err != nil {
		t.Fatal(err)
	}
	return image, alive
}
