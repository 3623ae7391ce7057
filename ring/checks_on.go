//go:build checks || race

package ring

// Checks turns on the assertions of the hot calls, here and in the rooms above.
const Checks = true
