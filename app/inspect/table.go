package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// member is a member of a JSON object, in its place.
//
// The order matters to a reader: the endpoints put what is most important first. A map would lose
// it.
type member struct {
	name  string
	value json.RawMessage
}

// members reads an object in the order of its members.
//
// text is one JSON object. Values are left as they are, so numbers keep all their digits.
func members(text []byte) (all []member, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		all = append(all, member{fmt.Sprint(name), value})
	}
	return all, nil
}

// printTable prints a document: its plain members one to a line, its lists as tables.
//
// Columns are aligned within a document, so a long list is held in memory before it is written.
// The cursor of the next page is left out.
func printTable(w io.Writer, text []byte) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if bytes.HasPrefix(text, []byte("[")) {
		if err := printList(table, "", text); err != nil {
			return err
		}
		return table.Flush()
	}
	all, err := members(text)
	if err != nil {
		return err
	}
	for _, m := range all {
		switch {
		case m.name == "nextCursor":
		case bytes.HasPrefix(m.value, []byte("[")):
			if err := printList(table, m.name, m.value); err != nil {
				return err
			}
		default:
			fmt.Fprintf(table, "%s\t%s\n", m.name, plain(m.value))
		}
	}
	return table.Flush()
}

// printList prints a list of objects: the members of the first one are the columns.
//
// It relies on every object of a list having the same members in the same order. An element that
// is no object has a line of its own.
func printList(w io.Writer, name string, text []byte) error {
	var rows []json.RawMessage
	if err := json.Unmarshal(text, &rows); err != nil {
		return err
	}
	if name != "" && name != "items" {
		fmt.Fprintf(w, "%s\n", name)
	}
	for i, row := range rows {
		if !bytes.HasPrefix(row, []byte("{")) {
			fmt.Fprintf(w, "%s\n", plain(row))
			continue
		}
		all, err := members(row)
		if err != nil {
			return err
		}
		var names, values []string
		for _, m := range all {
			names, values = append(names, m.name), append(values, plain(m.value))
		}
		if i == 0 {
			fmt.Fprintf(w, "%s\n", strings.Join(names, "\t"))
		}
		fmt.Fprintf(w, "%s\n", strings.Join(values, "\t"))
	}
	return nil
}

// plain is a value without quotes; null is a dash.
//
// Objects and lists stay JSON text.
func plain(v json.RawMessage) string {
	var s string
	switch {
	case string(v) == "null":
		return "-"
	case json.Unmarshal(v, &s) == nil:
		return s
	}
	return string(v)
}
