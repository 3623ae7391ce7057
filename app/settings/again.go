package settings

import (
	"log/slog"
	"maps"
)

// Differing are the settings whose value is not the default, in the order of the list; secrets are
// masked.
//
// The log's first line has them. The value counts, and not the source: a setting that a file sets
// to its default is not listed.
func (c *Config) Differing() (list []slog.Attr) {
	for i := range List {
		s := &List[i]
		if text := c.Values[s.Name].Text; text != s.Default {
			list = append(list, slog.String(s.Name, s.Masked(text)))
		}
	}
	return list
}

// Again reads every source again, as a running server does on SIGHUP. The caller takes from the
// result what can change while it runs.
//
// What With has set stays, because it has no source that could be read. After an error, that of
// Read, c is as it was: a Config never changes.
func (c *Config) Again() (*Config, error) {
	next, err := Read(c.from)
	if err != nil {
		return nil, err
	}
	for name, r := range c.Values {
		if r.Source == ofProgram {
			next.Values[name] = r
		}
	}
	return next, next.check()
}

// secrets are the settings that have or name the secrets of tokens, which SIGHUP reads again.
var secrets = [...]string{"auth.jwt.secret", "auth.jwt.secret-file", "auth.dev-token.master-secret"}

// WithSecretsOf returns a copy whose secrets of tokens are set as in other, which Again has given.
// Again reads their sources as before.
func (c *Config) WithSecretsOf(other *Config) *Config {
	next := &Config{Values: maps.Clone(c.Values), from: c.from}
	for _, name := range secrets {
		next.Values[name] = other.Values[name]
	}
	return next
}

// LogLevel is log.level.
func (c *Config) LogLevel() (level slog.Level) {
	if err := level.UnmarshalText([]byte(c.String("log.level"))); err != nil {
		panic("config: log.level: " + err.Error()) // the setting's kind has checked the value
	}
	return level
}

// ofProgram is the source of the values that With has set.
const ofProgram = "program"

// With returns a copy with other values, for an installation inside another program. The values
// come from this program: a bad one is a bug.
//
// It parses the values and does not check their combinations, so a test can set what Read would
// refuse.
func (c *Config) With(values map[string]string) *Config {
	other := &Config{Values: maps.Clone(c.Values), from: c.from}
	for name, value := range values {
		if err := other.set(name, value, ofProgram); err != nil {
			panic(err)
		}
	}
	return other
}
