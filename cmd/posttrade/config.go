package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"posttrade/app/settings"
)

// shownSetting is one row of `posttrade config`; with --json it is one object. Its members are what
// scripts read.
//
// Values are texts, as a flag or a file would have them, whatever the kind of the setting is.
type shownSetting struct {
	Name string `json:"name"`
	// Value is the one in force, masked when the setting is a secret. Source names where it is from.
	Value   string `json:"value"`
	Default string `json:"default"`
	Source  string `json:"source"`
	// Allowed says in words which values there are.
	Allowed string `json:"allowed"`
	// Environment is the name of the variable that sets it.
	Environment string `json:"environment"`
	Help        string `json:"help"`
}

// runConfig prints every setting: value, default, source, allowed values, help.
//
// The values are those that this command line, environment and file give; a running server may have
// been started with others.
func runConfig(args []string, stdout, stderr io.Writer) int {
	f := newFlags("config [--json] [flags]",
		"Prints every setting with its value, default, source and meaning. Secrets are masked;\n"+
			"brackets say what an empty value stands for.")
	asJSON := f.Bool("json", false, "print a JSON array")
	cfg, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if *asJSON {
		out := json.NewEncoder(stdout)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return settings.Exit(stderr, out.Encode(shown(cfg)))
	}
	return settings.Exit(stderr, printTable(cfg, stdout))
}

// shown returns every setting in the order of the list, secrets masked.
func shown(c *settings.Config) []shownSetting {
	rows := make([]shownSetting, len(settings.List))
	for i := range settings.List {
		s := &settings.List[i]
		r := c.Values[s.Name]
		rows[i] = shownSetting{
			Name: s.Name, Value: s.Masked(r.Text), Default: s.Default, Source: r.Source,
			Allowed: s.Kind.Allowed, Environment: settings.EnvName(s.Name), Help: s.Help,
		}
	}
	return rows
}

// printTable prints the rows for people.
func printTable(c *settings.Config, w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tDEFAULT\tSOURCE\tHELP")
	for i, row := range shown(c) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s (%s)\n", row.Name,
			orBrackets(row.Value, settings.List[i].Empty), orBrackets(row.Default, settings.List[i].Empty),
			row.Source, row.Help, row.Allowed)
	}
	return table.Flush()
}

// orBrackets shows an empty value as its meaning, in brackets: empty is what it stands for.
func orBrackets(value, empty string) string {
	if value != "" {
		return value
	}
	return "(" + empty + ")"
}
