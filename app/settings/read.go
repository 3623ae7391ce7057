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
type Config struct {
	Values map[string]resolved
	from   Sources
}

// resolved is a setting after every source has been read.
type resolved struct {
	setting *Setting
	Text    string
	parsed  any
	Source  string // "default", "file <path>:<line>", "environment <NAME>" or "flag"
}

// Sources are what a configuration is read from, in rising precedence.
type Sources struct {
	File    string   // path of a key=value file, empty for none
	Environ []string // NAME=value
	Flags   []FlagValue
}

// FlagValue is one --name=value of the command line.
type FlagValue struct{ Name, Text string }

// Read settles every setting. The first unknown or invalid setting, in any source, is an error that
// names it.
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
func Named(name string) *Setting {
	for i := range List {
		if List[i].Name == name {
			return &List[i]
		}
	}
	return nil
}

// set parses one value. The error names its source, and never shows a value that may be secret.
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
func Printable(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// Cause is the innermost reason of a file error, without the path, which the message already names.
func Cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
