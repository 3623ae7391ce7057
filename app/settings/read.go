package settings

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"posttrade/journal/quorum"
)

// Config is the settled value of every setting, and the source of each. It is read once and never
// changes.
//
// Any goroutine may read it. A nil Config is not usable; Read and With make them.
type Config struct {
	// Every setting of List by its name, without exception.
	Values map[string]resolved
	// What Read was given, so that Again can read it again.
	from Sources
}

// resolved is a setting after every source has been read.
type resolved struct {
	// The entry of List.
	setting *Setting
	// The text as the source had it, without white space around it in a file.
	Text string
	// The value in the type of its accessor: see value.
	parsed any
	// "default", "file <path>:<line>", "environment <NAME>", "flag", or "program" for what With has
	// set. Messages show it, so that an operator finds the place of a wrong value.
	Source string
}

// Sources are what a configuration is read from, in rising precedence.
//
// A value of a later field wins. Within Flags the last value of a name wins.
type Sources struct {
	File    string   // path of a key=value file, empty for none
	Environ []string // NAME=value
	Flags   []FlagValue
}

// FlagValue is one --name=value of the command line.
//
// A list, and not a map, keeps the order of the command line.
type FlagValue struct{ Name, Text string }

// Read settles every setting. The first unknown or invalid setting, in any source, is an error that
// names it.
//
// Errors are UsageErrors, except one of reading the file half-way. Read touches no file but the
// one that from names, and connects to nothing. The Config that comes with an error must not be
// used.
func Read(from Sources) (*Config, error) {
	c := &Config{Values: make(map[string]resolved, len(List)), from: from}
	for i := range List {
		if err := c.set(List[i].Name, List[i].Default, "default"); err != nil {
			return nil, err
		}
	}
	if err := c.readFile(from.File); err != nil {
		return nil, err
	}
	if err := c.readEnviron(from.Environ); err != nil {
		return nil, err
	}
	for _, f := range from.Flags {
		if err := c.set(f.Name, f.Text, "flag"); err != nil {
			return nil, err
		}
	}
	return c, c.check()
}

// Named returns the setting of that dotted name, or nil.
//
// The setting is an entry of List and must not be changed. The search is linear, for start-up and
// messages only.
func Named(name string) *Setting {
	for i := range List {
		if List[i].Name == name {
			return &List[i]
		}
	}
	return nil
}

// set parses one value. The error names its source, and never shows a value that may be secret.
//
// A later call for the same name wins, so the callers go through the sources in rising precedence.
func (c *Config) set(name, value, source string) error {
	s := Named(name)
	if s == nil {
		return Usagef("unknown setting %s (%s)%s", Printable(name), source, DidYouMean(name, Names()))
	}
	parsed, err := s.Kind.parse(value)
	if err != nil {
		shown := Printable(value)
		if s.Kind.secret || s.Kind.url {
			shown = "the value"
		}
		return Usagef("invalid setting %s (%s): %s is not allowed, want %s", name, source, shown,
			s.Kind.Allowed)
	}
	c.Values[name] = resolved{setting: s, Text: value, parsed: parsed, Source: source}
	return nil
}

// maxConfigBytes bounds a configuration file; a full one is about 4 KiB.
const maxConfigBytes = 1 << 20

// readFile reads key=value lines. # opens a comment line; a key may occur once.
//
// White space around key and value is dropped, so a value cannot begin or end with it. There are
// no quotes, no escapes and no continued lines. A # behind a value belongs to the value.
func (c *Config) readFile(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return Usagef("--config: %s: %s", path, Cause(err))
	}
	if info.Size() > maxConfigBytes {
		return Usagef("--config: %s: larger than %d bytes", path, maxConfigBytes)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return Usagef("--config: %s: %s", path, Cause(err))
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
			return Usagef("%s:%d: want key=value, got %s", path, n, Printable(line))
		}
		if first, twice := seen[name]; twice {
			return Usagef("%s:%d: %s is set twice, first on line %d", path, n, Printable(name), first)
		}
		seen[name] = n
		if err := c.set(name, value, fmt.Sprintf("file %s:%d", path, n)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// The typed accessors panic on a name that is not in the list or is of another kind. That is a bug
// in this program, never in a configuration.

// String returns the value of a text, choice, address, URL or secret setting.
func (c *Config) String(name string) string { return value[string](c, name) }

// Addr returns the host:port of a listen setting.
//
// The host may be empty and the port may be 0. ListenAddr is what a member listens at.
func (c *Config) Addr(name string) string { return value[string](c, name) }

// Bool returns the value of a true-or-false setting.
func (c *Config) Bool(name string) bool { return value[bool](c, name) }

// Int returns the value of a whole-number setting; -1 for a CPU that is not set.
func (c *Config) Int(name string) int { return int(value[int64](c, name)) }

// Int64 is Int for counts.
func (c *Config) Int64(name string) int64 { return value[int64](c, name) }

// Bytes returns a size in bytes.
func (c *Config) Bytes(name string) int64 { return value[int64](c, name) }

// Decimal returns an amount of money in millionths of a currency unit.
func (c *Config) Decimal(name string) int64 { return value[int64](c, name) }

// Duration returns the value of a duration setting.
//
// It is for settings with a unit in the value, such as 50ms. Settings whose names end in -ms are
// read with Millis.
func (c *Config) Duration(name string) time.Duration { return value[time.Duration](c, name) }

// Millis returns the duration of a setting with a name that ends in -ms.
func (c *Config) Millis(name string) time.Duration {
	return time.Duration(value[int64](c, name)) * time.Millisecond
}

// AccountIDs returns the ids of a list of accounts, nil when it is empty.
func (c *Config) AccountIDs(name string) []uint32 { return value[[]uint32](c, name) }

// Tickers returns a list of tickers, nil when it is empty.
func (c *Config) Tickers(name string) []string { return value[[]string](c, name) }

// Members returns the members of the cluster, nil for a single process.
func (c *Config) Members() []quorum.Member { return value[[]quorum.Member](c, "cluster.members") }

// Source returns the source of a setting's value.
//
// An unknown name has the source "".
func (c *Config) Source(name string) string { return c.Values[name].Source }

// value panics at a name or type that the list does not have: a mistake of the program.
func value[T any](c *Config, name string) T {
	r, ok := c.Values[name]
	if !ok {
		panic("config: no setting " + name)
	}
	v, ok := r.parsed.(T)
	if !ok {
		panic(fmt.Sprintf("config: setting %s is a %T, want a %T", name, r.parsed, v))
	}
	return v
}

// Printable quotes a text that comes from outside, so that it fits one line.
//
// It is cut after 80 bytes, so that a message stays readable; control characters are escaped.
func Printable(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// Cause is the innermost reason of a file error, without the path, which the message already names.
//
// An error of another kind is returned as it is.
func Cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
