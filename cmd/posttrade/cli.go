package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"posttrade/app/settings"
)

// command is one subcommand. run gets the arguments behind its name and returns an exit code; it
// prints its own errors (settings.Exit).
type command struct {
	// name is what the user writes; summary is its line in the overview.
	name    string
	summary string
	run     func(args []string, stdout, stderr io.Writer) int
}

// dispatch runs the command that args name, and returns the exit code of the process. A command
// whose output was lost has failed, whatever it found: its caller has not got the answer.
func dispatch(commands []command, args []string, stdout, stderr io.Writer) int {
	out := &output{to: stdout}
	code := choose(commands, args, out, stderr)
	if lost := out.lost.Load(); lost != nil && code == settings.ExitOK {
		return settings.Exit(stderr, fmt.Errorf("stdout: %w", *lost))
	}
	return code
}

// output is the standard output of a command, which keeps the first error of a write. Any goroutine
// may write.
type output struct {
	to   io.Writer
	lost atomic.Pointer[error]
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.lost.CompareAndSwap(nil, &err)
	}
	return n, err
}

// behind is what a standard output writes to: a command that asks whether that is a terminal must
// not be told of the output in between.
func behind(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.to
	}
	return w
}

// choose runs the command that args name.
func choose(commands []command, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return settings.Exit(stderr, settings.Usagef("no command; posttrade -h lists them"))
	}
	switch {
	case isHelp(args[0]):
		printOverview(stdout, commands)
		return settings.ExitOK
	case args[0] == "help":
		return runHelp(commands, args[1:], stdout, stderr)
	case args[0] == "-version" || args[0] == "--version":
		args[0] = "version"
	}
	at, err := find(commands, args[0])
	if err != nil {
		return settings.Exit(stderr, err)
	}
	return commands[at].helped(args[1:], stdout, stderr)
}

// isHelp reports the forms of asking for help that package flag knows.
func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

// printOverview lists the commands, each with its summary.
func printOverview(w io.Writer, commands []command) {
	fmt.Fprint(w, "usage: posttrade <command> [flags]\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands {
		fmt.Fprintf(table, "  %s\t%s\n", c.name, c.summary)
	}
	table.Flush()
	fmt.Fprint(w,
		"\nEvery command explains itself with -h, and with an example. Settings are flags: "+
			"--name=value;"+
			" see posttrade config.\n")
}

// flags is the command line of one command: its own flags and every setting. One read uses it up.
type flags struct {
	*flag.FlagSet
	// usage is what follows "usage: posttrade", and about one paragraph behind it.
	usage string
	about string // one paragraph
	// configFile is --config: a source of settings, not a setting.
	configFile string
	// preset are settings of the command itself; what the caller gives wins.
	preset []settings.FlagValue
	// settings are those that the command line gives, in its order; rest are the arguments that are no
	// flags.
	settings []settings.FlagValue
	rest     []string
	// twice is the flag of once that has come again; "" while none has.
	twice string
}

// newFlags returns the flags of a command. The caller adds the command's own flags with the methods
// of flag.FlagSet, then calls read.
//
// Package flag must print nothing: its errors get this program's wording, and go where the command
// sends them.
func newFlags(usage, about string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError), usage: usage, about: about}
	f.SetOutput(io.Discard)
	f.StringVar(&f.configFile, "config", "", "read settings from this key=value `file`")
	return f
}

// read parses args, which may mix flags and at most maxRest other arguments, and settles the
// configuration from every source. When args ask for help, it prints the help and returns
// flag.ErrHelp, which settings.Exit takes for success.
//
// Other errors are usage errors: exit code 2. It must be called once, behind the last own flag.
func (f *flags) read(args []string, maxRest int, stdout io.Writer) (*settings.Config, error) {
	own := map[string]bool{}
	f.VisitAll(func(g *flag.Flag) { own[g.Name] = true })
	f.addSettings(own)
	if err := f.parse(args, own, stdout); err != nil {
		return nil, err
	}
	if len(f.rest) > maxRest {
		return nil, settings.Usagef("unexpected argument %s", settings.Printable(f.rest[maxRest]))
	}
	return settings.Read(settings.Sources{File: f.configFile, Environ: os.Environ(),
		Flags: append(f.preset, f.settings...)})
}

// addSettings makes a flag of each setting, beside the command's own flags.
//
// A flag only keeps its text: settings.Read judges it, together with the other sources. A flag of
// the command that has the name of a setting is a bug, and panics.
func (f *flags) addSettings(own map[string]bool) {
	for i := range settings.List {
		s := &settings.List[i]
		if own[s.Name] {
			panic("cli: flag " + s.Name + " hides a setting")
		}
		keep := func(text string) error {
			f.settings = append(f.settings, settings.FlagValue{Name: s.Name, Text: text})
			return nil
		}
		if s.Kind.Boolean {
			f.BoolFunc(s.Name, s.Help, keep)
		} else {
			f.Func(s.Name, s.Help, keep)
		}
	}
}

// given reports that the command line has one of the command's own flags, so that a command can
// tell a value of 0 from none.
func (f *flags) given(name string) (found bool) {
	f.Visit(func(g *flag.Flag) { found = found || g.Name == name })
	return found
}

// once refuses a second value of some of the command's own flags, which would silently replace the
// first one: for flags that say what is judged. It must be called behind their declaration.
func (f *flags) once(names ...string) {
	for _, name := range names {
		g := f.Lookup(name)
		g.Value = &onceValue{Value: g.Value, name: name, all: f}
	}
}

// onceValue is the value of a flag that may be given once.
type onceValue struct {
	flag.Value
	name  string
	all   *flags
	given bool
}

// Set implements flag.Value. The text of its error is not shown: see flags.parse.
func (v *onceValue) Set(text string) error {
	if v.given {
		v.all.twice = v.name
		return errors.New("given twice")
	}
	v.given = true
	return v.Value.Set(text)
}

// parse accepts flags and other arguments in any order, which package flag alone does not: it goes
// on behind each argument that is no flag.
func (f *flags) parse(args []string, own map[string]bool, stdout io.Writer) error {
	args = f.joinBooleans(args)
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			f.printHelp(stdout, own)
			return err
		} else if f.twice != "" {
			return settings.Usagef("flag --%s is given twice", f.twice)
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
		s := settings.Named(name)
		if strings.HasPrefix(args[i], "-") && s != nil && s.Kind.Boolean && i+1 < len(args) {
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

// flagError turns an error of package flag into this program's wording. Package flag has no
// sentinels, so it compares the beginnings of the messages; another wording passes as it is.
func flagError(err error) error {
	message := err.Error()
	if name, ok := strings.CutPrefix(message, "flag provided but not defined: -"); ok {
		name = strings.TrimLeft(name, "-")
		return settings.Usagef("unknown flag --%s%s", name,
			settings.DidYouMean(name, settings.Names()))
	}
	if name, ok := strings.CutPrefix(message, "flag needs an argument: -"); ok {
		return settings.Usagef("flag --%s needs a value", strings.TrimLeft(name, "-"))
	}
	return settings.Usagef("%s", message)
}

// printHelp prints usage, paragraph and the command's own flags. The settings are left out: there
// are too many, and posttrade config lists them. A default that a flag's text states stands for the
// flag's own value, which then means "not given".
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
		if g.DefValue != "" && g.DefValue != "false" && !strings.Contains(help, "(default") {
			help += " (default " + g.DefValue + ")"
		}
		fmt.Fprintf(table, "  %s\t%s\n", name, help)
	})
	table.Flush()
	fmt.Fprint(w, "\nEvery setting is a flag too, as --name=value; posttrade config lists them.\n")
}

// runVersion prints the version line.
func runVersion(args []string, stdout, stderr io.Writer) int {
	f := newFlags("version", "Prints the commit, the Go version and the platform of this build.")
	if _, err := f.read(args, 0, stdout); err != nil {
		return settings.Exit(stderr, err)
	}
	fmt.Fprintln(stdout, settings.Version())
	return settings.ExitOK
}
