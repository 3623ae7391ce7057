// Package watch prints the live feed: a line an event, as columns for people or as JSON.
package watch
