// Posttrade is an order matcher with a journal, and what comes after the trade,
// in one process: see ARCHITECTURE.md, and `posttrade -h`.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
)

// The exit codes of every command.
const (
	exitOK       = 0
	exitFailed   = 1 // with one line on stderr
	exitUsage    = 2 // an unknown command, flag or setting, or an invalid one
	exitMismatch = 3 // a verification found a difference
)

// command is one subcommand. run gets what follows its name and returns an exit code.
type command struct {
	name    string
	summary string
	run     func(args []string, stdout, stderr io.Writer) int
}

// dispatch runs the command that args name.
func dispatch(commands []command, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return failure(stderr, usagef("no command; posttrade -h lists them"))
	}
	if isHelp(args[0]) || args[0] == "help" {
		printOverview(stdout, commands)
		return exitOK
	}
	at := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if at < 0 {
		return failure(stderr, usagef("unknown command %s; posttrade -h lists them", printable(args[0])))
	}
	return commands[at].run(args[1:], stdout, stderr)
}

func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

func printOverview(w io.Writer, commands []command) {
	fmt.Fprint(w, "usage: posttrade <command> [flags]\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands {
		fmt.Fprintf(table, "  %s\t%s\n", c.name, c.summary)
	}
	table.Flush()
	fmt.Fprint(w, "\nEvery command explains itself with -h. Settings are flags: --name=value; see posttrade config.\n")
}

// usageError is a mistake of the caller's: exit code 2.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return usageError{fmt.Sprintf(format, args...)}
}

// errMismatch marks a verification that found a difference: exit code 3.
var errMismatch = errors.New("mismatch")

// failure prints err as one line and returns its exit code.
func failure(stderr io.Writer, err error) int {
	line := strings.Join(strings.Fields(err.Error()), " ")
	fmt.Fprintf(stderr, "posttrade: %s\n", line)
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errMismatch):
		return exitMismatch
	}
	return exitFailed
}

// flags is the command line of one command: its own flags, and every setting.
type flags struct {
	*flag.FlagSet
	usage      string // what follows "usage: posttrade"
	about      string // one paragraph
	configFile string
	settings   []flagValue
	rest       []string
}

// newFlags returns the flags of a command. Add its own with the methods of
// flag.FlagSet, then call read.
func newFlags(usage, about string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError), usage: usage, about: about}
	f.SetOutput(io.Discard)
	f.StringVar(&f.configFile, "config", "", "read settings from this key=value `file`")
	return f
}

// read parses args, which may mix flags and at most maxRest other arguments,
// and settles the configuration from every source. With help asked for it
// prints that and returns flag.ErrHelp.
func (f *flags) read(args []string, maxRest int, stdout io.Writer) (*config, error) {
	own := map[string]bool{}
	f.VisitAll(func(g *flag.Flag) { own[g.Name] = true })
	for i := range settings {
		s := &settings[i]
		if own[s.Name] {
			panic("cli: flag " + s.Name + " hides a setting")
		}
		keep := func(text string) error {
			f.settings = append(f.settings, flagValue{s.Name, text})
			return nil
		}
		if s.Kind.boolean {
			f.BoolFunc(s.Name, s.Help, keep)
		} else {
			f.Func(s.Name, s.Help, keep)
		}
	}
	if err := f.parse(args, own, stdout); err != nil {
		return nil, err
	}
	if len(f.rest) > maxRest {
		return nil, usagef("unexpected argument %s", printable(f.rest[maxRest]))
	}
	return readConfig(configSources{file: f.configFile, environ: os.Environ(), flags: f.settings})
}

// parse lets flags and other arguments mix, which package flag alone does not.
func (f *flags) parse(args []string, own map[string]bool, stdout io.Writer) error {
	args = f.joinBooleans(args)
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			f.printHelp(stdout, own)
			return err
		} else if err != nil {
			return flagError(err)
		}
		args = f.Args()
		if len(args) == 0 {
			return nil
		}
		f.rest = append(f.rest, args[0])
		args = args[1:]
	}
}

// joinBooleans turns "--flag true" into "--flag=true" for boolean settings, so
// that both ways of writing a value work for all of them.
func (f *flags) joinBooleans(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		name := strings.TrimLeft(args[i], "-")
		s := settingNamed(name)
		if strings.HasPrefix(args[i], "-") && s != nil && s.Kind.boolean && i+1 < len(args) {
			if next := args[i+1]; next == "true" || next == "false" {
				out = append(out, args[i]+"="+next)
				i++
				continue
			}
		}
		out = append(out, args[i])
	}
	return out
}

// flagError puts what package flag found wrong into this program's words.
func flagError(err error) error {
	message := err.Error()
	if name, ok := strings.CutPrefix(message, "flag provided but not defined: -"); ok {
		return usagef("unknown flag --%s", strings.TrimLeft(name, "-"))
	}
	if name, ok := strings.CutPrefix(message, "flag needs an argument: -"); ok {
		return usagef("flag --%s needs a value", strings.TrimLeft(name, "-"))
	}
	return usagef("%s", message)
}

func (f *flags) printHelp(w io.Writer, own map[string]bool) {
	fmt.Fprintf(w, "usage: posttrade %s\n\n%s\n\n", f.usage, f.about)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	f.VisitAll(func(g *flag.Flag) {
		if !own[g.Name] {
			return
		}
		kind, help := flag.UnquoteUsage(g)
		name := "--" + g.Name
		if kind != "" {
			name += "=" + kind
		}
		if g.DefValue != "" && g.DefValue != "false" {
			help += " (default " + g.DefValue + ")"
		}
		fmt.Fprintf(table, "  %s\t%s\n", name, help)
	})
	table.Flush()
	fmt.Fprint(w, "\nEvery setting is a flag too, as --name=value; posttrade config lists them.\n")
}

// exit turns what a command's body returned into its exit code.
func exit(stderr io.Writer, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	return failure(stderr, err)
}

// runVersion prints what was built from what with what.
func runVersion(args []string, stdout, stderr io.Writer) int {
	f := newFlags("version", "Prints the commit, the Go version and the platform of this build.")
	if _, err := f.read(args, 0, stdout); err != nil {
		return exit(stderr, err)
	}
	fmt.Fprintln(stdout, version())
	return exitOK
}

// buildCommit is set by the linker; see the Makefile.
var buildCommit string

// version is one line: name, commit, Go version, platform.
func version() string {
	commit, goVersion, goos, goarch, dirty := buildCommit, "", "", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				if commit == "" {
					commit = s.Value[:min(12, len(s.Value))]
				}
			case "vcs.modified":
				if s.Value == "true" && buildCommit == "" {
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
