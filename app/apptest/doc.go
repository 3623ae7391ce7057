// Package apptest has the helpers that the tests of several folders of app share: settled
// configurations, waiting for a state, and stats files.
package apptest
