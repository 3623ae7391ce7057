package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// shownSetting is one row of `posttrade config`.
type shownSetting struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Default     string `json:"default"`
	Source      string `json:"source"`
	Allowed     string `json:"allowed"`
	Environment string `json:"environment"`
	Help        string `json:"help"`
}

// runConfig prints every setting: value, default, source, allowed values, help.
func runConfig(args []string, stdout, stderr io.Writer) int {
	f := newFlags("config [--json] [flags]",
		"Prints every setting with its value, default, source and meaning. Secrets are masked;\n"+
			"brackets say what an empty value stands for.")
	asJSON := f.Bool("json", false, "print a JSON array")
	cfg, err := f.read(args, 0, stdout)
	if err != nil {
		return exit(stderr, err)
	}
	if *asJSON {
		out := json.NewEncoder(stdout)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return exit(stderr, out.Encode(cfg.shown()))
	}
	return exit(stderr, cfg.printTable(stdout))
}

// shown returns every setting in the order of the list, secrets masked.
func (c *config) shown() []shownSetting {
	rows := make([]shownSetting, len(settings))
	for i := range settings {
		s := &settings[i]
		r := c.values[s.Name]
		rows[i] = shownSetting{
			Name: s.Name, Value: s.masked(r.text), Default: s.Default, Source: r.source,
			Allowed: s.Kind.allowed, Environment: envName(s.Name), Help: s.Help,
		}
	}
	return rows
}

func (c *config) printTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tDEFAULT\tSOURCE\tHELP")
	for i, row := range c.shown() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s (%s)\n", row.Name,
			orBrackets(row.Value, settings[i].Empty), orBrackets(row.Default, settings[i].Empty),
			row.Source, row.Help, row.Allowed)
	}
	return table.Flush()
}

// orBrackets shows an empty value as what it stands for.
func orBrackets(value, empty string) string {
	if value != "" {
		return value
	}
	return "(" + empty + ")"
}
