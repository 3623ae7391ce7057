package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"

	"posttrade/journal/quorum"
)

// config is the settled value of every setting and where each came from. It is
// read once and never changes.
type config struct {
	values map[string]resolved
}

// resolved is a setting after every source has been read.
type resolved struct {
	setting *setting
	text    string
	parsed  any
	source  string // "default", "file <path>:<line>", "environment <NAME>" or "flag"
}

// configSources is what a configuration is read from, in rising precedence.
type configSources struct {
	file    string   // path of a key=value file, empty for none
	environ []string // NAME=value
	flags   []flagValue
}

// flagValue is one --name=value of the command line.
type flagValue struct{ name, text string }

// readConfig settles every setting. The first unknown or invalid one, in any
// source, is an error that names it.
func readConfig(from configSources) (*config, error) {
	c := &config{values: make(map[string]resolved, len(settings))}
	for i := range settings {
		if err := c.set(settings[i].Name, settings[i].Default, "default"); err != nil {
			return nil, err
		}
	}
	if err := c.readFile(from.file); err != nil {
		return nil, err
	}
	if err := c.readEnviron(from.environ); err != nil {
		return nil, err
	}
	for _, f := range from.flags {
		if err := c.set(f.name, f.text, "flag"); err != nil {
			return nil, err
		}
	}
	return c, c.check()
}

// settingNamed returns the setting of that dotted name, or nil.
func settingNamed(name string) *setting {
	for i := range settings {
		if settings[i].Name == name {
			return &settings[i]
		}
	}
	return nil
}

// envName is the environment variable of a setting.
func envName(name string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

func (c *config) set(name, value, source string) error {
	s := settingNamed(name)
	if s == nil {
		return usagef("unknown setting %s (%s)", printable(name), source)
	}
	parsed, err := s.Kind.parse(value)
	if err != nil {
		shown := printable(value)
		if s.Kind.secret || s.Kind.url {
			shown = "the value"
		}
		return usagef("invalid setting %s (%s): %s is not allowed, want %s", name, source, shown, s.Kind.allowed)
	}
	c.values[name] = resolved{setting: s, text: value, parsed: parsed, source: source}
	return nil
}

// with returns a copy in which other values stand, for an installation that is
// part of something else. The values are the program's own: a bad one is a bug.
func (c *config) with(values map[string]string) *config {
	other := &config{values: maps.Clone(c.values)}
	for name, value := range values {
		if err := other.set(name, value, "program"); err != nil {
			panic(err)
		}
	}
	return other
}

// maxConfigBytes bounds a configuration file; ours is about 4 KiB.
const maxConfigBytes = 1 << 20

// readFile reads key=value lines. # opens a comment line; a key may come once.
func (c *config) readFile(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return usagef("--config: %s: %s", path, cause(err))
	}
	if info.Size() > maxConfigBytes {
		return usagef("--config: %s: larger than %d bytes", path, maxConfigBytes)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return usagef("--config: %s: %s", path, cause(err))
	}
	seen := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxConfigBytes+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok {
			return usagef("%s:%d: want key=value, got %s", path, n, printable(line))
		}
		if first, twice := seen[name]; twice {
			return usagef("%s:%d: %s is set twice, first on line %d", path, n, printable(name), first)
		}
		seen[name] = n
		if err := c.set(name, value, fmt.Sprintf("file %s:%d", path, n)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// readEnviron takes the variables that bear a setting's name. Others are not
// ours; an empty one counts as not set.
func (c *config) readEnviron(environ []string) error {
	byName := make(map[string]string, len(settings))
	for i := range settings {
		byName[envName(settings[i].Name)] = settings[i].Name
	}
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		name, ours := byName[variable]
		if !ours || value == "" {
			continue
		}
		if err := c.set(name, value, "environment "+variable); err != nil {
			return err
		}
	}
	return nil
}

// The typed accessors panic on a name that is not in the list or is of another
// kind: that is a bug in this program, never in a configuration.

// String returns the value of a text, choice, address, URL or secret setting.
func (c *config) String(name string) string { return value[string](c, name) }

// Addr returns the host:port of a listen setting.
func (c *config) Addr(name string) string { return value[string](c, name) }

// Bool returns the value of a true-or-false setting.
func (c *config) Bool(name string) bool { return value[bool](c, name) }

// Int returns the value of a whole-number setting; a cpu that is none is -1.
func (c *config) Int(name string) int { return int(value[int64](c, name)) }

// Int64 is Int for counts.
func (c *config) Int64(name string) int64 { return value[int64](c, name) }

// Bytes returns a size in bytes.
func (c *config) Bytes(name string) int64 { return value[int64](c, name) }

// Decimal returns an amount of money in millionths of a currency unit.
func (c *config) Decimal(name string) int64 { return value[int64](c, name) }

// Duration returns the value of a duration setting.
func (c *config) Duration(name string) time.Duration { return value[time.Duration](c, name) }

// Millis returns the duration of a setting whose name ends in -ms.
func (c *config) Millis(name string) time.Duration {
	return time.Duration(value[int64](c, name)) * time.Millisecond
}

// AccountIDs returns the ids of a list of accounts, nil when it is empty.
func (c *config) AccountIDs(name string) []uint32 { return value[[]uint32](c, name) }

// Tickers returns a list of tickers, nil when it is empty.
func (c *config) Tickers(name string) []string { return value[[]string](c, name) }

// Members returns the members of the cluster, nil for a single process.
func (c *config) Members() []quorum.Member { return value[[]quorum.Member](c, "cluster.members") }

// Source says where a setting's value came from.
func (c *config) Source(name string) string { return c.values[name].source }

func value[T any](c *config, name string) T {
	r, ok := c.values[name]
	if !ok {
		panic("config: no setting " + name)
	}
	v, ok := r.parsed.(T)
	if !ok {
		panic(fmt.Sprintf("config: setting %s is a %T, want a %T", name, r.parsed, v))
	}
	return v
}

// printable quotes a text of outside origin so that it fits one line.
func printable(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// cause is the innermost reason of a file error, without the path that the
// message already names.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
