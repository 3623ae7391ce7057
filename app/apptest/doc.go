// Package apptest has what the tests of more than one room of app use: settled
// configurations, waiting for a state, and stats files.
package apptest
