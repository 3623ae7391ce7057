// Package metric is how a part of the process states what it counts. Each part has a method Collect
// with its own names, help texts and types; a scrape calls them all with one Emit.
package metric
